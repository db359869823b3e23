"""Messages in external storage: written once, read once, and never the reason for a lost answer."""

import pytest
from temporalio.contrib.pydantic import pydantic_data_converter
from tests.support.memory_store import MemoryStore

from countersign.activities.segments import LARGE_BYTES, Segments
from countersign.agent_core.conversation import SEGMENT_BYTES
from countersign.agent_core.messages import assistant_text, user_message

HEAVY = [user_message("x" * SEGMENT_BYTES), assistant_text("y")]
LIGHT = [user_message("z")]


async def stored(segments, pieces, converter):
    """What is in storage after a model call with these pieces."""
    return await segments.store(pieces, await segments.messages(pieces, converter), converter)


@pytest.fixture
def store():
    return MemoryStore()


async def test_messages_that_weigh_enough_are_stored_together(store):
    """The answer says which they are, and they can be read by another process."""
    [found] = await stored(Segments(), [LIGHT, HEAVY], store.converter)
    assert (found.start, found.segment.messages) == (0, 3)
    assert await Segments().messages([found.segment, LIGHT], store.converter) == [*LIGHT, *HEAVY, *LIGHT]


async def test_light_messages_stay(store):
    """A reference would weigh as much as they do."""
    assert await stored(Segments(), [LIGHT], store.converter) == []


async def test_what_is_stored_is_not_stored_again(store):
    """Only what stands before, between or after references is looked at."""
    segments, converter = Segments(), store.converter
    [first] = await stored(segments, [HEAVY], converter)
    [second] = await stored(segments, [LIGHT, first.segment, HEAVY[:1]], converter)
    assert (second.start, second.segment.messages) == (3, 1)


async def test_what_was_written_or_read_is_not_read_again(store):
    """A model call in the same process costs no reading."""
    segments, converter = Segments(), store.converter
    [found] = await stored(segments, [HEAVY], converter)
    await segments.messages([found.segment], converter)
    assert store.reads == 0


async def test_memory_is_bounded(store):
    """What is forgotten is read from storage again."""
    segments, converter = Segments(cache_bytes=SEGMENT_BYTES + 5_000), store.converter
    [first] = await stored(segments, [HEAVY], converter)
    [second] = await stored(segments, [[user_message("w" * SEGMENT_BYTES)]], converter)
    assert len(await segments.messages([first.segment, second.segment], converter)) == 3
    assert store.reads == 1


async def test_without_storage_nothing_is_stored():
    """The conversation then travels with every call."""
    assert await stored(Segments(), [HEAVY], lambda: pydantic_data_converter) == []


async def test_a_store_that_is_out_of_order_does_not_lose_the_answer(store, caplog):
    """Nothing is stored, and the log says why; the next call tries again."""
    store.broken = True
    assert await stored(Segments(), [HEAVY], store.converter) == []
    assert "out of order" in caplog.text


async def test_without_a_driver_that_takes_them_messages_stay(store):
    """Nothing stands for them then, and they are sent as they are."""
    assert await stored(Segments(), [HEAVY], lambda: store.converter(threshold=10 * SEGMENT_BYTES)) == []


async def test_many_small_pieces_become_one_large_one(store):
    """A long conversation has few references, and the large piece is never stored again."""
    segments, converter = Segments(), store.converter
    pieces = []
    while not pieces or len(pieces) * SEGMENT_BYTES < LARGE_BYTES:
        message = user_message(f"{len(pieces)} " + "v" * SEGMENT_BYTES)
        ranges = await stored(segments, [*pieces, [message]], converter)
        pieces.append(ranges[0].segment)
    [large] = await stored(segments, [LIGHT, *pieces], converter)
    assert (large.start, large.segment.messages) == (1, len(pieces))
    assert await segments.messages([large.segment], converter) == await segments.messages(pieces, converter)
    assert await stored(segments, [large.segment, large.segment, LIGHT], converter) == []
