"""Temporal's sandbox without what it does for every payload.

The SDK asks a sandboxed workflow several times per payload (to encode, store and decode it) which
command the payload belongs to, and sets the whole sandbox up for each question: a fifth of what a
quick cycle costs the worker's main thread. The answer is read from the SDK's own tables and runs no
user code, so it is read without. What runs workflow code, `activate`, is the SDK's own.
"""

from dataclasses import dataclass
from typing import Any

from temporalio.converter import SerializationContext, StorageDriverStoreContext
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner
from temporalio.worker.workflow_sandbox._in_sandbox import InSandbox
from temporalio.worker.workflow_sandbox._runner import _Instance


class _LightInstance(_Instance):
    def get_serialization_context(self, command_info: Any) -> SerializationContext | None:
        """See `WorkflowInstance`."""
        if (inside := self._inside) is None:
            return super().get_serialization_context(command_info)
        return inside.get_serialization_context(command_info)

    def get_external_store_context(self, command_info: Any) -> StorageDriverStoreContext:
        """See `WorkflowInstance`."""
        if (inside := self._inside) is None:
            return super().get_external_store_context(command_info)
        return inside.get_external_store_context(command_info)

    @property
    def _inside(self) -> InSandbox | None:
        """The workflow as the SDK made it in the sandbox; None if a later SDK keeps it elsewhere."""
        found = self.globals_and_locals.get("__temporal_in_sandbox")
        return found if isinstance(found, InSandbox) else None


@dataclass(frozen=True)
class LightSandboxRunner(SandboxedWorkflowRunner):
    """A `SandboxedWorkflowRunner` whose workflows answer quickly which command a payload belongs to."""

    def create_instance(self, det: Any) -> _Instance:
        """See `WorkflowRunner`."""
        return _LightInstance(det, self.runner_class, self.restrictions)
