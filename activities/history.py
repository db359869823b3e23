"""Reads what a failed cycle had finished, from its workflow's history. Safe to repeat."""

from dataclasses import dataclass, field
from typing import Any

from temporalio import activity
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from countersign.activities.segments import Segments
from countersign.agent_core.calls_in_doubt import bare
from countersign.agent_core.conversation import unpacked
from countersign.agent_core.messages import Message
from countersign.agent_core.wire import (
    MODEL_ACTIVITY,
    READ_CYCLE_ACTIVITY,
    ModelCall,
    ModelResponse,
    Piece,
    RecoveredCall,
    RecoveredCycle,
    Recovery,
    ToolCall,
    ToolOutcome,
)


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
        client = activity.client()
        try:
            activities = await _activities(client, workflow_id, run_id)
        except RPCError as error:
            if error.status != RPCStatusCode.NOT_FOUND:
                raise
            # It was there: who asks has started it. It was deleted, or its retention is over.
            return Recovery(reason=f"{reason}, and its history is gone", lost=True)
        cycles, segments = _Cycles(), Segments()
        for item in activities:
            if item.kind == MODEL_ACTIVITY:
                asked = cycles.of(ModelCall.model_validate(item.argument).cycle)
                asked.opened_with = await _since_the_model_spoke(item.pieces, segments, client)
                # None if it was asked again and did not answer: a hook had discarded its earlier answer.
                asked.response = ModelResponse.model_validate(item.result) if item.done else None
            elif not item.kind.startswith("countersign."):
                call = ToolCall.model_validate(item.argument)
                cycle = cycles.of(call.cycle)
                cycle.calls = [known for known in cycle.calls if known.index != call.index]
                cycle.calls.append(_recovered(call, item))
        return Recovery(reason=reason, cycles=[cycles.found[number] for number in sorted(cycles.found)])


async def _since_the_model_spoke(pieces: list[Piece], segments: Segments, client: Client) -> list[Message]:
    """The messages after the last one of the assistant; they hold the results of its calls.

    Read from the end: they are hardly ever in storage, and an old piece that can't be read does not matter here.
    """
    found: list[Message] = []
    for piece in reversed(pieces):
        for message in reversed(await segments.messages([piece], lambda: client.data_converter)):
            if message["role"] == "assistant":
                return found
            found.insert(0, message)
    return []


def _recovered(call: ToolCall, item: _Scheduled) -> RecoveredCall:
    if item.done:
        outcome = ToolOutcome.model_validate(item.result)
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
        values = await client.data_converter.decode(completed.result.payloads)
        item.result, item.done = (values[0] if values else None), True
    elif event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_FAILED:
        failed = event.activity_task_failed_event_attributes
        error = await client.data_converter.decode_failure(failed.failure)  # with encryption, its words are hidden
        scheduled[failed.scheduled_event_id].failure = f"({error})"
