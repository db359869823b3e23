"""The closest peer, `temporalio-strands-agents`, used as its documentation says: one workflow, its own interrupts.

The conversation manager that drops nothing stands in for Strands' own, which keeps the last 40 messages: so each model
call gets the whole conversation, as with us.

python -m benchmarks.peer --address HOST:PORT
"""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow

with workflow.unsafe.imports_passed_through():
    from strands.agent.conversation_manager import NullConversationManager
    from strands.hooks import BeforeToolCallEvent, HookProvider, HookRegistry
    from strands.models import Model
    from temporalio.strands_agents import StrandsPlugin, TemporalAgent
    from temporalio.strands_agents.workflow import activity_as_tool

    from benchmarks.marks import mark
    from benchmarks.serving import serve
    from benchmarks.work import next_call

TASK_QUEUE = "bench-peer"
TIMEOUT = timedelta(seconds=30)


@activity.defn
async def count(number: int) -> int:
    """Add one.

    Args:
        number: Any number.
    """
    return number + 1


@activity.defn
async def guarded(number: int) -> int:
    """Add one, once a person has approved.

    Args:
        number: Any number.
    """
    mark()
    return number + 1


class Scripted(Model):
    """A model without latency that does what the prompt says (`work`)."""

    def update_config(self, **config: Any) -> None:
        """See `Model`."""

    def get_config(self) -> dict[str, Any]:
        """See `Model`."""
        return {}

    def structured_output(self, *args: Any, **kwargs: Any) -> Any:
        """See `Model`; not used."""
        raise NotImplementedError

    async def stream(self, messages: Any, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        """See `Model`."""
        done = sum(message["role"] == "assistant" for message in messages)
        name = next_call(messages[0]["content"][0]["text"], done)
        yield {"messageStart": {"role": "assistant"}}
        if name is None:
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": "done"}}}
        else:
            yield {"contentBlockStart": {"start": {"toolUse": {"toolUseId": f"call-{done}-0", "name": name}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": f'{{"number": {done}}}'}}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn" if name is None else "tool_use"}}


class AskFirst(HookProvider):
    """Asks before each call of `guarded`."""

    def register_hooks(self, registry: HookRegistry, **kwargs: Any) -> None:
        """See `HookProvider`."""
        registry.add_callback(BeforeToolCallEvent, self._ask)

    def _ask(self, event: BeforeToolCallEvent) -> None:
        if event.tool_use["name"] == "guarded" and event.interrupt("approval", reason="May it run?") != "y":
            event.cancel_tool = "refused"


@workflow.defn
class Peer:
    """One session: an agent, and a signal that answers its question."""

    def __init__(self) -> None:
        self.agent = TemporalAgent(
            model="scripted",
            start_to_close_timeout=TIMEOUT,
            tools=[activity_as_tool(tool, start_to_close_timeout=TIMEOUT) for tool in (count, guarded)],
            hooks=[AskFirst()],
            conversation_manager=NullConversationManager(),
            callback_handler=None,
        )
        self._asks = False
        self._approval: str | None = None

    @workflow.signal
    def approve(self, response: str) -> None:
        """Answer the question."""
        self._approval = response

    @workflow.query
    def asks(self) -> bool:
        """True while it waits for an approval."""
        return self._asks and self._approval is None

    @workflow.run
    async def run(self, said: str) -> str:
        """Do what the prompt says."""
        result = await self.agent.invoke_async(said)
        if result.interrupts:
            self._asks = True
            await workflow.wait_condition(lambda: self._approval is not None)
            response = {"interruptId": result.interrupts[0].id, "response": self._approval}
            result = await self.agent.invoke_async([{"interruptResponse": response}])
        return str(result)


if __name__ == "__main__":
    serve(TASK_QUEUE, [Peer], [count, guarded], client_plugins=[StrandsPlugin(models={"scripted": Scripted})])
