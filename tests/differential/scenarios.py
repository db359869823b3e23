"""All scenarios that must go the same way on both sides."""

from tests.differential import approving, asking, documents, handlers, hooks, loops

FAMILIES = {
    "handlers": handlers.ALL,
    "hooks": hooks.ALL,
    "asking": asking.ALL,
    "approving": approving.ALL,
    "documents": documents.ALL,
    "loops": loops.ALL,
}

ALL = [scenario for family in FAMILIES.values() for scenario in family]
