"""`FileSessionManager`: keeps an in-process agent's session in a file, so that a later process can go on with it."""

import json
import os
import re
import tempfile
from pathlib import Path
from typing import Any

from countersign.agent_client.private_folders import private_folder, read_private, state_folder
from countersign.agent_core.state import AgentState

_ID = re.compile(r"[A-Za-z0-9_.@-]{1,200}")


class FileSessionManager:
    """Keeps what `Agent(session_manager=...)` gives it in `<storage_dir>/<session_id>/<agent_id>.json`.

    The file holds open questions and their answers: whoever may write it may approve. So folder and file must be this
    user's, and nobody else's to write. It is for one process at a time.

    Args:
        session_id: Names the session: letters, digits and `_ . @ -`.
        storage_dir: The folder; made if it is not there. `countersign/sessions` in `$XDG_STATE_HOME`, or in
            `~/.local/state`, if None.

    Raises:
        ValueError: If the id can't be a folder's name.
    """

    def __init__(self, session_id: str, storage_dir: str | os.PathLike[str] | None = None, **kwargs: Any) -> None:
        self.session_id = _checked(session_id, "session_id")
        self._storage_dir = storage_dir

    def initialize(self, agent: Any) -> None:
        """Put what is stored into the agent, or store it if nothing is.

        Raises:
            PermissionError: If somebody else may have written it.
            ValueError: If the file is no session.
        """
        file = self._file(agent)
        try:
            found = json.loads(read_private(file))
        except FileNotFoundError:
            self.sync_agent(agent)
            return
        except ValueError as error:
            raise ValueError(f"{file} is no session: {error}; move it away to begin anew") from error
        agent.messages, agent.state = found["messages"], AgentState(found["state"])

    def append_message(self, message: Any, agent: Any) -> None:
        """Nothing: `sync_agent` comes next and stores all messages."""

    def sync_agent(self, agent: Any) -> None:
        """Store the agent; a crash leaves the old file or the new one, never half of one."""
        file = self._file(agent)
        content = json.dumps({"messages": agent.messages, "state": agent.state.get()}, ensure_ascii=False)
        descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as new:
                new.write(content)
                new.flush()
                os.fsync(new.fileno())
            os.replace(name, file)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise

    def _file(self, agent: Any) -> Path:
        # Looked up late: a factory on a worker builds a manager, too, and may not look around in the file system.
        given = self._storage_dir
        folder = private_folder(Path(given) if given is not None else state_folder() / "countersign" / "sessions")
        return private_folder(folder / self.session_id) / f"{_checked(agent.agent_id, 'agent_id')}.json"


def _checked(value: Any, what: str) -> str:
    if not isinstance(value, str) or not _ID.fullmatch(value) or not value.strip("."):
        raise ValueError(f"{what} {value!r}: use letters, digits, '_', '.', '@' or '-', and not dots alone")
    return value
