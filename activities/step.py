"""Runs durable steps. Repeated after connection errors, timeouts and lost workers."""

import inspect
from collections.abc import Mapping
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError

from countersign.activities.heartbeats import heartbeats
from countersign.activities.threads import in_thread
from countersign.agent_core.deployment import AgentDeployment
from countersign.agent_core.errors import ModelThrottledException, ModelUnavailableError
from countersign.agent_core.interrupts import InterruptException
from countersign.agent_core.steps import StepInfo
from countersign.agent_core.wire import STEP_ACTIVITY, StepCall

_RETRYABLE = (OSError, TimeoutError, ModelThrottledException, ModelUnavailableError)


class StepActivities:
    """The step activity.

    Args:
        deployments: The agents of this worker, by name.
    """

    def __init__(self, deployments: Mapping[str, AgentDeployment]) -> None:
        self._deployments = deployments

    @activity.defn(name=STEP_ACTIVITY)
    async def run_step(self, call: StepCall) -> Any:
        """Run a step and return its result, which must be JSON.

        Raises:
            ApplicationError: Its type is the name of what the step raised.
        """
        deployment = self._deployments.get(call.agent)
        info = deployment.step(call.step) if deployment else None
        if info is None:
            raise ApplicationError(f"no step {call.step!r} on this worker", type="AgentDefinitionError")
        try:
            async with heartbeats():
                result = await _run(info, call)
            info.check_result(result)
            return result
        except InterruptException as error:
            # It is no Exception: unconverted, it would count as retryable.
            text = f"step {call.step} raised an interrupt; a step can't ask, only hooks, handlers and tools can"
            raise ApplicationError(text, type="RuntimeError", non_retryable=True) from error
        except (Exception, SystemExit) as error:  # an exit would end the worker, and then the next one
            retryable = info.retried and isinstance(error, _RETRYABLE)
            raise ApplicationError(str(error), type=type(error).__name__, non_retryable=not retryable) from error


async def _run(info: StepInfo, call: StepCall) -> Any:
    if inspect.iscoroutinefunction(info.function):
        return await info.function(*call.args, **call.keywords)
    result = await in_thread(lambda: info.function(*call.args, **call.keywords))
    return await result if inspect.isawaitable(result) else result
