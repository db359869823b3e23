"""The crash matrix: the reference session once for every point at which its worker, or the server, can die.

python -m tests.crash.matrix --help
"""

import argparse
import asyncio
import contextlib
import functools
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.crash.file_server import FileServer
from tests.crash.points import POINTS
from tests.crash.reference import TEXTS
from tests.crash.runs import Run, server_run, worker_run

from countersign.agent_client.dev_server import DevServer

TRIES = 5
"""Runs for a point: which events a worker gets in one activation is chance, so that a point may not be met."""

MOST_MISSED = 0.05
"""Of the points, the part that may not be met in any of these runs; but one may always."""

USAGE_ERROR = 2

SENT = ("activation handled", "activation sent", "activity marked", "activity ended", "activity reported")
"""Points just before and just after something is sent to the server; the others are one and the same to it."""

RunAt = Callable[[str], Awaitable[Run]]
Say = Callable[[str], None]


@dataclass
class Figures:
    """What a matrix has come to.

    Attributes:
        title: What was killed.
        wanted: What every run must end with: its transcript.
        points: How many are done.
        runs: The runs so far; several for a point that was not met at once.
        seconds: How long it took.
    """

    title: str
    wanted: Sequence[object]
    points: int = 0
    runs: list[Run] = field(default_factory=list)
    seconds: float = 0.0

    def take(self, run: Run) -> None:
        """Add a run, with its transcript held against the wanted one."""
        if run.report.transcript and run.report.transcript != self.wanted:
            run.report.faults.append(f"another transcript: {run.report.transcript}")
        self.runs.append(run)

    @property
    def faults(self) -> list[str]:
        """Everything that was not as promised, with its point."""
        return [f"{run.point}: {fault}" for run in self.runs for fault in run.report.faults]

    @property
    def killed(self) -> set[str]:
        """Points that were met."""
        return {str(run.point) for run in self.runs if run.killed}

    @property
    def missed(self) -> set[str]:
        """Points that no run met."""
        return {str(run.point) for run in self.runs} - self.killed

    @property
    def gaps(self) -> list[str]:
        """What this matrix has not shown, as too little was killed."""
        killed, missed = self.killed, self.missed
        kinds = {kind_of(point) for point in missed} - {kind_of(point) for point in killed}
        found = [f"nothing was killed at any {kind!r}" for kind in sorted(kinds)]
        if len(missed) > max(1, MOST_MISSED * (len(killed) + len(missed))):
            found.append(f"{len(missed)} of {len(killed) + len(missed)} points were not met; {MOST_MISSED:.0%} may be")
        return found

    def __str__(self) -> str:
        killed, missed = self.killed, self.missed
        counts = [run.report.effects for run in self.runs]
        lost = sum(count[label] == 0 for count in counts for label in TEXTS)
        doubled = sum(max(0, number - 1) for count in counts for number in count.values())
        answers = sum("answer lost" in fault for fault in self.faults)
        cut = sum(len(run.report.unknown) for run in self.runs)
        slowest = max((run.seconds for run in self.runs), default=0.0)
        return "\n".join([
            f"{self.title}: points {len(killed)} ({len(missed)} not met), runs {len(self.runs)}; {lost} effects "
            f"lost, {doubled} doubled, {answers} answers lost, {len(self.faults)} faults; "
            f"slowest session {slowest:.1f} s, {self.seconds:.0f} s in all",
            f"  calls cut before they could report: {cut or 'none'}"
            + ("; a person was asked about each, as it should be" if cut else ""),
            *(f"  not met in {TRIES} runs: {point}" for point in sorted(missed)),
            *(f"  FAULT: {gap}" for gap in self.gaps),
        ])  # fmt: skip


def kind_of(point: str) -> str:
    """A point's kind: its name without the number and the subject, but activations by session and cycle."""
    words = point.split(" #", maxsplit=1)[0].split(" ")
    subject = words[2].split("-")[0] if words[0] == "activation" else ""
    return " ".join([*words[:2], subject]).strip()


