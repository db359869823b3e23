"""Reads what a failed cycle had finished, from its workflow's history. Safe to repeat."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import ValidationError
from temporalio import activity
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from countersign.activities.segments import Segments
from countersign.agent_core.calls_in_doubt import attempted, bare
from countersign.agent_core.conversation import unpacked
from countersign.agent_core.errors import UnreadableHereError, reason_of
from countersign.agent_core.json_values import json_size
from countersign.agent_core.large_results import shorten
from countersign.agent_core.messages import Message, ToolResult, tool_uses
from countersign.agent_core.wire import (
    MAX_VALUE_BYTES,
    MODEL_ACTIVITY,
    OUR_ACTIVITIES,
    READ_CYCLE_ACTIVITY,
    ModelCall,
    ModelResponse,
    Piece,
    RecoveredCall,
    RecoveredCycle,
    Recovery,
    ToolCall,
    ToolOutcome,
    Wire,
)

RECOVERY_BYTES = 1_000_000
"""What a failed cycle had done may weigh so much: the next cycle gets it beside the conversation."""

Shape = TypeVar("Shape", bound=Wire)


@dataclass
class _Scheduled:
    """One activity of the history."""

    kind: str
    argument: Any
    pieces: list[Piece] = field(default_factory=list)
    result: Any = None
    done: bool = False
    failure: str = ""


@dataclass
class _Cycles:
    found: dict[int, RecoveredCycle] = field(default_factory=dict)

    def of(self, cycle: int) -> RecoveredCycle:
        return self.found.setdefault(cycle, RecoveredCycle(cycle=cycle))


@dataclass
class _Sent:
    """The conversation that a model was sent.

    Read from the end: what is wanted is hardly ever in storage, and an old piece that can't be read does not matter.
    """

    pieces: list[Piece]
    segments: Segments
    client: Client

    async def _from_the_end(self) -> AsyncIterator[Message]:
        for piece in reversed(self.pieces):
            for message in reversed(await self.segments.messages([piece], lambda: self.client.data_converter)):
                yield message

    async def since_the_model_spoke(self) -> tuple[Message | None, list[Message]]:
        """The last message of the assistant, and those after it: they hold the results of its calls."""
        found: list[Message] = []
        async for message in self._from_the_end():
            if message["role"] == "assistant":
                return message, found
            found.insert(0, message)
        return None, []

    async def last(self, count: int) -> list[Message]:
        """So many of the last messages."""
        found: list[Message] = []
        async for message in self._from_the_end():
            if len(found) == count:
                break
            found.insert(0, message)
        return found


class HistoryActivities:
    """The activity that looks after failed cycles."""

    @activity.defn(name=READ_CYCLE_ACTIVITY)
    async def read_cycle(self, workflow_id: str, run_id: str | None, reason: str) -> Recovery:
        """What a cycle's workflow had finished when it failed, was terminated or got stuck.

        A tool call counts as never started only where that is certain.

        Args:
            workflow_id: The cycle's workflow.
            run_id: Its run; the latest one if None.
            reason: Why it is looked after; passed through.
        """
        try:
            return await _recovery(activity.client(), workflow_id, run_id, reason)
        except UnreadableHereError:
            raise
        except ValueError as error:  # no other attempt reads it either
            return Recovery(reason=f"{reason}, and its history can't be read ({reason_of(error):.300})", lost=True)
        except RPCError as error:
            if error.status != RPCStatusCode.NOT_FOUND:
                raise
            # It was there: who asks has started it. It was deleted, or its retention is over.
            return Recovery(reason=f"{reason}, and its history is gone", lost=True)


async def _recovery(client: Client, workflow_id: str, run_id: str | None, reason: str) -> Recovery:
    """What a cycle had finished.

    Raises:
        ValueError: If its history holds arguments that are none of ours, or that nobody can decode.
    """
    cycles, segments = _Cycles(), Segments()
    for item in await _activities(client, workflow_id, run_id):
        if item.kind == MODEL_ACTIVITY:
            sent = _Sent(item.pieces, segments, client)
            await _take_model_call(cycles, ModelCall.model_validate(item.argument), item, sent)
        elif not item.kind.startswith(OUR_ACTIVITIES):
            call = ToolCall.model_validate(item.argument)
            cycle = cycles.of(call.cycle)
            attempted(cycle, [_recovered(call, item)])
            cycle.message = call.message or cycle.message
    return _fitting(Recovery(reason=reason, cycles=[cycles.found[number] for number in sorted(cycles.found)]))


def _fitting(recovery: Recovery) -> Recovery:
    """The recovery as it can be sent, and handed on to the next cycle."""
    surplus_bytes = json_size(recovery.model_dump(mode="json")) - RECOVERY_BYTES
    if surplus_bytes <= 0:
        return recovery
    shorten(_results(recovery), surplus_bytes, "all else that its cycle had done when it failed")
    if json_size(recovery.model_dump(mode="json")) > MAX_VALUE_BYTES:
        for call in (call for cycle in recovery.cycles for call in cycle.calls if call.status == "unknown"):
            call.call = None  # the question then shows it as the model made it
        for run in (run for cycle in recovery.cycles for run in cycle.earlier):
            run.outcome = ToolOutcome(kind="result")  # that it ran counts more than what it wrote to the state
    if json_size(recovery.model_dump(mode="json")) <= MAX_VALUE_BYTES:
        return recovery
    return Recovery(reason=f"{recovery.reason}, and what it had done is too large to be read back", lost=True)


def _results(recovery: Recovery) -> Iterator[ToolResult]:
    for cycle in recovery.cycles:
        for message in cycle.opened_with:
            yield from (block["toolResult"] for block in message["content"] if "toolResult" in block)
        for call in cycle.calls:
            if call.outcome is not None and call.outcome.result is not None:
                yield call.outcome.result


async def _take_model_call(cycles: _Cycles, call: ModelCall, item: _Scheduled, sent: _Sent) -> None:
    """Take over what the model answered, and what was made of the conversation until it was asked."""
    asked, before = cycles.of(call.cycle), cycles.found.get(call.cycle - 1)
    spoken, asked.opened_with = await sent.since_the_model_spoke()
    if call.prompt is not None:
        asked.prompt = await sent.last(call.prompt)
    if before is not None and spoken is not None:
        before.message = _as_hooks_left_it(before, spoken)
    # None if it was asked again and did not answer: a hook had discarded its earlier answer.
    asked.response = _read_as(ModelResponse, item.result) if item.done else None


def _as_hooks_left_it(cycle: RecoveredCycle, spoken: Message) -> Message | None:
    """A cycle's message as the model was shown it later; None if it is what the model had answered."""
    raw = cycle.response.message if cycle.response else None
    known = cycle.message or raw
    if known is not None and bool(tool_uses(known)) != bool(tool_uses(spoken)):
        return cycle.message  # another one, that a hook has added
    return spoken if spoken != raw else None


