"""Temporal's sandbox without what it does for every payload.

The SDK asks a sandboxed workflow several times per payload (to encode, store and decode it) which
command the payload belongs to, and sets the whole sandbox up for each question: a fifth of what a
quick cycle costs the worker's main thread. The answer is read from the SDK's own tables and runs no
user code, so it is read without. What runs workflow code, `activate`, is the SDK's own.

No private name of the SDK is imported here. Where a later SDK keeps the workflow elsewhere, its own way is taken.
"""

from dataclasses import dataclass
from typing import Any

from temporalio.worker import WorkflowInstance
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

QUESTIONS = ("get_serialization_context", "get_external_store_context")
"""What the SDK asks for every payload."""

_VARIABLES, _INSIDE = "globals_and_locals", "__temporal_in_sandbox"  # where the SDK 1.35 keeps the sandboxed workflow


@dataclass(frozen=True)
class LightSandboxRunner(SandboxedWorkflowRunner):
    """A `SandboxedWorkflowRunner` whose workflows answer quickly which command a payload belongs to."""

    def create_instance(self, det: Any) -> WorkflowInstance:
        """See `WorkflowRunner`."""
        instance = super().create_instance(det)
        variables = getattr(instance, _VARIABLES, None)
        inside = variables.get(_INSIDE) if isinstance(variables, dict) else None
        for question in QUESTIONS:
            quick = getattr(inside, question, None)
            if quick is not None and hasattr(instance, question):
                setattr(instance, question, quick)
        return instance
