"""What a session is started with."""

from datetime import timedelta
from typing import Any

import pytest

from countersign.agent_client.starting import (
    check_session_id,
    checked_prompt,
    new_session_id,
    session_options,
    start_argument,
)
from countersign.agent_core.answers import check_prompt
from countersign.agent_core.errors import AnswerRefused, PayloadTooLargeError
from countersign.agent_core.wire import MAX_PROMPT_BYTES, MAX_VALUE_BYTES

NONE_GIVEN: dict[str, Any] = {"lifetime": "turn", "resume": "each", "limits": None, "invocation_state": None}


def test_a_fresh_id_names_the_agent_and_is_new_every_time():
    """Ids can be read in a list of workflows."""
    first, second = new_session_id("janitor"), new_session_id("janitor")
    assert first.startswith("janitor-")
    assert first != second


@pytest.mark.parametrize("bad", ["", "a b", "a\nb", "\x1b[2J", "x" * 201, "-d", "--all", "s-1/cycle-2"])
def test_an_id_that_cannot_be_typed_is_refused(bad):
    """Ids stand in commands that people paste, and those of cycles are made from them."""
    with pytest.raises(ValueError, match="session id"):
        check_session_id(bad)


def test_options_that_are_not_given_are_left_to_the_session():
    """Defaults have one owner."""
    assert session_options(**NONE_GIVEN, deadline=None) == {"lifetime": "turn", "resume": "each"}


def test_durations_travel_in_seconds():
    """The wire knows no timedelta."""
    options = session_options(**NONE_GIVEN, handover_after=timedelta(0), deadline=timedelta(hours=1))
    assert (options["handover_after_s"], options["deadline_s"]) == (0, 3600)


@pytest.mark.parametrize("limits", [None, {}, {"turns": None}])
def test_a_limit_that_is_none_is_not_sent(limits):
    """It would be no limit."""
    assert "limits" not in session_options(**{**NONE_GIVEN, "limits": limits})


@pytest.mark.parametrize("bad", [{"limits": {"turns": 0}}, {"lifetime": "day"}, {"deadline": timedelta(0)}])
def test_an_option_out_of_range_is_refused_by_name(bad):
    """The message names the option in one line."""
    with pytest.raises(ValueError, match=next(iter(bad))) as caught:
        session_options(**{**NONE_GIVEN, **bad})
    assert "\n" not in str(caught.value)


def test_the_argument_carries_protocol_agent_prompt_and_options_flat():
    """This is the wire contract that any language speaks."""
    assert start_argument("janitor", "clean up", {"lifetime": "open"}) == {
        "protocol": 1,
        "agent": "janitor",
        "prompt": "clean up",
        "lifetime": "open",
    }


def test_a_prompt_over_the_limit_is_refused_before_it_is_sent():
    """Temporal would refuse it later and less clearly."""
    with pytest.raises(PayloadTooLargeError, match="at most"):
        start_argument("janitor", "x" * MAX_VALUE_BYTES, {})


@pytest.mark.parametrize(
    ("prompt", "error"),
    [
        (" \n", ValueError),
        ([], ValueError),
        ({"text": "one block alone"}, ValueError),
        ([{"role": "user", "content": [{"text": "a message"}]}], ValueError),
        ([{"toolUse": {"toolUseId": "t", "name": "pay", "input": {}}}], ValueError),
        ([{"text": {1, 2}}], TypeError),
        ("x" * (MAX_PROMPT_BYTES - 5), PayloadTooLargeError),
    ],
)
def test_a_prompt_that_the_session_would_refuse_is_not_sent(prompt, error):
    """It is the session's own check that is made before; a signal could not tell of a refusal."""
    with pytest.raises(error):
        checked_prompt(prompt)
    with pytest.raises(AnswerRefused):
        check_prompt(prompt)


def test_a_misspelt_limit_is_refused():
    """The session would ignore it."""
    with pytest.raises(TypeError, match="there is no limit 'turn'; the limits are turns"):
        session_options(lifetime="turn", resume="each", limits={"turn": 3}, invocation_state=None)
