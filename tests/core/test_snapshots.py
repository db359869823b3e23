"""What hooks and handlers remember survives as JSON, or is refused by name."""

import json
from datetime import UTC

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.driving import acts, make, valid

from countersign import Agent, ScriptedModel
from countersign.agent_core.snapshots import Memory, decode, encode
from countersign.errors import EventLoopException, HandlerStateError
from countersign.hooks import (
    AfterInvocationEvent,
    AfterToolsEvent,
    BeforeInvocationEvent,
    BeforeToolCallEvent,
    HookProvider,
)
from countersign.vended_interventions.hitl import HumanInTheLoop

hashable = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
    | st.datetimes() | st.datetimes(timezones=st.just(UTC)) | st.dates() | st.timedeltas(),
    lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3),
    max_leaves=5,
)  # fmt: skip
values = st.recursive(
    hashable,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(hashable, inner, max_size=4)
    | st.sets(hashable, max_size=4) | st.tuples(inner)
    | st.dictionaries(st.sampled_from(["$countersign", "v", "a"]), inner, max_size=3),
    max_leaves=10,
)  # fmt: skip


def same(left, right):
    """Equal, and of the same types all the way down."""
    if type(left) is not type(right) or left != right:
        return False
    if isinstance(left, (list, tuple)):
        return all(same(a, b) for a, b in zip(left, right, strict=True))
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    return True


@given(values)
def test_round_trip_through_json_text(value):
    """Every value that is taken comes back equal and of the same type, through real JSON text."""
    assert same(decode(json.loads(json.dumps(encode(value, "v")))), value)


@given(st.frozensets(st.text() | st.integers()))
def test_equal_sets_have_equal_texts(value):
    """A set's order is not part of it, so that a replay writes the same bytes."""
    assert encode(value, "v") == encode(frozenset(sorted(value, key=repr, reverse=True)), "v")


@pytest.mark.parametrize("culprit", [object(), len, 1j, range(3), type("S", (str,), {})("a")])
def test_refusal_names_the_place(culprit):
    """What can't be carried is named with its path."""
    with pytest.raises(HandlerStateError, match=r"Hook\.memory\['a'\]\[1\]"):
        encode({"a": [0, culprit]}, "Hook.memory")


def _nested(levels, make=lambda value: [value]):
    value = None
    for _ in range(levels):
        value = make(value)
    return value


ENDLESS: list = []
ENDLESS.append(ENDLESS)


@pytest.mark.parametrize(
    ("culprit", "fault"),
    [
        (_nested(101), "nested more than 100 levels"),
        (_nested(51, lambda value: (value,)), "nested more than 100 levels"),
        (_nested(34, lambda value: {1: value}), "nested more than 100 levels"),
        (ENDLESS, "nested more than 100 levels"),
        (10**4300, "an integer of more than 4,300 digits"),
        ("\ud800", "a lone surrogate"),
        ({"\ud800": 1}, "a lone surrogate"),
    ],
    ids=["lists", "tuples", "dicts", "itself", "huge", "text", "key"],
)
def test_what_could_be_written_and_not_read_is_refused(culprit, fault):
    """By name: the session that carries it would end."""
    with pytest.raises(HandlerStateError, match=rf"Hook\.memory.* {fault}"):
        encode(culprit, "Hook.memory")


def test_an_unknown_tag_is_refused():
    """State of a newer version is not guessed at."""
    with pytest.raises(HandlerStateError, match="newer"):
        decode({"$countersign": "matrix", "v": []})


class Remembering(HookProvider):
    """Keeps what a test puts into it, at an event of the test's choice."""

    def __init__(self, event=BeforeToolCallEvent, change=lambda self: None):
        self.items = []
        self.client = object()  # set up once and never changed: not state
        self._event, self._change = event, change

    def register_hooks(self, registry, **kwargs):
        registry.add_callback(self._event, lambda event: self._change(self))


