"""Records the histories of this version as fixtures: `make histories`, or some: `make histories ARGS="open stopped"`.

A folder for each version, named like it. That of a released version stays as it is for ever: sessions that
began under it go on under this code. Only the folder of the version that is in work is written anew.
"""

import asyncio
import json
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from temporalio.client import Client, WorkflowHistory
from tests.replay.scenarios import SCENARIOS, Scenario

from countersign import __version__
from countersign.agent_client.dev_server import DevServer
from countersign.agent_core.wire import WORKER_READY
from countersign.client import AgentClient

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
HISTORIES = HERE / "histories"
AGENTS = "tests.replay.agents"
QUEUE = "replay"

_RECORDED = "WorkflowType = 'AgentCycle' OR (WorkflowType = 'AgentSession' AND ExecutionStatus != 'Terminated')"
"""A session that is reset has a run that Temporal terminates for that; what replays is the one after it."""


def released_versions() -> set[str]:
    """The versions that the changelog dates."""
    return set(re.findall(r"^## \[(\d[^\]]*)\] - \d", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE))


def _save(history: WorkflowHistory, folder: Path) -> None:
    name = history.workflow_id.removeprefix("recorded-").replace("/", "-")
    if history.events[0].workflow_execution_started_event_attributes.continued_execution_run_id:
        name += f"-run-{2 + len(list(folder.glob(f'{name}-run-*.json')))}"
    text = json.dumps(json.loads(history.to_json()), indent=1)
    for ours, instead in ((str(ROOT), "."), (sys.base_prefix, "python"), (f"@{socket.gethostname()}", "@recorder")):
        text = text.replace(ours, instead)  # stack traces and workers' names say nothing of this machine
    (folder / f"{name}.json").write_text(text + "\n")
    print(f"{name}: {len(history.events)} events")


async def record(folder: Path, scenarios: Mapping[str, Scenario]) -> None:
    """Run scenarios on a server of our own and save the histories of sessions and cycles."""
    async with DevServer() as server:
        command = [sys.executable, "-m", "countersign.worker", "--agents", AGENTS, "--address", server.address]
        with tempfile.TemporaryFile() as log:
            worker = subprocess.Popen([*command, "--task-queue", QUEUE], cwd=ROOT, stderr=log, stdout=log)
            try:
                client = await AgentClient.connect(server.address, task_queue=QUEUE)
                await asyncio.gather(*(play(client, f"recorded-{name}") for name, play in scenarios.items()))
                await _listed(client.temporal, len(scenarios))
                found = [one async for one in client.temporal.list_workflows(_RECORDED)]
                for one in sorted(found, key=lambda one: one.start_time):
                    handle = client.temporal.get_workflow_handle(one.id, run_id=one.run_id)
                    _save(await handle.fetch_history(), folder)
            finally:
                worker.terminate()
                worker.wait()
                log.seek(0)
                if WORKER_READY not in (said := log.read().decode()):
                    print(said, file=sys.stderr)


async def _listed(client: Client, count: int) -> None:
    """Temporal's list follows after a moment: wait until so many sessions have ended in it."""
    sessions = "WorkflowType = 'AgentSession' AND ExecutionStatus IN ('Completed', 'Failed')"
    async with asyncio.timeout(60):
        while (await client.count_workflows(sessions)).count < count:
            await asyncio.sleep(0.1)


def main(names: Sequence[str]) -> None:
    """Record, and take the place of what was recorded of this version before.

    Args:
        names: Of scenarios, whose histories are written beside the others; all of them if empty.
    """
    if __version__ in released_versions():
        raise SystemExit(
            f"{__version__} is released, and its histories stay; set the next version in src/countersign/__init__.py"
        )
    with tempfile.TemporaryDirectory() as place:
        asyncio.run(record(Path(place), {name: SCENARIOS[name] for name in names or SCENARIOS}))
        target = HISTORIES / __version__
        if not names:
            shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(place, target, dirs_exist_ok=True)


if __name__ == "__main__":
    main(sys.argv[1:])
