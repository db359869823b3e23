"""Calls the model. Safe to repeat; Temporal owns all retries, the vendor SDK's own are off."""

import time
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from temporalio import activity
from temporalio.converter import ActivitySerializationContext, DataConverter
from temporalio.exceptions import ApplicationError

from countersign.activities.heartbeats import heartbeats
from countersign.activities.providers import model_from
from countersign.activities.providers.secrets import without_secrets
from countersign.activities.segments import Segments
from countersign.agent_core.conversation import unpacked
from countersign.agent_core.deployment import AgentDeployment
from countersign.agent_core.errors import AgentDefinitionError, ModelThrottledException, PayloadTooLargeError
from countersign.agent_core.json_values import JsonObject, copied, json_size
from countersign.agent_core.messages import Message
from countersign.agent_core.models import RETRYABLE, Model, answer
from countersign.agent_core.structured_output import output_model
from countersign.agent_core.wire import MODEL_ACTIVITY, ModelCall, ModelResponse

RESPONSE_LIMIT_BYTES = 400_000
"""The most that a model's message may weigh: it is shown in questions and kept in the conversation too."""


class ModelActivities:
    """The model activity.

    Args:
        deployments: The agents of this worker, by name. Their models are made here, once.
        segments: What remembers messages in storage; a process needs one.

    Raises:
        AgentDefinitionError: If a model can't be made, naming its agent.
    """

    def __init__(self, deployments: Mapping[str, AgentDeployment], segments: Segments) -> None:
        self._deployments = deployments
        self._models = {name: _made(name, deployment) for name, deployment in deployments.items()}
        self._segments = segments

    @activity.defn(name=MODEL_ACTIVITY)
    async def call_model(self, given: dict[str, Any], *arguments: list[Message] | JsonObject) -> ModelResponse:
        """Call an agent's model with a conversation. Messages that weigh enough are put into storage, if there is any.

        Args:
            given: A `ModelCall`.
            *arguments: The conversation, in pieces, as `conversation.packed` makes them.

        Raises:
            ApplicationError: Its type is the error's name. Throttling, a service that fails or can't be
                reached, and timeouts are retried, after the pause that the service asks for if it names
                one; everything else is not.
        """
        call = ModelCall.model_validate(given)
        deployment = self._deployments.get(call.agent)
        if deployment is None:
            raise ApplicationError(f"no agent {call.agent!r} on this worker", type="AgentDefinitionError")
        agent = deployment.template
        specs = [tool.tool_spec for name in call.tools if (tool := agent.tool_registry.get(name)) is not None]
        pieces = unpacked(arguments)
        async with heartbeats():
            conversation = await self._segments.messages(pieces, _converter)
            began = time.monotonic()
            try:
                # The messages are kept for other calls: the model gets copies, whatever it does with them.
                given_away = copied(conversation)
                response = await answer(self._models[call.agent], call, given_away, specs, output_model(agent, call))
            except (Exception, SystemExit) as error:  # an exit would end the worker, and then the next one
                # Not "from error": the chain would go into the history, and vendors' errors can hold keys.
                raise _failure(error) from None
            response.duration_s = round(time.monotonic() - began, 6)
            _check_size(response)
            response.stored = await self._segments.store(pieces, conversation, _converter)
        return response


def _check_size(response: ModelResponse) -> None:
    size = json_size(response.model_dump(mode="json"))
    if size > RESPONSE_LIMIT_BYTES:
        error = PayloadTooLargeError("the model's message (with the inputs of its calls)", size, RESPONSE_LIMIT_BYTES)
        raise ApplicationError(str(error), type="PayloadTooLargeError", non_retryable=True)


def _converter() -> DataConverter:
    """The worker's data converter, which is told that it works for an activity: nobody else reads what it makes."""
    info = activity.info()
    context = ActivitySerializationContext(
        namespace=info.namespace,
        activity_id=info.activity_id,
        activity_type=info.activity_type,
        activity_task_queue=info.task_queue,
        workflow_id=info.workflow_id,
        workflow_type=info.workflow_type,
        is_local=info.is_local,
    )
    return activity.client().data_converter.with_context(context)


def _made(agent: str, deployment: AgentDeployment) -> Model:
    try:
        return model_from(deployment.template.model)
    except AgentDefinitionError as error:
        raise AgentDefinitionError(f"agent {agent!r}: {error}") from error


def _failure(error: BaseException) -> ApplicationError:
    """A model's error as it travels: under its own name, with the pause that the service asks for."""
    asked_s = error.retry_after_s if isinstance(error, ModelThrottledException) else None
    return ApplicationError(
        without_secrets(str(error)),
        type=type(error).__name__,
        non_retryable=not isinstance(error, RETRYABLE),
        next_retry_delay=None if asked_s is None else timedelta(seconds=asked_s),
    )
