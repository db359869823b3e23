"""What lines of the audit trail hold of reasons and inputs: a copy of small ones, the size of large ones."""

from countersign.agent_core.json_values import JsonObject, JsonValue, copied, json_size
from countersign.agent_core.wire import AuditEntry, AuditEvent

AUDIT_BYTES = 2_000
"""The most that a line of the audit trail holds of one value, as JSON."""

COPIES: dict[AuditEvent, tuple[str, ...]] = {
    "question_asked": ("reason", "calls"),
    "tool_started": ("input",),
    "input_edited": ("before", "after"),
    "edit_refused": ("input",),
    "batch_cancelled": ("text",),
    "call_refused": ("text",),
}
"""What is copied into lines, by their event; the question, the conversation and the tool's activity have it too."""


def bounded(**values: JsonValue) -> JsonObject:
    """Values for a line of the audit trail; of one that is too large for it, the size in bytes."""
    found: JsonObject = {}
    for name, value in values.items():
        size = json_size(value)
        found |= {name: copied(value)} if size <= AUDIT_BYTES else {f"{name}_bytes": size}
    return found


def without_copies(entry: AuditEntry) -> AuditEntry:
    """A line with sizes in the place of copies, for where there is no room for them."""
    copies = [name for name in entry.detail if entry.event in COPIES and name in COPIES[entry.event]]
    kept = {name: value for name, value in entry.detail.items() if name not in copies}
    sizes = {f"{name}_bytes": json_size(entry.detail[name]) for name in copies}
    return entry.model_copy(update={"detail": {**kept, **sizes}}) if copies else entry
