"""Calls as a cycle makes them, and a workflow that passes one on, for the tests of the activities."""

from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.client import Client
from temporalio.common import RetryPolicy
from temporalio.testing import ActivityEnvironment

from countersign import Agent, ScriptedModel
from countersign.agent_core.deployment import AgentDeployment
from countersign.agent_core.interrupts import call_digest
from countersign.agent_core.models import Model
from countersign.agent_core.steps import STEP_MARK
from countersign.agent_core.wire import ToolCall

SOON = timedelta(milliseconds=50)


async def environment() -> ActivityEnvironment:
    """An activity's surroundings, with a client that is not connected: only its data converter is used."""
    return ActivityEnvironment(client=await Client.connect("127.0.0.1:1", lazy=True))


def served(*tools: Any, model: Model | None = None, steps: tuple[Any, ...] = ()) -> dict[str, AgentDeployment]:
    """A worker's agents: one, named "tester"."""

    def factory() -> Agent:
        return Agent(name="tester", model=model or ScriptedModel([]), tools=tools)

    found = {info.name: info for step in steps if (info := getattr(step, STEP_MARK))}
    return {"tester": AgentDeployment("tester", "tests", factory, factory(), found)}


def tool_call(tool: str, given: dict[str, Any] | None = None, **changes: Any) -> ToolCall:
    """What a cycle sends for a signed call."""
    call = ToolCall(
        agent="tester", session_id="s", cycle=1, index=0, tool=tool, tool_use_id="use-1", input=given or {},
        digest=call_digest(tool, given or {}), idempotency_key="key-1",
    )  # fmt: skip
    return call.model_copy(update=changes)


@workflow.defn(name="PassesOn", sandboxed=False)
class PassesOn:
    """Runs one activity as a cycle does, with unlimited attempts."""

    @workflow.run
    async def run(self, kind: str, arguments: list[Any], heartbeat_s: float) -> Any:
        return await workflow.execute_activity(
            kind,
            args=arguments,
            start_to_close_timeout=timedelta(seconds=60),
            heartbeat_timeout=timedelta(seconds=heartbeat_s),
            retry_policy=RetryPolicy(
                initial_interval=timedelta(milliseconds=50), maximum_interval=timedelta(milliseconds=100)
            ),
        )