def spread(points: Sequence[str]) -> list[str]:
    """One point of each kind, from its middle, where most goes on.

    Args:
        points: In the order in which they were met.
    """
    by_kind: dict[str, list[str]] = {}
    for point in points:
        by_kind.setdefault(kind_of(point), []).append(point)
    return [found[len(found) // 2] for found in by_kind.values()]


async def clean(address: str) -> Run:
    """The session with nobody killed, and the points that its worker met.

    Raises:
        AssertionError: If not even that ends as it should.
    """
    run = await worker_run(address, None, record=True)
    assert not run.report.faults, run.report.faults
    assert run.stored, "nothing of the session is in storage"
    return run


async def each(points: Sequence[str], figures: Figures, lanes: Sequence[RunAt], say: Say) -> Figures:
    """Run the session at each point, as many at once as there are lanes.

    Args:
        points: Where to kill.
        figures: Takes the runs.
        lanes: What runs one.
        say: Told of every tenth run and of each fault.
    """
    left, began = iter(points), time.monotonic()

    async def lane(run_at: RunAt) -> None:
        for point in left:
            for _ in range(TRIES):
                figures.take(run := await run_at(point))
                for fault in run.report.faults:
                    say(f"  FAULT {point}: {fault}")
                if run.killed:
                    break
            else:
                say(f"  not met in {TRIES} runs: {point}")
            figures.points += 1
            if figures.points % 10 == 0:
                say(f"  {figures.title}: {figures.points} of {len(points)} points, {time.monotonic() - began:.0f} s")

    await asyncio.gather(*(lane(run_at) for run_at in lanes))
    figures.seconds = time.monotonic() - began
    return figures


async def workers_killed(points: Sequence[str], base: Run, address: str, lanes: int, say: Say) -> Figures:
    """The matrix with the worker killed."""
    figures = Figures("worker killed", base.report.transcript)
    return await each(points, figures, [lambda point: worker_run(address, point)] * lanes, say)


async def servers_killed(points: Sequence[str], base: Run, lanes: int, say: Say) -> Figures:
    """The matrix with the server killed; each lane has a server of its own, and one session at a time."""
    figures = Figures("server killed", base.report.transcript)
    async with contextlib.AsyncExitStack() as stack:
        servers = []
        for _ in range(min(lanes, len(points))):
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="countersign-crash-"))
            servers.append(await stack.enter_async_context(FileServer(Path(folder))))
        await each(points, figures, [functools.partial(server_run, server) for server in servers], say)
    return figures


async def run(options: argparse.Namespace) -> int:
    """Run what was asked for; returns the number of faults, gaps included."""
    async with DevServer(leash=True) as server:
        base = await clean(server.address)
        points = chosen(base.met, options)
        say = functools.partial(print, flush=True)
        say(f"{len(base.met)} points, {len(points)} of them taken; a clean run takes {base.seconds:.1f} s")
        faults = 0
        if options.kill in ("worker", "both"):
            figures = await workers_killed(points, base, server.address, options.lanes, say)
            say(str(figures))
            faults += len(figures.faults) + len(figures.gaps)
    sent = for_server(points, options)
    if sent:
        figures = await servers_killed(sent, base, options.server_lanes, say)
        say(str(figures))
        faults += len(figures.faults) + len(figures.gaps)
    return faults


def chosen(met: Sequence[str], options: argparse.Namespace) -> list[str]:
    """The points that were asked for.

    Args:
        met: All that there are.
        options: Those of the command.

    Raises:
        NoSuchPoint: If it is none, or none at which the server can be killed where that is all that was asked for.
    """
    points = [point for point in met if options.only in point][:: options.every]
    if not points:
        kinds = sorted({kind_of(point) for point in met})
        raise NoSuchPoint(
            f"no point has {options.only!r} in its name; --only takes a part of these: {', '.join(kinds)}"
        )
    if options.kill == "server" and not for_server(points, options):
        raise NoSuchPoint(
            f"with {options.only!r} in its name nothing is sent to the server, so that killing it makes no difference; "
            f"--only takes a part of these: {', '.join(SENT)}"
        )
    return points


def for_server(points: Sequence[str], options: argparse.Namespace) -> list[str]:
    """Of the points those at which the server is killed: what it holds changes by what is sent to it."""
    if options.kill not in ("server", "both"):
        return []
    return [point for point in points if point.startswith(SENT)][:: options.server_every]


class NoSuchPoint(Exception):
    """Nothing would be killed."""


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.crash.matrix",
        description=(__doc__ or "").splitlines()[0],
        epilog=f"points are called:\n\n{POINTS}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--kill", choices=("worker", "server", "both"), default="both", help="default: both")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="take every Nth point only")
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="take points with this in their name only: see below"
    )
    parser.add_argument("--lanes", type=int, default=20, metavar="N", help="sessions at once; they mostly wait")
    parser.add_argument("--server-every", type=int, default=1, metavar="N", help="of those, for the server")
    parser.add_argument("--server-lanes", type=int, default=4, metavar="N", help="servers at once")
    try:
        sys.exit(min(1, asyncio.run(run(parser.parse_args()))))
    except NoSuchPoint as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(USAGE_ERROR)


if __name__ == "__main__":
    main()