def _read_as(shape: type[Shape], value: Any) -> Shape | None:
    """A recorded value as its shape; None if it is none: anybody can complete an activity by hand."""
    try:
        return shape.model_validate(value)
    except ValidationError:
        return None


def _recovered(call: ToolCall, item: _Scheduled) -> RecoveredCall:
    if item.done:
        outcome = _read_as(ToolOutcome, item.result)
        if outcome is None:
            detail = f"the activity of {call.tool!r} ended with something that is no outcome of a tool"
            return RecoveredCall(index=call.index, status="unknown", call=bare(call), detail=detail)
        if outcome.kind == "unknown":
            return RecoveredCall(index=call.index, status="unknown", call=bare(call), detail=outcome.detail)
        if outcome.kind == "result":
            return RecoveredCall(index=call.index, status="finished", call=bare(call), outcome=outcome)
        return RecoveredCall(index=call.index, status="never_started", detail=outcome.kind)
    # A started activity shows in the history only once it has ended, so nothing is sure here.
    detail = f"its cycle ended while {call.tool!r} was scheduled or running {item.failure}".rstrip()
    return RecoveredCall(index=call.index, status="unknown", call=bare(call), detail=detail)


async def _activities(client: Client, workflow_id: str, run_id: str | None) -> list[_Scheduled]:
    """All activities of a run, in the order in which they were scheduled."""
    handle = client.get_workflow_handle(workflow_id, run_id=run_id)
    scheduled: dict[int, _Scheduled] = {}
    async for event in handle.fetch_history_events():
        await _read(client, event, scheduled)
    return list(scheduled.values())


async def _read(client: Client, event: HistoryEvent, scheduled: dict[int, _Scheduled]) -> None:
    if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
        given = event.activity_task_scheduled_event_attributes
        values = await client.data_converter.decode(given.input.payloads)
        kind = given.activity_type.name
        pieces = unpacked(values[1:]) if kind == MODEL_ACTIVITY else []
        scheduled[event.event_id] = _Scheduled(kind, values[0] if values else None, pieces)
    elif event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
        completed = event.activity_task_completed_event_attributes
        item = scheduled[completed.scheduled_event_id]
        try:
            values = await client.data_converter.decode(completed.result.payloads)
        except UnreadableHereError:
            raise
        except ValueError:  # it ran, and nobody can read what came of it
            values = []
        item.result, item.done = (values[0] if values else None), True
    elif event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_FAILED:
        failed = event.activity_task_failed_event_attributes
        error = await client.data_converter.decode_failure(failed.failure)  # with encryption, its words are hidden
        scheduled[failed.scheduled_event_id].failure = f"({error})"
