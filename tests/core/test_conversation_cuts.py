"""Where a conversation may be cut, over conversations of any shape."""

import copy
from types import SimpleNamespace

from hypothesis import assume, given
from hypothesis import strategies as st
from strands.agent import conversation_manager as strands

from countersign.agent_core.conversation_managers.cutting import is_prompt, latest, oldest_part, task
from countersign.agent_core.messages import assistant_text, guidance_message, history_faults, tool_uses, user_message


def exchange(number, results=1):
    """An assistant's message with calls, and their results."""
    ids = [f"t{number}-{index}" for index in range(results)]
    uses = [{"toolUse": {"toolUseId": i, "name": "fetch", "input": {}}} for i in ids]
    found = [{"toolResult": {"toolUseId": i, "status": "success", "content": [{"text": "x"}]}} for i in ids]
    return [{"role": "assistant", "content": uses}, {"role": "user", "content": found}]


@st.composite
def conversations(draw, prompts=2, guided=True):
    """Valid conversations: turns of a prompt, exchanges, guidance and an answer; the last one in any state."""
    messages, number = [], 0
    turns = draw(st.integers(1, 6))
    for turn in range(turns):
        messages += [user_message(f"prompt {turn}") for _ in range(draw(st.integers(1, prompts)))]
        for _ in range(draw(st.integers(0, 5))):
            messages += exchange(number, draw(st.integers(1, 3)))
            number += 1
            if guided and draw(st.booleans()):
                messages.append(guidance_message("be polite"))
        if turn < turns - 1 or draw(st.booleans()):
            messages.append(assistant_text(f"answer {turn}"))
    if draw(st.booleans()) and not tool_uses(messages[-1]) and messages[-1]["role"] == "user":
        messages.append(exchange(number)[0])
    return messages


@given(conversations(), st.integers(0, 12), st.integers(0, 5))
def test_a_cut_conversation_is_valid(messages, most, pinned):
    """Whatever is cut: calls keep their results, a prompt comes first, and the running turn its task and last step."""
    kept = latest(messages, most, pinned)
    whole = iter(messages)
    assert all(any(message is found for found in whole) for message in kept)  # a subsequence of the very messages
    faults = history_faults(kept)
    assert len(faults) == len(history_faults(messages))  # an open batch is a fault before and after
    if kept and pinned == 0:
        assert is_prompt(kept[0])
    if pinned:
        assert kept[: min(pinned, len(messages))] == messages[:pinned]
    ended = messages[-1]["role"] == "assistant" and not tool_uses(messages[-1])
    if most or not ended:
        assert any(message is messages[task(messages)[1] - 1] for message in kept)
        assert kept[-1] is messages[-1]


@given(conversations(), st.integers(1, 12))
def test_a_window_is_exceeded_only_by_the_last_exchange(messages, most):
    """What is kept fits the window, unless the running turn's prompt and last exchange alone don't."""
    kept = latest(messages, most)
    end = task(messages)[1]
    last = next(
        place for place in range(len(messages) - 1, -1, -1) if messages[place]["role"] == "assistant" or place < end
    )
    floor = 1 + (len(messages) - max(last, end))
    assert len(kept) <= max(most, floor)


@given(conversations(prompts=1, guided=False), st.integers(1, 12))
def test_a_window_is_cut_where_strands_cuts(messages, most):
    """If a turn begins within the window, the same messages stay as in strands-agents."""
    assume(any(is_prompt(message) for message in messages[-most:]))
    there = SimpleNamespace(messages=copy.deepcopy(messages))
    strands.SlidingWindowConversationManager(most).apply_management(there)
    assert latest(messages, most) == there.messages


@given(conversations(), st.floats(0.1, 0.8), st.integers(0, 8), st.integers(0, 4))
def test_what_is_summed_up_leaves_a_valid_conversation(messages, share, keep, pinned):
    """A summary takes the place of whole exchanges, and never of the last turn's prompt or the latest messages."""
    start, places = oldest_part(messages, share, keep, pinned)
    rest = [message for place, message in enumerate(messages) if place not in places]
    left = [*rest[:start], user_message("summary"), *rest[start:]]
    assert len(history_faults(left)) == len(history_faults(messages))
    assert task(messages)[1] - 1 not in places
    assert all(place < len(messages) - 1 and place >= min(pinned, len(messages)) for place in places)
