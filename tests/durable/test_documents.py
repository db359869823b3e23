"""The interrupts document's approval examples: the same questions and messages in-process and durably."""

import pytest
from tests.durable.lab import documents
from tests.durable.test_waiting import history

PROMPT = "paths=<['a/b/c.txt', 'd/e/f.txt']>"
AGENTS = {
    "per-tool": documents.per_tool,
    "batch": documents.batch,
    "tool-body": documents.tool_body,
    "trust": documents.trust,
}


def blocks(interrupts, answers):
    """The document's loop: an answer for each interrupt, in order."""
    return [{"interruptResponse": {"interruptId": item.id, "response": next(answers)}} for item in interrupts]


async def in_process(agent, answers):
    asked = []
    result = await agent.invoke_async(PROMPT)
    while result.stop_reason == "interrupt":
        asked += [(item.name, item.reason) for item in result.interrupts]
        result = await agent.invoke_async(blocks(result.interrupts, answers))
    return asked, list(agent.messages), agent.state.get()


async def durably(lab, worker, name, answers):
    asked = []
    session = await lab.start(worker, name, None, lifetime="open")
    result = await session.invoke(PROMPT)
    while result.stop_reason == "interrupt":
        asked += [(item.name, item.reason) for item in result.interrupts]
        result = await session.invoke(blocks(result.interrupts, answers))
    messages = await history(session)
    await session.close()
    return asked, messages, result.state


@pytest.mark.parametrize("name", AGENTS)
async def test_both_drivers_ask_and_say_the_same(lab, name):
    """For approvals, refusals and trust, with two gated calls beside a free one, over two rounds."""
    worker = lab.worker("lab.documents")
    for script in ("yyyy", "nnnn", "ynny", "ttyy"):
        here = await in_process(AGENTS[name](), iter(script + "n" * 8))
        there = await durably(lab, worker, name, iter(script + "n" * 8))
        assert here == there
        assert len(here[0]) >= 1
