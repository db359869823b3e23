"""What a deliberate difference is, and how to look at a trace. The list is in `differences`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.differential.running import Scenario, Trace

FIELDS = ("stops", "asked", "log", "messages", "seen", "state", "outputs")


@dataclass(frozen=True)
class Difference:
    """One thing that we do otherwise, on purpose.

    Attributes:
        name: Short, for `Scenario.known`.
        there: What the reference does, in words.
        here: What we do, in words.
        rule: Why: the title of a rule of docs/approvals.md, or a reason that begins in lower case.
        scenario: Shows it.
        look: What of the trace shows it.
        shows_there: What `look` finds in the reference's trace.
        shows_here: What it finds in ours.
        hides: The fields of a trace in which any scenario that runs into it may differ.
    """

    name: str
    there: str
    here: str
    rule: str
    scenario: Scenario
    look: Callable[[Trace], Any]
    shows_there: Any
    shows_here: Any
    hides: tuple[str, ...] = FIELDS


def results(trace: Trace) -> list[tuple[str, str]]:
    """(status, first text) of every tool result in the conversation."""
    return [
        (block["toolResult"]["status"], block["toolResult"]["content"][0]["text"])
        for message in trace.messages
        for block in message["content"]
        if "toolResult" in block
    ]


def texts(trace: Trace) -> list[str]:
    """Every text of the conversation."""
    return [block["text"] for message in trace.messages for block in message["content"] if "text" in block]


def notes(trace: Trace, *starts: str) -> list[str]:
    """The lines of the log that begin like this, whatever call they belong to."""
    in_order = isinstance(trace.log, list)
    entries = [text for _, text in trace.log] if in_order else [text for texts in trace.log.values() for text in texts]
    return [text for text in entries if text.startswith(starts)]
