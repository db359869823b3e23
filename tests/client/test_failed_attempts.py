"""Calls that wait for their next attempt: when that comes, and what the last one failed with."""

from datetime import UTC, datetime, timedelta

import pytest
from temporalio.api.failure.v1 import Failure
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.converter import DataConverter
from temporalio.exceptions import ApplicationError

from countersign.agent_client.cli.event_text import call_runs
from countersign.agent_client.payloads import PayloadSettings, data_converter
from countersign.agent_client.waiting_calls import PendingCall, failure_of

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)


def shown(seconds: float, failure: str = "") -> str:
    """A model's call that waits since then, as a person reads it."""
    since = NOW + timedelta(seconds=seconds)
    return call_runs(PendingCall("model", "m", "waiting", since, 3, "q", failure=failure).as_json(), NOW)


def test_an_attempt_to_come_is_not_said_to_last_since_the_future():
    """It is said when it comes, and why there is another one; nothing in that can fake a line."""
    said = shown(5, "ModelThrottledException: slow\ndown\x1b")
    assert "waits for its next attempt at 2026-01-02 12:00:05 UTC (in 5 s), attempt 3" in said
    assert said.endswith("; the one before failed: ModelThrottledException: slow\\ndown\\u001b")
    assert shown(-5) == "a model call has no worker yet since 2026-01-02 11:59:55 UTC (5 s ago), attempt 3"


async def failed(converter: DataConverter, words: str) -> PendingActivityInfo:
    """A call whose last attempt failed with these words."""
    failure = Failure()
    await converter.encode_failure(ApplicationError(words, type="ModelThrottledException"), failure)
    return PendingActivityInfo(last_failure=failure)


async def test_the_last_failure_is_told_in_short():
    """A vendor's words may be long."""
    pending = await failed(DataConverter.default, "slow down " * 100)
    told = await failure_of(DataConverter.default, pending)
    assert told.startswith("ModelThrottledException: slow down slow") and len(told) == 200
    assert await failure_of(DataConverter.default, PendingActivityInfo()) == ""


@pytest.mark.parametrize("has_the_key", [True, False])
async def test_an_encrypted_failure_is_told_to_those_who_have_the_key(tmp_path, has_the_key):
    """Nobody else reads a word of it."""
    keys = tmp_path / "keys"
    keys.write_text(f"k1 {'MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY='}\n")
    keys.chmod(0o600)
    with_keys = data_converter(PayloadSettings(encryption_keys=keys))
    pending = await failed(with_keys, "the secret")
    told = await failure_of(with_keys if has_the_key else data_converter(PayloadSettings()), pending)
    assert ("the secret" in told) == has_the_key
