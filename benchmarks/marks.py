"""When a tool began, told by the tool itself: a line in a file that the measuring process reads.

The clock is CLOCK_MONOTONIC, which all processes of a Linux machine share.
"""

import asyncio
import os
import time
from pathlib import Path

from temporalio import activity

VARIABLE = "BENCH_MARKS"
PATIENCE_S = 300.0


def mark() -> None:
    """Note that the tool of this activity begins now; the session's id is the workflow's, without "/cycle-<n>"."""
    now_s = time.monotonic()
    session_id = (activity.info().workflow_id or "").split("/")[0]
    with open(os.environ[VARIABLE], "a") as file:
        file.write(f"{session_id} {now_s!r}\n")


class Marks:
    """The file of marks.

    Args:
        path: Where it is; made if it is not there.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch()

    async def of(self, session_id: str) -> float:
        """When the guarded tool of that session began first, in seconds of the monotonic clock.

        Raises:
            TimeoutError: If it has not begun after five minutes.
        """
        async with asyncio.timeout(PATIENCE_S):
            while True:
                for line in self.path.read_text().splitlines():
                    name, _, moment_s = line.partition(" ")
                    if name == session_id:
                        return float(moment_s)
                await asyncio.sleep(0.01)
