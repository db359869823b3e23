"""`python -m benchmarks`: runs the benchmarks and shows what they found."""

import argparse
import asyncio
import dataclasses
import importlib.util
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from temporalio.exceptions import TemporalError

from benchmarks.approvals import APPROVALS
from benchmarks.cycles import CYCLES
from benchmarks.plot import draw
from benchmarks.questions import Question, Sample
from benchmarks.recovery import RECOVERY
from benchmarks.report import as_json, markdown, show, write_json
from benchmarks.runner import ask
from benchmarks.throughput import THROUGHPUT
from benchmarks.waiting import CROWD, WAITING
from benchmarks.ways import THE_PEER, peer_is_installed

QUESTIONS = (CYCLES, APPROVALS, RECOVERY, THROUGHPUT, WAITING, CROWD)
ONLY_WHEN_ASKED = (CROWD,)
TO_INSTALL = "pip install -e '.[bench]'"


def _positive(text: str) -> int:
    if (number := int(text)) < 1:
        raise ValueError
    return number


_positive.__name__ = "number from 1"  # argparse names the type in its message


def _parser() -> argparse.ArgumentParser:
    names = [question.name for question in QUESTIONS]
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Countersign, a bare Temporal workflow (the floor) and temporalio-strands-agents (the peer), "
        "with the same work on the same server.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("questions", nargs="*", metavar="QUESTION", help=f"{', '.join(names)}; all but crowd if none")
    parser.add_argument("--full", action="store_true", help="crowd too: 5,000 waiting sessions")
    parser.add_argument("--quick", action="store_true", help="one round of small sizes, in about two minutes")
    parser.add_argument("--minutes", type=float, default=20.0, help="for all questions; more rounds are left out")
    parser.add_argument("--rounds", type=_positive, help="rounds of each question, instead of its own number")
    parser.add_argument("--sizes", type=_positive, nargs="+", help="sizes of each question, instead of its own")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write medians and all samples there")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw them there (PNG, SVG or PDF)")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables there, for the README")
    return parser


def _chosen(parser: argparse.ArgumentParser, names: Sequence[str], *, full: bool) -> list[Question]:
    known = {question.name: question for question in QUESTIONS}
    for name in names:
        if name not in known:
            parser.error(f"no question {name!r}; choose from: {', '.join(known)}")
    if names:
        return [known[name] for name in names]
    return [question for question in QUESTIONS if full or question not in ONLY_WHEN_ASKED]


def _without_the_peer(questions: Sequence[Question]) -> list[Question]:
    return [
        dataclasses.replace(question, ways=tuple(way for way in question.ways if way is not THE_PEER))
        for question in questions
    ]


async def _run(questions: Sequence[Question], given: argparse.Namespace) -> None:
    """Measure and show; what is to be written is written after each question, so that a later failure loses nothing."""
    shown, progress, load_before = Console(), Console(stderr=True), os.getloadavg()[0]
    weights = sum(question.weight for question in questions)
    found: dict[Question, list[Sample]] = {}
    for question in questions:
        sizes = given.sizes or (question.quick_sizes if given.quick else question.sizes)
        rounds = given.rounds or (1 if given.quick else question.rounds)
        budget_s = given.minutes * 60 * question.weight / weights
        try:
            found[question] = await ask(question, sizes, rounds, budget_s, progress)
        except (TimeoutError, TemporalError) as error:
            progress.print(f"{question.name} is left out: {type(error).__name__}: {error}", markup=False)
            continue
        show(question, found[question], shown)
        _write(found, given, load_before)


def _write(found: Mapping[Question, Sequence[Sample]], given: argparse.Namespace, load_before: float) -> None:
    if given.json:
        write_json(given.json, as_json(found, load_before))
    if given.markdown:
        given.markdown.write_text("\n\n".join(markdown(*item) for item in found.items()) + "\n")
    if given.plot:
        draw(found, given.plot)


def main() -> None:
    """Parse the command line, measure, show."""
    if sys.platform != "linux":
        raise SystemExit("the benchmarks read CPU time and memory as Linux shows them; run them there")
    parser = _parser()
    given = parser.parse_args()
    questions = _chosen(parser, given.questions, full=given.full)
    if given.plot and importlib.util.find_spec("matplotlib") is None:
        parser.error(f"--plot needs matplotlib, which is not installed: {TO_INSTALL}")
    if not peer_is_installed():
        print(f"the peer is left out, as it is not installed: {TO_INSTALL}", file=sys.stderr)
        questions = _without_the_peer(questions)
    asyncio.run(_run(questions, given))


if __name__ == "__main__":
    main()
