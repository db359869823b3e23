"""Durable steps in-process: what a worker would refuse is refused here, and errors arrive as from a worker."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from countersign import Agent, ScriptedModel, step
from countersign.agent_core.errors import CountersignError, ModelError, PayloadTooLargeError, StepError, error_named
from countersign.agent_core.wire import MAX_VALUE_BYTES
from countersign.hooks import BeforeModelCallEvent


class OfTheModuleError(Exception):
    """An exception class of an agent module."""


@step
async def echo(value: Any) -> Any:
    """Its argument."""
    return value


@step
async def spoil(values: list[int]) -> int:
    """Changes what it was given."""
    values.append(3)
    return len(values)


@step
async def fails(kind: str) -> None:
    """Raises."""
    raise {"PermissionError": PermissionError, "OfTheModuleError": OfTheModuleError}[kind]("no way in")


@step
async def large() -> str:
    """More than can be sent."""
    return "x" * MAX_VALUE_BYTES


@step(timeout=timedelta(milliseconds=20))
async def slow() -> None:
    """Takes too long."""
    await asyncio.sleep(60)


async def raised_by(awaited: Any) -> BaseException | None:
    """What a hook gets that awaits a step."""
    caught: list[BaseException] = []

    async def hook(event: BeforeModelCallEvent) -> None:
        try:
            await awaited()
        except Exception as error:
            caught.append(error)

    await Agent(ScriptedModel(["done"]), hooks=[hook]).invoke_async("go")
    return caught[0] if caught else None


@pytest.mark.parametrize("value", [{1, 2}, {"at": timedelta(1)}, float("nan")])
async def test_what_is_not_json_is_refused(value):
    """A test in-process finds what a worker could not send."""
    error = await raised_by(lambda: echo(value))
    assert isinstance(error, TypeError)
    assert "the arguments of step" in str(error)


async def test_too_large_a_result_is_a_named_error():
    """As on a worker."""
    assert isinstance(await raised_by(large), PayloadTooLargeError)


async def test_a_step_that_takes_too_long_names_itself():
    """It is no error of the model."""
    error = await raised_by(slow)
    assert isinstance(error, StepError) and not isinstance(error, ModelError)
    assert str(error).endswith("slow did not end within 0.02 s")


async def test_a_step_gets_copies():
    """What it does with its arguments stays with it, as on a worker."""
    values = [1, 2]
    assert await raised_by(lambda: spoil(values)) is None
    assert values == [1, 2]


async def test_errors_of_python_keep_their_class_and_others_their_name():
    """A hook can tell apart here what it can tell apart on a worker, and no more."""
    own = await raised_by(lambda: fails("PermissionError"))
    assert type(own) is PermissionError and own.__cause__ is None
    other = await raised_by(lambda: fails("OfTheModuleError"))
    assert isinstance(other, CountersignError) and not isinstance(other, OfTheModuleError)
    assert (type(other).__name__, str(other)) == ("OfTheModuleError", "no way in")
    assert isinstance(other.__cause__, OfTheModuleError)


@pytest.mark.parametrize("kind", ["StopIteration", "UnicodeDecodeError", "SystemExit", "print", "PayloadTooLargeError"])
def test_a_name_that_words_alone_can_not_make_is_a_class_of_its_own(kind):
    """Nothing that would end a coroutine, or a process."""
    error = error_named(kind, "words")
    assert isinstance(error, CountersignError)
    assert (type(error).__name__, str(error)) == (kind, "words")
