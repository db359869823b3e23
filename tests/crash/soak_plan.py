"""What the sessions of a soak are asked to do, what operators say, and what must have happened in the end."""

import json
import random
import zlib
from dataclasses import dataclass
from typing import Any

from tests.crash.reference import UNKNOWN, Effects

TOOLS = ("pay", "choose", "fail", "note", "ship", "delete")
BATCH = 4
"""So many calls in one message are asked about as a batch, by the agent's hook."""


@dataclass(frozen=True)
class Plan:
    """One session.

    Attributes:
        session_id: Its id.
        prompts: One, or several for a session that stays open.
        options: Of its start.
    """

    session_id: str
    prompts: tuple[str, ...]
    options: dict[str, Any]

    def wanted(self) -> set[str]:
        """The effects that must have happened, each once; no other one may have."""
        return {label for prompt in self.prompts for calls in prompt.split(" / ") for label in self._of(calls)}

    def _of(self, calls: str) -> list[str]:
        uses = [use.split(":") for use in calls.split()]
        if len(uses) >= BATCH and not approved(self.session_id):
            return []
        return [label for tool, label, *_ in uses if not gated(tool, label) or approved(label)]


def plan(prefix: str, number: int, chance: random.Random) -> Plan:
    """A random session.

    Args:
        prefix: Of its id.
        number: Its number; labels are made of it, so that none comes twice.
        chance: Where the rest comes from.
    """
    labels = (f"s{number}-{'risky' if chance.random() < 0.5 else 'safe'}-{place}" for place in range(100))

    def use() -> str:
        tool = chance.choice(TOOLS)
        pause = f":{chance.uniform(0, 1):.1f}" if tool in ("note", "ship") and chance.random() < 0.3 else ""
        return f"{tool}:{next(labels)}{pause}"

    def prompt() -> str:
        return " / ".join(" ".join(use() for _ in range(chance.randint(1, 5))) for _ in range(chance.randint(1, 3)))

    is_open = chance.random() < 0.2
    options: dict[str, Any] = {"lifetime": "open" if is_open else "turn"}
    if chance.random() < 0.3:
        options["continue_after_events"] = chance.choice((20, 50))
    if chance.random() < 0.2:
        options["resume"] = "all"
    if chance.random() < 0.2:
        options["handover_after_s"] = 0
    return Plan(f"{prefix}-{number}", tuple(prompt() for _ in range(2 if is_open else 1)), options)


def gated(tool: str, label: str) -> bool:
    """Whether a person is asked if the call may run."""
    return tool == "pay" or (tool == "delete" and "risky" in label)


def approved(label: str) -> bool:
    """Whether operators approve it; all of them say the same."""
    return zlib.crc32(label.encode()) % 4 > 0


def answer_to(card: dict[str, Any], session_id: str, effects: Effects) -> Any:
    """What an operator says to a question.

    Args:
        card: The question as lists show it.
        session_id: Whose it is.
        effects: Where to look before saying what became of a call.
    """
    if card["name"] == "batch":
        return "y" if approved(session_id) else "n: not these"
    if card["name"] == "colour":
        return "blue"
    label = str(json.loads(card["calls"][0]["input"])["label"])
    if card["name"] == UNKNOWN:
        return {"result": f"did {label}"} if effects.counts_of(label) else "retry"
    return "y" if approved(label) else "n: not this one"
