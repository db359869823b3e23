"""Temporal's sandbox without what it does for every payload.

The SDK asks a sandboxed workflow several times per payload (to encode, store and decode it) which
command the payload belongs to, and sets the whole sandbox up for each question: a third of the CPU
of a quick cycle. The answer is read from the SDK's own tables and runs no user code, so it is read
without. What runs workflow code, `activate`, is the SDK's own.
"""

from dataclasses import dataclass
from typing import Any

from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner
from temporalio.worker.workflow_sandbox._runner import _Instance


class _LightInstance(_Instance):
    def get_serialization_context(self, command_info: Any) -> Any:
        """See `WorkflowInstance`."""
        return self.globals_and_locals["__temporal_in_sandbox"].get_serialization_context(command_info)

    def get_external_store_context(self, command_info: Any) -> Any:
        """See `WorkflowInstance`."""
        return self.globals_and_locals["__temporal_in_sandbox"].get_external_store_context(command_info)


@dataclass(frozen=True)
class LightSandboxRunner(SandboxedWorkflowRunner):
    """A `SandboxedWorkflowRunner` whose workflows answer quickly which command a payload belongs to."""

    def create_instance(self, det: Any) -> _Instance:
        """See `WorkflowRunner`."""
        return _LightInstance(det, self.runner_class, self.restrictions)
