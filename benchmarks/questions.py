"""What a benchmark asks, and how an answer is kept: samples, their medians, ratios."""

import statistics
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from benchmarks.lab import Lab
from benchmarks.ways import FLOOR, Way

Figures = dict[str, float]
"""Figures of one measurement, by the name of their column; the unit stands in the column."""


@dataclass(frozen=True)
class Column:
    """A figure's place in the tables.

    Attributes:
        key: Its name in `Figures`.
        title: With the unit.
        digits: After the point.
    """

    key: str
    title: str
    digits: int = 1


@dataclass(frozen=True)
class Question:
    """One benchmark: every way is measured at every size, in rounds.

    Attributes:
        name: On the command line.
        title: Over its table.
        size: What a size is, for instance "cycles".
        sizes: The sizes, and those of a quick run.
        rounds: At most, if the time allows.
        weight: Its part of the time, relative to the others'.
        cached: How many workflows each worker keeps in memory.
        measure: Measures one way at one size.
        drawn: The column that a picture shows.
    """

    name: str
    title: str
    size: str
    sizes: tuple[int, ...]
    quick_sizes: tuple[int, ...]
    rounds: int
    weight: float
    ways: tuple[Way, ...]
    columns: tuple[Column, ...]
    measure: Callable[[Lab, Way, int], Awaitable[Figures]]
    cached: int = 500
    drawn: str = ""


@dataclass(frozen=True)
class Sample:
    """One measurement."""

    way: str
    size: int
    figures: Figures


@dataclass(frozen=True)
class Medians:
    """A way's medians at one size.

    Attributes:
        figures: The medians.
        lowest: The least value of each.
        highest: The greatest.
        ratios: Medians against those of the floor at the same size.
    """

    way: str
    size: int
    samples: int
    figures: Figures
    lowest: Figures
    highest: Figures
    ratios: Figures


def medians(samples: Sequence[Sample]) -> list[Medians]:
    """Medians of each way at each size, by size and then as the ways were measured first."""
    groups: dict[tuple[int, str], list[Figures]] = {}
    for sample in samples:
        groups.setdefault((sample.size, sample.way), []).append(sample.figures)
    middles = {key: _over(statistics.median, group) for key, group in groups.items()}
    found = []
    for size, way in sorted(groups, key=lambda key: key[0]):
        group, middle, floor = groups[size, way], middles[size, way], middles.get((size, FLOOR), {})
        ratios = {key: value / floor[key] for key, value in middle.items() if floor.get(key)}
        found.append(Medians(way, size, len(group), middle, _over(min, group), _over(max, group), ratios))
    return found


def _over(what: Callable[[list[float]], float], group: Sequence[Figures]) -> Figures:
    return {key: what([figures[key] for figures in group]) for key in group[0]}
