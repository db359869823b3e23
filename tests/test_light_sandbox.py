"""The light sandbox tells codecs and storage what Temporal's own sandbox tells them."""

import dataclasses
import runpy
import uuid
from collections.abc import Sequence
from datetime import timedelta

import pytest
from temporalio import activity, workflow
from temporalio.api.common.v1 import Payload
from temporalio.client import Client
from temporalio.converter import DataConverter, PayloadCodec, SerializationContext, WithSerializationContext
from temporalio.worker import Worker, WorkflowInstance
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from countersign.workflows import light_sandbox
from countersign.workflows.light_sandbox import LightSandboxRunner


@activity.defn
async def doubled(number: int) -> int:
    """Twice the number."""
    return 2 * number


@workflow.defn
class Doubling:
    """Two activities, one after the other."""

    @workflow.run
    async def run(self, number: int) -> int:
        """Four times the number."""
        for _ in range(2):
            number = await workflow.execute_activity(doubled, number, start_to_close_timeout=timedelta(seconds=10))
        return number


class Noting(PayloadCodec, WithSerializationContext):
    """Changes nothing; notes for what each payload is."""

    def __init__(self, seen: list[str], context: str = "none") -> None:
        self.seen, self.context = seen, context

    def with_context(self, context: SerializationContext) -> "Noting":
        """See `WithSerializationContext`."""
        shown = dataclasses.replace(context, workflow_id="id")  # type: ignore[type-var]  # all contexts are dataclasses
        return Noting(self.seen, str(shown))

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """See `PayloadCodec`."""
        self.seen.append(f"encode {self.context}")
        return list(payloads)

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """See `PayloadCodec`."""
        self.seen.append(f"decode {self.context}")
        return list(payloads)


async def _contexts(server: Client, runner: SandboxedWorkflowRunner) -> list[str]:
    seen: list[str] = []
    client = Client(**{**server.config(), "data_converter": DataConverter(payload_codec=Noting(seen))})
    queue = "doubling"
    async with Worker(client, task_queue=queue, workflows=[Doubling], activities=[doubled], workflow_runner=runner):
        assert await client.execute_workflow(Doubling.run, 3, id=uuid.uuid4().hex, task_queue=queue) == 12
    return sorted(seen)


async def test_codecs_hear_the_same_contexts(client):
    """Each payload is for the same workflow or activity as in Temporal's own sandbox."""
    light = await _contexts(client, LightSandboxRunner())
    assert any("doubled" in one for one in light)
    assert light == await _contexts(client, SandboxedWorkflowRunner())


async def test_the_sdk_still_keeps_the_workflow_where_it_is_looked_for(client, monkeypatch):
    """If a later SDK moved it, all would work, slowly; this test says so."""
    quick: list[bool] = []
    create = LightSandboxRunner.create_instance

    def noted(runner: LightSandboxRunner, details: object) -> WorkflowInstance:
        instance = create(runner, details)
        quick.append(set(light_sandbox.QUESTIONS) <= vars(instance).keys())
        return instance

    monkeypatch.setattr(LightSandboxRunner, "create_instance", noted)
    await _contexts(client, LightSandboxRunner())
    assert quick
    assert all(quick)


@pytest.mark.parametrize("place", ["_VARIABLES", "_INSIDE"])
async def test_without_the_short_way_the_sdks_own_is_taken(client, monkeypatch: pytest.MonkeyPatch, place: str):
    """A workflow runs on an SDK that keeps its insides elsewhere."""
    monkeypatch.setattr(light_sandbox, place, "elsewhere")
    assert await _contexts(client, LightSandboxRunner())


def test_private_names_of_the_sdk_are_not_needed(monkeypatch: pytest.MonkeyPatch):
    """A later SDK that renames them does not keep a worker from starting."""
    monkeypatch.delattr("temporalio.worker.workflow_sandbox._runner._Instance")
    monkeypatch.delattr("temporalio.worker.workflow_sandbox._in_sandbox.InSandbox")
    assert "LightSandboxRunner" in runpy.run_path(light_sandbox.__file__)
