"""Findings of many replays, each cause once: what differs in nothing but ids is said with ID in its place. Pure."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from countersign.agent_client.replay_findings import Finding
from countersign.agent_core.interrupts import INTERRUPT_ID
from countersign.agent_core.shell import word

MOST_NAMED = 5
"""Sessions and cycles that are named beside a cause; the table has them all."""


@dataclass
class Cause:
    """One finding, and where it was met.

    Attributes:
        finding: As it was met first, or with ID for ids if it was met elsewhere, too.
        met: The workflow ids.
    """

    finding: Finding
    met: list[str] = field(default_factory=list)

    @property
    def where(self) -> str:
        """The sessions and cycles, in words."""
        if len(self.met) == 1:
            return self.met[0]
        more = f", and {len(self.met) - MOST_NAMED} more" if len(self.met) > MOST_NAMED else ""
        return f"{len(self.met)} of them ({', '.join(self.met[:MOST_NAMED])}{more})"


def causes(found: Iterable[tuple[str, Finding]]) -> list[Cause]:
    """The findings by cause, in the order in which they were met first.

    Args:
        found: Each finding with the session or cycle where it was met.
    """
    by_text: dict[tuple[Finding, int], Cause] = {}
    met_before = Counter[tuple[Finding, str]]()
    for workflow_id, finding in found:
        key = replace(
            finding, what=_without_ids(finding.what, workflow_id), advice=_without_ids(finding.advice, workflow_id)
        )
        number = met_before[key, workflow_id]  # a second question of one session is told beside the first
        met_before[key, workflow_id] += 1
        cause = by_text.setdefault((key, number), Cause(finding))
        cause.met.append(workflow_id)
        if len(cause.met) > 1:
            cause.finding = key
    return list(by_text.values())


def _without_ids(text: str, workflow_id: str) -> str:
    known = "|".join(re.escape(name) for name in (word(workflow_id), workflow_id))
    return INTERRUPT_ID.sub("ID", re.sub(rf"(?<![\w/-])(?:{known})(?![\w-])", "ID", text))
