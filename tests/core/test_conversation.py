"""A conversation in pieces: what is in storage is recognised and never sent again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.agent_core.conversation import GROUP, Conversation, packed, unpacked
from countersign.agent_core.messages import user_message
from countersign.agent_core.wire import StoredRange, StoredSegment


def messages(count, name="m"):
    return [user_message(f"{name}{number}") for number in range(count)]


def segment(count, reference="ref"):
    return StoredSegment(messages=count, reference=reference)


def test_pieces_travel_as_they_came():
    """What is in storage goes on as its reference, what is not as its messages."""
    first, second = messages(2, "a"), messages(3, "b")
    conversation = Conversation([first, second], [segment(2)], [1])
    assert conversation.messages == [*first, *second]
    assert conversation.pieces(conversation.messages) == [segment(2), second]


def test_new_messages_follow():
    """Messages that were added are a piece of their own."""
    conversation, new = Conversation([messages(2)], [segment(2)], []), messages(1, "new")
    conversation.messages.extend(new)
    assert conversation.changed() == (1, [new])


def test_what_an_activity_has_stored_is_replaced_by_its_reference():
    """Its messages are not sent a second time."""
    conversation = Conversation([messages(2), messages(3)])
    conversation.store(conversation.messages, [StoredRange(start=0, segment=segment(5))])
    assert conversation.has_stored
    assert conversation.changed() == (0, [segment(5)])


def test_a_replaced_message_is_sent_and_the_rest_of_its_segment_too():
    """A reference stands for exactly the messages that were stored."""
    conversation = Conversation([messages(2, "a"), messages(2, "b")], [segment(2, "a"), segment(2, "b")], [])
    conversation.messages[1] = user_message("other")
    assert conversation.changed() == (0, [conversation.messages[:2], segment(2, "b")])


def test_a_conversation_cut_at_its_start_keeps_the_references_of_what_is_left():
    """A sliding window does not send everything anew."""
    conversation = Conversation([messages(2, "a"), messages(2, "b")], [segment(2, "a"), segment(2, "b")], [])
    del conversation.messages[:1]
    assert conversation.pieces(conversation.messages) == [conversation.messages[:1], segment(2, "b")]


def test_a_message_that_a_hook_has_changed_in_its_place_is_sent():
    """Redacted is redacted: what was stored before does not travel on."""
    conversation = Conversation([messages(2, "a"), messages(2, "b")], [segment(2, "a"), segment(2, "b")], [])
    conversation.messages[1]["content"][0]["text"] = "[redacted]"
    assert conversation.rewritten
    assert conversation.changed() == (0, [conversation.messages[:2], segment(2, "b")])


def test_a_range_that_does_not_fit_is_ignored():
    """A reference for other messages than were sent would put words into the conversation."""
    conversation = Conversation([messages(2)])
    conversation.store(conversation.messages, [StoredRange(start=1, segment=segment(5))])
    assert not conversation.has_stored


@pytest.mark.parametrize("count", [1, GROUP, GROUP + 1])
def test_whole_groups_of_references_never_change(count):
    """So they are kept in storage once, however long the conversation grows."""
    pieces = [segment(1, str(number)) for number in range(count)]
    grown = [*pieces, segment(1, "more")]
    whole = count // GROUP
    assert packed(grown)[:whole] == packed(pieces)[:whole]


@given(st.lists(st.one_of(st.integers(1, 9), st.lists(st.text(), min_size=1, max_size=3)), max_size=200))
def test_packing_loses_nothing(plan):
    """Whatever is packed is unpacked as it was."""
    pieces = [segment(item, f"r{item}") if isinstance(item, int) else [user_message(t) for t in item] for item in plan]
    assert unpacked(packed(pieces)) == pieces


@given(st.lists(st.integers(0, 4), max_size=6), st.lists(st.integers(0, 20), max_size=30))
def test_pieces_always_say_the_same_messages(counts, chosen):
    """For any choice of a conversation's messages, in any order, the pieces stand for exactly that choice."""
    contents = [messages(count, f"p{place}-") for place, count in enumerate(counts)]
    references = {place: segment(len(content), f"r{place}") for place, content in enumerate(contents) if content}
    unstored = [place for place, content in enumerate(contents) if not content or place % 2]
    conversation = Conversation(
        contents, [references[place] for place in range(len(contents)) if place not in unstored], unstored
    )
    known = conversation.messages
    choice = [known[number] for number in chosen if number < len(known)]
    said = []
    for piece in conversation.pieces(choice):
        said.extend(contents[int(piece.reference[1:])] if isinstance(piece, StoredSegment) else piece)
    assert all(a is b for a, b in zip(said, choice, strict=True))
