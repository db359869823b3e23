"""What a session manager gets to see of an in-process agent, and what is put back from it.

Any object with the methods of Strands' session managers will do (`initialize`, `append_message`, `sync_agent`). They
store messages and `agent.state`; what else a session is (open questions, what handlers remember, counts) stands in that
state under a key of its own, so that one who answers later finds the very same question. On a worker none of this is
used: there the session is the session manager.
"""

import copy
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from countersign.agent_core.errors import AgentDefinitionError
from countersign.agent_core.json_values import JsonObject
from countersign.agent_core.messages import Message, Messages
from countersign.agent_core.session import SessionState
from countersign.agent_core.state import AgentState

SAVED_KEY = "countersign:session"
"""Where a session stands in what a session manager stores as `agent.state`."""

SESSION_MANAGER_METHODS = ("initialize", "append_message", "sync_agent")


class SavedAgent:
    """An agent as a session manager sees it.

    Attributes:
        agent_id: Tells the agents of one session apart.
        messages: The conversation.
        state: `agent.state`, and the session under `SAVED_KEY`.
        storage: None; Strands' managers look for it.
    """

    storage = None

    def __init__(self, agent_id: str, messages: Sequence[Message], state: JsonObject) -> None:
        self.agent_id = agent_id
        self.messages: Messages = list(messages)
        self.state: Any = AgentState(state)


class SessionManager(Protocol):
    """What a session manager can do; Strands' own can, too."""

    def initialize(self, agent: Any) -> None:
        """Put what is stored into the agent, or store it if nothing is."""
        ...

    def append_message(self, message: Message, agent: Any) -> None:
        """Store one more message."""
        ...

    def sync_agent(self, agent: Any) -> None:
        """Store the agent's state."""
        ...


def checked_session_manager(given: SessionManager | None, agent: str) -> SessionManager | None:
    """What an agent was given, if it can do what is asked of it.

    Raises:
        AgentDefinitionError: If not.
    """
    missing = [method for method in SESSION_MANAGER_METHODS if not callable(getattr(given, method, None))]
    if given is not None and missing:
        raise AgentDefinitionError(
            f"agent {agent!r}: session_manager {given!r} has no {', '.join(missing)}; pass a FileSessionManager of "
            "countersign.session, or a session manager of Strands"
        )
    return given


class Saving:
    """One agent's session as its manager keeps it; `Keeper` says when.

    Args:
        manager: Stores it.
        agent_id: Tells the agents of one session apart.
    """

    def __init__(self, manager: SessionManager, agent_id: str) -> None:
        self._manager = manager
        self._agent_id = agent_id
        self._stored: Messages = []
        self._kept = False

    def restore(self, messages: Sequence[Message], agent_state: JsonObject) -> tuple[Messages, JsonObject, Any]:
        """What is stored, or else what the agent was built with.

        Returns:
            The conversation, `agent.state`, and the session's state; None if there is none yet.
        """
        view = SavedAgent(self._agent_id, messages, agent_state)
        self._manager.initialize(view)
        self._stored = list(view.messages)
        state = dict(view.state.get())
        saved = state.pop(SAVED_KEY, None)
        self._kept = saved is not None
        if saved is None:
            return list(view.messages), state, None
        rewritten = saved.get("conversation")
        if rewritten is None:  # messages that came without their state: the process died in between
            rewritten = view.messages[: saved.get("count")]
        return list(rewritten), state, saved["session"]

    def taken(self, state: SessionState, messages: Sequence[Message], agent_state: JsonObject) -> Callable[[], None]:
        """Take what is new, as it is now. Managers only add messages, so a rewritten conversation is stored whole.

        Returns:
            Stores it; to be called once, in any thread.
        """
        kept, found = state.model_copy(update={"segments": [], "tail": []}), copy.deepcopy(list(messages))
        rewritten = found[: len(self._stored)] != self._stored
        saved = {"session": kept.model_dump(mode="json"), "count": len(found)}

        def viewed(conversation: Messages | None) -> SavedAgent:
            state = {**agent_state, SAVED_KEY: {**saved, "conversation": conversation}}
            return SavedAgent(self._agent_id, found, state)

        def store() -> None:
            if rewritten or not self._kept:  # before there is any state, messages whose state never comes would count
                self._manager.sync_agent(viewed(found))
                self._kept = True
            if not rewritten:
                view = viewed(None)
                for message in found[len(self._stored) :]:
                    self._manager.append_message(message, view)
                    self._stored.append(message)
                self._manager.sync_agent(view)

        return store
