"""Makes docs/differences.md: `python -m tests.differential.page`."""

from pathlib import Path

from tests.differential.differences import DIFFERENCES

PAGE = Path(__file__).parents[2] / "docs" / "differences.md"

_HEAD = """# Differences from Strands

Countersign takes over the names and the behaviour of the Strands Agents SDK. Over a thousand scenarios run side by side
through `strands-agents` 1.62 and Countersign and must go the same way: stop reasons, questions, errors, the order in
which hooks, handlers and tools run, the conversation, what the model sees, `agent.state`. This page lists where they go
another way on purpose. Each row is a scenario of the test suite that asserts both sides. A reason with a capital is the
title of one of [the rules of approvals](approvals.md).

| name | strands-agents 1.62 | Countersign | why |
| --- | --- | --- | --- |
"""

_TAIL = """
What Strands has and Countersign does not: [coming from Strands](porting.md), and the end of [semantics](semantics.md).

This page is made from the list in `tests/differential/differences.py` by `python -m tests.differential.page`.
"""


def page() -> str:
    """The page's text."""
    rows = [
        f"| {item.name} | {_cell(item.there)} | {_cell(item.here)} | {_cell(item.rule)} |\n" for item in DIFFERENCES
    ]
    return _HEAD + "".join(rows) + _TAIL


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page())
