"""Interrupts: how user code asks a person, and what counts as an answer.

An interrupt is recorded on its event first and raised second; the core looks at the record
after every callback, so that code which swallows the exception can't swallow the pause.
"""

import re
from dataclasses import asdict, dataclass
from typing import Any, Final

from countersign.agent_core.json_values import JsonObject, canonical_json, digest
from countersign.agent_core.plain_answers import approves, refuses
from countersign.agent_core.wire import Question, ShownCall


@dataclass
class Interrupt:
    """A question that stops the loop, as `AgentResult.interrupts` lists it.

    Attributes:
        id: Names this question for ever; send it back as `interruptId`.
        name: Name given by the hook, handler or tool that asks.
        reason: What it gave for the person to see; any JSON value.
        response: The answer, once there is one.
    """

    id: str
    name: str
    reason: Any = None
    response: Any = None

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        return asdict(self)


class InterruptException(BaseException):
    """Raised by `interrupt()` while there is no answer.

    Not an `Exception`, so that an `except Exception` does not catch it by accident.
    """

    def __init__(self, name: str, reason: Any = None) -> None:
        self.name = name
        self.reason = reason
        super().__init__(name)


class Unset:
    """Marks an argument that was not given, where None is a value like any other."""

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = Unset()


def is_refusal(response: Any, answers: JsonObject | None = None) -> bool:
    """True if an answer clearly says no, whatever the code that asked makes of it.

    Args:
        response: The answer.
        answers: The question's own words for approve and deny.
    """
    return refuses(response) or (answers is not None and is_denial(response, answers))


def is_denial(response: Any, answers: JsonObject) -> bool:
    """True if an answer is the question's own word for "deny", alone or with words after it ("n: too expensive")."""
    if "deny" not in answers:
        return False
    deny = answers["deny"]
    if canonical_json(deny) == canonical_json(response):
        return True
    return isinstance(deny, str) and isinstance(response, str) and response.strip().startswith(f"{deny}:")


def refused(question: Question) -> bool:
    """True if a question's answer says no: clearly, or to who judged it. It holds whatever changes (rule 5)."""
    if question.answer is None:
        return False
    return question.verdict is False or is_refusal(question.answer.response, question.answers)


def approved(question: Question) -> bool:
    """True if a question's answer says yes: to who judged it, or, if nothing did, clearly or in its own word."""
    if question.answer is None or question.verdict is not None:
        return question.verdict is True
    response = question.answer.response
    return approves(response) or ("approve" in question.answers and response == question.answers["approve"])


def call_digest(tool: str, canonical_input: Any) -> str:
    """Digest of one call: what is bound to an approval and checked before the tool runs."""
    return digest({"tool": tool, "input": canonical_input})


def question_digest(name: str, reason: Any, calls: list[ShownCall]) -> str:
    """Digest of what a person sees: name, reason, and each call's tool and input."""
    return digest(
        {"name": name, "reason": reason, "calls": [{"tool": call.tool, "input": call.input} for call in calls]}
    )


INTERRUPT_ID = re.compile(r"int-\d+-(?:\d+|batch)-[0-9a-f]{16}")
"""What `question_id` makes."""


def question_id(session_id: str, origin_cycle: int, index: int | None, scope: str, name: str, generation: int) -> str:
    """An id that names one question of one call in one cycle of one session, and is never reused."""
    place = "batch" if index is None else str(index)
    text = digest([session_id, origin_cycle, place, scope, name, generation])
    return f"int-{origin_cycle}-{place}-{text[:16]}"


def as_interrupt(question: Question) -> Interrupt:
    """The question as `AgentResult.interrupts` lists it."""
    return Interrupt(
        id=question.id,
        name=question.name,
        reason=question.reason,
        response=question.answer.response if question.answer else None,
    )
