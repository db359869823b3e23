"""A workflow that calls one function of a policed module, as a cycle calls a hook, and tells what came of it."""

import inspect
from typing import Any

from temporalio import workflow
from temporalio.worker.workflow_sandbox._importer import Importer

from countersign.workflows.guard import policed
from countersign.workflows.sandbox import import_time

CALLBACK = "hook Probe.before_tool_call"


@workflow.defn(name="SandboxProbe")
class SandboxProbe:
    """Stands where `AgentCycle` stands: passed through itself, with user code inside."""

    @workflow.run
    async def run(self, module: str, function: str, guarded: bool = True) -> dict[str, Any]:
        """Import the module in this run and call the function.

        Args:
            module: Dotted name of a policed module.
            function: A function of it without arguments.
            guarded: False leaves out the audit hook and the explanation; the sandbox alone is left.

        Returns:
            {"value": ...}, or {"error": class name, "text": message}.
        """
        assert Importer.current_importer() is not None, "the probe runs outside of the sandbox"
        try:
            with import_time():
                loaded = __import__(module, fromlist=["*"])
            if not guarded:
                return {"value": await _settled(getattr(loaded, function)())}
            with policed(CALLBACK):
                return {"value": await _settled(getattr(loaded, function)())}
        except Exception as error:
            return {"error": type(error).__name__, "text": str(error)}


async def _settled(value: Any) -> Any:
    value = await value if inspect.isawaitable(value) else value
    return value if value is None or isinstance(value, bool | int | float | str | list | dict) else repr(value)
