"""Why an approval does not hold any more, in the words that the question after it shows. Pure."""

from countersign.agent_core.interrupts import approved, refused
from countersign.agent_core.json_values import JsonValue, canonical_json
from countersign.agent_core.wire import Question


def why_void(answered: Question, reason: JsonValue, digest: str, *, lapsed: bool) -> str | None:
    """Why a person is asked again who has answered already.

    Args:
        answered: The question with its answer.
        reason: Of the question that follows it.
        digest: Of that one.
        lapsed: Whether the answer is too old.

    Returns:
        None if no approval of a call went before: after a refusal, or if a tool's body asks.
    """
    given = answered.answer
    if answered.scope not in ("call", "batch") or given is None:
        return None
    if refused(answered):
        return None
    who = (given.responder.get("id") if isinstance(given.responder, dict) else None) or "somebody"
    since = f"it was {'approved' if approved(answered) else 'answered'} by {who}"
    if canonical_json(answered.reason) != canonical_json(reason):
        return f"the reason changed since {since}"
    if answered.digest != digest:
        return f"what would run changed since {since}"
    return f"the call had not started in time after {since}" if lapsed else None
