"""Runs the questions: rounds over all sizes and ways, interleaved, within a time budget."""

import time
from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.lab import Lab
from benchmarks.questions import Question, Sample

MIN_SIZE = 2


async def ask(question: Question, sizes: Sequence[int], rounds: int, budget_s: float, console: Console) -> list[Sample]:
    """Measure every way at every size, in rounds.

    Each round goes through all of them, so that a slow minute of the machine hits all; the order of the
    ways turns from round to round.

    Args:
        question: The question.
        sizes: Its sizes.
        rounds: At most.
        budget_s: No round but the first is begun that would probably end later.
        console: For progress.
    """
    began_s, longest_s = time.monotonic(), 0.0
    samples: list[Sample] = []
    progress = Progress(
        TextColumn("{task.description:<42}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=console
    )
    with progress:
        bar = progress.add_task(f"{question.name}: start", total=rounds * len(sizes) * len(question.ways))
        async with Lab(question.ways, cached=question.cached) as lab:
            for way in question.ways:
                await question.measure(lab, way, min(MIN_SIZE, *sizes))
            for number in range(rounds):
                round_began_s = time.monotonic()
                if number and round_began_s - began_s + longest_s > budget_s:
                    break
                turned = question.ways[number % len(question.ways) :] + question.ways[: number % len(question.ways)]
                for size in sizes:
                    for way in turned:
                        progress.update(bar, description=f"{question.name}: {size} {question.size}, {way.name}")
                        samples.append(Sample(way.name, size, await question.measure(lab, way, size)))
                        progress.advance(bar)
                longest_s = max(longest_s, time.monotonic() - round_began_s)
    return samples
