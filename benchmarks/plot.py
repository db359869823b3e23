"""Draws the figures of a run: one panel for each question, against the size or as bars."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.questions import Medians, Question, Sample, medians

COLOURS = {"countersign": "#2a6f97", "floor": "#8d99ae", "peer": "#d1495b"}
IN_A_ROW = 3
SECOND = {"handover_after=0": "#61a5c2", "countersign, signal": "#61a5c2"}


def draw(found: Mapping[Question, Sequence[Sample]], path: Path) -> None:
    """Write an image; its kind is the file's ending.

    Args:
        found: Samples by question.
        path: The image.
    """
    from matplotlib.figure import Figure  # noqa: PLC0415  # an extra; needed for --plot alone

    columns = min(len(found), IN_A_ROW)
    rows = math.ceil(len(found) / columns)
    figure = Figure(figsize=(4.2 * columns, 3.6 * rows), layout="constrained")
    panels: list[Any] = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axes, (question, samples) in zip(panels, found.items(), strict=False):
        _panel(axes, question, medians(samples))
    for axes in panels[len(found) :]:
        axes.remove()
    figure.savefig(path, dpi=120)


def _panel(axes: Any, question: Question, found: Sequence[Medians]) -> None:
    column = next((column for column in question.columns if column.key == question.drawn), question.columns[0])
    ways = list(dict.fromkeys(one.way for one in found))
    sizes = sorted({one.size for one in found})
    for way in ways:
        own = sorted((one for one in found if one.way == way), key=lambda one: one.size)
        values = [one.figures[column.key] for one in own]
        around = [
            [one.figures[column.key] - one.lowest[column.key] for one in own],
            [one.highest[column.key] - one.figures[column.key] for one in own],
        ]
        colour = (COLOURS | SECOND).get(way)
        if len(sizes) > 1:
            axes.errorbar([one.size for one in own], values, around, label=way, color=colour, marker="o", capsize=3)
        else:
            axes.bar([way.replace("_after", "\n_after")], values, yerr=around, color=colour, capsize=3)
    axes.set_title(question.title, fontsize=9, wrap=True)
    axes.set_ylabel(column.title)
    axes.set_ylim(bottom=0)
    if len(sizes) > 1:
        axes.set_xlabel(question.size)
        axes.set_xticks(sizes)
        axes.legend(fontsize=8)
    else:
        axes.set_xlabel(f"{sizes[0]} {question.size}")