def test_what_never_changes_is_left_alone():
    """A client that the factory sets up does not have to be JSON, and is the same afterwards."""
    hook = Remembering(change=lambda self: self.items.append(1))
    client = hook.client
    make([], acts(1), hooks=[hook])("go")
    assert (hook.items, hook.client) == ([1], client)


EVENTS = [BeforeInvocationEvent, BeforeToolCallEvent, AfterToolsEvent, AfterInvocationEvent]


def put(self):
    self.items = object()


def append(self):
    self.items.append(object())


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("change", [put, append])
def test_a_change_that_cannot_be_carried_fails_by_name(event, change):
    """Assigned or changed in place, at any event: the turn fails and names the attribute; the history is valid."""
    agent = make([], acts(1), hooks=[Remembering(event, change)])
    with pytest.raises(EventLoopException, match=r"Remembering\.items") as caught:
        agent("go")
    assert isinstance(caught.value.original_exception, HandlerStateError)
    assert valid(agent)


@pytest.mark.parametrize("event", [AfterToolsEvent, AfterInvocationEvent])
def test_a_bad_change_beside_an_open_question(event):
    """The same while a call waits: its question goes, its call gets a result."""

    def asks(event: BeforeToolCallEvent):
        event.interrupt("ok?")

    agent = make([], acts(1), hooks=[asks, Remembering(event, put)])
    with pytest.raises(EventLoopException, match=r"Remembering\.items"):
        agent("go")
    assert valid(agent)


def test_new_owners_do_not_shift_the_memory():
    """Memory is found by class and name: another hook in front, or one that is gone, changes nothing."""

    class Named:
        def __init__(self, name, count):
            self.name, self.count = name, count

    before = [Named("a", 0), Named("b", 0)]
    memory = Memory(before)
    before[0].count, before[1].count = 1, 2
    taken = memory.take()
    b, c = Named("b", 0), Named("c", 0)
    later = Memory([c, b])
    later.restore(taken)
    assert (b.count, c.count) == (2, 0)
    assert later.take()["test_new_owners_do_not_shift_the_memory.<locals>.Named:a"]["count"] == 1


class Limit(HookProvider):
    """Has a setting, and counts."""

    def __init__(self, limit, flag=True):
        self.limit, self.flags, self.seen = limit, [flag], 0

    def register_hooks(self, registry, **kwargs):
        """Nothing to listen to."""


def test_what_the_factory_sets_up_is_not_carried():
    """A deployment that changes a setting changes it for sessions that are open; what was counted stays."""
    old = Limit(10)
    memory = Memory([old])
    old.seen = 3
    taken = memory.take()
    assert taken == {"Limit": {"seen": 3}}
    new = Limit(5, flag=1)
    Memory([new]).restore(taken)
    assert (new.limit, new.flags, new.seen) == (5, [1], 3)


def test_true_and_one_are_two_values():
    """A flag that becomes a number has changed."""
    owner = Limit(1)
    memory = Memory([owner])
    owner.flags = [1]
    assert memory.take() == {"Limit": {"flags": [1]}}


def test_what_changed_after_it_was_taken_goes_back():
    """Also what had not changed by then: a call that is asked about does not count twice."""
    owner = Limit(10)
    memory = Memory([owner])
    taken = memory.take()
    owner.seen, owner.flags = 1, [False]
    vars(owner)["extra"] = "new"
    memory.restore(taken)
    assert (owner.seen, owner.flags, hasattr(owner, "extra")) == (0, [True], False)


def test_a_deployed_allow_list_counts_in_a_session_that_is_open():
    """`HumanInTheLoop`'s settings are the code's, not the session's."""
    before = Agent(ScriptedModel(["hi"]), interventions=[HumanInTheLoop(allowed_tools=["*"])])
    after = Agent(ScriptedModel(acts(1)), tools=[], interventions=[HumanInTheLoop()])
    after.memory.restore(before.memory.take())
    assert after.memory.take() == {}
