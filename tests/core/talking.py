"""What the tests of conversation managers share: a model that takes little, and what became of a conversation."""

import copy

from countersign import ScriptedModel, tool
from countersign.agent_core.messages import message_text
from countersign.models import Model, calls
from countersign.types.exceptions import ContextWindowOverflowException


@tool
def fetch(size: int = 3) -> str:
    """Fetch so many characters."""
    return "x" * size


class Narrow(Model):
    """A model that takes so many characters; it does what the script of a ScriptedModel says."""

    def __init__(self, chars, script):
        self.chars, self.inner, self.seen = chars, ScriptedModel(script), []

    async def stream(self, messages, tool_specs=None, system_prompt=None, **more):
        self.seen.append(copy.deepcopy(list(messages)))
        if len(str(messages)) > self.chars:
            raise ContextWindowOverflowException(f"more than {self.chars} characters")
        async for event in self.inner.stream(messages, tool_specs, system_prompt, **more):
            yield event


def by_turn(scene):
    """Answers a prompt with its own words; "fetch N" calls the tool once."""
    words = scene.prompt.split()
    if words[:1] == ["fetch"] and not scene.results("fetch"):
        return calls(("fetch", {"size": int(words[1])}))
    return f"heard {scene.prompt[:20]}"


def reduced(agent):
    """Details of the audit lines about reductions."""
    audit = agent._here()._session.state.audit
    return [entry.detail for entry in audit if entry.event == "conversation_reduced"]


def texts(agent):
    return [message_text(message) for message in agent.messages]
