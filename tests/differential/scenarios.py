"""All scenarios that must go the same way on both sides."""

from tests.differential import (
    approving,
    asking,
    cancelling,
    combined,
    direct,
    documents,
    handlers,
    handlers_asking,
    hook_events,
    hooks,
    loops,
    structured,
)

FAMILIES = {
    "handlers": handlers.ALL,
    "hooks": hooks.ALL,
    "hook_events": hook_events.ALL,
    "asking": asking.ALL,
    "handlers_asking": handlers_asking.ALL,
    "approving": approving.ALL,
    "documents": documents.ALL,
    "loops": loops.ALL,
    "combined": combined.ALL,
    "direct": direct.ALL,
    "cancelling": cancelling.ALL,
    "structured": structured.ALL,
}

ALL = [scenario for family in FAMILIES.values() for scenario in family]
