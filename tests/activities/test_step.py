"""The step activity: results, and which failures are repeated."""

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment
from tests.activities.calls import served

from countersign import step
from countersign.activities.step import StepActivities
from countersign.agent_core.interrupts import InterruptException
from countersign.agent_core.wire import MAX_VALUE_BYTES, StepCall


@step
async def echoes(value, *, twice=False):
    return [value, value] if twice else value


@step
async def raises(kind):
    raise {"connection": ConnectionResetError("gone"), "value": KeyError("odd")}[kind]


@step
async def asks():
    raise InterruptException("may-i", None)


@step
async def returns_a_set():
    return {1, 2}


@step
async def returns_much():
    return "x" * MAX_VALUE_BYTES


async def run(function, *args, **keywords):
    activities = StepActivities(served(steps=(echoes, raises, asks, returns_a_set, returns_much)))
    name = f"{function.__module__}:{function.__qualname__}"
    call = StepCall(agent="tester", step=name, args=list(args), keywords=keywords)
    return await ActivityEnvironment().run(activities.run_step, call)


async def failure(function, *args) -> tuple[str | None, bool]:
    with pytest.raises(ApplicationError) as raised:
        await run(function, *args)
    return raised.value.type, raised.value.non_retryable


async def test_a_step_gets_its_arguments_and_gives_its_result():
    """Positional and keyword arguments arrive as they were sent."""
    assert await run(echoes, {"a": [1]}, twice=True) == [{"a": [1]}, {"a": [1]}]


async def test_a_lost_connection_is_repeated_and_an_ordinary_error_is_not():
    """The failure is named after what the step raised."""
    assert await failure(raises, "connection") == ("ConnectionResetError", False)
    assert await failure(raises, "value") == ("KeyError", True)


async def test_a_result_that_can_not_be_sent_is_a_named_error():
    """What is not JSON, and what is too large."""
    assert await failure(returns_a_set) == ("TypeError", True)
    assert await failure(returns_much) == ("PayloadTooLargeError", True)


async def test_a_step_that_asks_fails_once():
    """An interrupt is no Exception; it must not slip through as something to repeat."""
    assert await failure(asks) == ("RuntimeError", True)
