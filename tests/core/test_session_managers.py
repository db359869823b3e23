"""`Agent(session_manager=...)`: what waits in one process is answered in another."""

import importlib
import os
import subprocess
import sys

import pytest
from strands.session import FileSessionManager as StrandsFiles
from tests.core.driving import make, questions, reply, results, valid
from tests.differential.models import MODELS

from countersign import Agent, InterventionHandler, ScriptedModel
from countersign.agent_client.private_folders import state_folder
from countersign.errors import AgentDefinitionError
from countersign.interventions import Proceed
from countersign.models import calls
from countersign.session import FileSessionManager

MANAGERS = (FileSessionManager, StrandsFiles)


def script(scene):
    """One call in each turn, then "done"."""
    return calls(("act", {"x": len(scene.messages)})) if len(scene.turn) == 1 else "done"


def fresh(folder, log, manager=FileSessionManager, **options):
    """An agent as a new process would build it."""
    return make(log, script, session_manager=manager(session_id="s", storage_dir=str(folder)), **options)


@pytest.mark.parametrize("manager", MANAGERS, ids=["ours", "strands"])
def test_an_interrupted_agent_is_restored_and_resumed(tmp_path, manager):
    """The same question, by the same id; the answer runs the call once, and the conversation goes on."""
    log = []
    first = fresh(tmp_path, log, manager)("go")
    later = fresh(tmp_path, log, manager)
    assert [question.id for question in questions(later)] == [first.interrupts[0].id]
    assert later(reply(first, "y")).stop_reason == "end_turn"
    assert log == [1] and valid(later)
    again = fresh(tmp_path, log, manager)
    assert again.messages == later.messages
    assert again(reply(again("go"), "n")).stop_reason == "end_turn"
    assert [status for status, _ in results(again)] == ["success", "error"]


class Counts(InterventionHandler):
    """Counts calls."""

    name = "counts"

    def __init__(self):
        self.count = 0

    def before_tool_call(self, event, **kwargs):
        self.count += 1
        event.agent.state.set("count", self.count)
        return Proceed()


def test_state_and_handlers_memory_are_restored(tmp_path):
    """A rate limit does not begin anew with each process."""
    for turn in (1, 2, 3):
        agent = fresh(tmp_path, [], hooks=[], interventions=[Counts()])
        agent("go")
        assert agent.state.get("count") == turn


@pytest.mark.parametrize("manager", MANAGERS, ids=["ours", "strands"])
def test_a_conversation_that_was_rewritten_is_restored_as_it_is(tmp_path, manager):
    """Managers only add messages; what a program cut off does not come back."""
    agent = fresh(tmp_path, [], manager, hooks=[])
    agent("go")
    del agent.messages[:2]
    agent.messages[:] = [{"role": "user", "content": [{"text": "short"}]}]
    agent("again")
    assert fresh(tmp_path, [], manager, hooks=[]).messages == agent.messages


def test_a_direct_call_is_kept(tmp_path):
    """As part of the conversation, like in Strands."""
    agent = fresh(tmp_path, [], hooks=[])
    agent.tool.act(x=1)
    assert fresh(tmp_path, [], hooks=[]).messages == agent.messages != []


def test_a_file_that_is_no_session_is_named(tmp_path):
    """It is not overwritten either."""
    file = tmp_path / "s" / "default.json"
    fresh(tmp_path, [])("go")
    file.write_text("{")
    with pytest.raises(ValueError, match=r"default\.json is no session"):
        fresh(tmp_path, [])
    assert file.read_text() == "{"


@pytest.mark.parametrize("name", ["", "..", "a/b", "a\\b", "a\n", 7])
def test_an_id_that_is_no_folder_is_refused(tmp_path, name):
    """No session outside of its folder."""
    with pytest.raises(ValueError, match="session_id"):
        FileSessionManager(session_id=name, storage_dir=tmp_path)


def by_others(path):
    path.chmod(0o722)


def by_a_group(path):
    path.chmod(0o770)


def of_another(path):
    os.chown(path, 12345, -1)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to somebody else")
@pytest.mark.parametrize("place", ["", "s", "s/default.json"])
@pytest.mark.parametrize("harm", [by_others, by_a_group, of_another])
def test_what_others_may_have_written_is_refused(tmp_path, harm, place):
    """An answer in it may be anybody's: neither folder nor file is trusted, and nothing runs."""
    log, folder = [], tmp_path / "kept"
    fresh(folder, log)("go")
    harm(folder / place)
    with pytest.raises(PermissionError, match="can't be trusted"):
        fresh(folder, log)
    assert log == []


def test_a_folder_that_anybody_may_replace_is_refused(tmp_path):
    """A folder in a sticky one, like those under /tmp, can't be replaced by others; one beside it can."""
    above = tmp_path / "shared"
    above.mkdir()
    above.chmod(0o1777)
    fresh(above / "kept", [])("go")
    above.chmod(0o777)
    with pytest.raises(PermissionError, match="anybody may replace"):
        fresh(above / "kept", [])


def test_a_planted_link_is_not_followed(tmp_path):
    """The file is the session, and not what it points to."""
    fresh(tmp_path, [])("go")
    file = tmp_path / "s" / "default.json"
    file.rename(tmp_path / "elsewhere.json")
    file.symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(OSError, match="symbolic"):
        fresh(tmp_path, [])


@pytest.mark.parametrize("state", ["", "state", "/"])
def test_without_a_folder_it_is_the_users_own(tmp_path, monkeypatch, state):
    """And not one that all users share; made so that nobody else can look into it."""
    home, given = tmp_path / "home", f"{tmp_path}/state" if state == "/" else state
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_STATE_HOME", given)
    kept = (tmp_path / "state" if state == "/" else home / ".local" / "state") / "countersign" / "sessions"
    Agent(ScriptedModel(["hi"]), session_manager=FileSessionManager("s"))("go")
    assert (kept / "s" / "default.json").stat().st_mode & 0o777 == 0o600
    assert {path.stat().st_mode & 0o777 for path in (kept, kept.parent, kept / "s")} == {0o700}


class Document:
    """The document's example: a server that builds its agent anew for each call."""

    def __init__(self, root, folder):
        self._root, self._folder = root, folder
        self._sdk = importlib.import_module(root)

    def server(self, prompt):
        """As the document has it, with a model that needs no network."""
        sdk, hooks = self._sdk, importlib.import_module(f"{self._root}.hooks")
        files = importlib.import_module(f"{self._root}.session").FileSessionManager

        @sdk.tool
        def delete_files(paths: list[str]) -> bool:
            """Delete."""
            return True

        class ApprovalHook:
            def register_hooks(self, registry, **kwargs):
                registry.add_callback(hooks.BeforeToolCallEvent, self.approve)

            def approve(self, event):
                if event.agent.state.get("myapp-approval") == "t":
                    return
                approval = event.interrupt("myapp-approval", reason={"paths": event.tool_use["input"]["paths"]})
                if approval.lower() not in ["y", "t"]:
                    event.cancel_tool = "User denied permission to delete files"
                event.agent.state.set("myapp-approval", approval.lower())

        def says(scene):
            return calls(("delete_files", {"paths": ["a"]})) if len(scene.turn) == 1 else "deleted"

        manager = files(session_id="myapp", storage_dir=str(self._folder))
        self.agent = sdk.Agent(
            model=MODELS[self._root](says, []), hooks=[ApprovalHook()], session_manager=manager,
            tools=[delete_files], callback_handler=None,
        )  # fmt: skip
        return self.agent(prompt)

    def client(self, *answers):
        """The document's client, with these answers; what stopped the loop each time."""
        result, stops, given = self.server("paths=<['a']>"), [], list(answers)
        while result.stop_reason == "interrupt":
            stops.append([result.stop_reason, result.interrupts[0].name, result.interrupts[0].reason])
            result = self.server(reply(result, given.pop(0)))
        return [*stops, result.stop_reason, [message["content"] for message in self.agent.messages[1::2]][-1]]


@pytest.mark.parametrize("answers", ["y", "n", "t"])
def test_the_documents_example_goes_as_with_strands(tmp_path, answers):
    """Two prompts, each call of the server with a new agent; "t" does not ask a second time."""
    here, there = (Document(root, tmp_path / root) for root in ("countersign", "strands"))
    for _ in range(2):
        assert here.client(answers) == there.client(answers)


def test_another_process_finds_the_question(tmp_path):
    """Really another one: nothing of this one is left but the file."""
    code = (
        "import sys; from tests.core.test_session_managers import fresh, questions\n"
        "agent = fresh(sys.argv[1], [])\n"
        "print(agent([{'interruptResponse': {'interruptId': questions(agent)[0].id, 'response': 'y'}}]).stop_reason)"
    )
    fresh(tmp_path, [])("go")
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "end_turn"


KEPT = """
from countersign import Agent, ScriptedModel, durable
from countersign.session import FileSessionManager

@durable("kept")
def kept():
    return Agent(ScriptedModel(["hi"]), session_manager=FileSessionManager(session_id="never-kept"))
"""


async def test_on_a_worker_it_is_not_used(lab):
    """The session is the session manager: an agent of the document is served as it is, and touches no file."""
    lab.package("keeping", agents=KEPT)
    session = await lab.start(lab.worker("keeping.agents"), "kept", "go")
    assert (await session.result()).stop_reason == "end_turn"
    assert not (state_folder() / "countersign" / "sessions" / "never-kept").exists()


def test_what_is_no_session_manager_is_refused():
    """When the agent is built, and not at the end of its first turn."""
    with pytest.raises(AgentDefinitionError, match="session_manager"):
        Agent(session_manager="a folder")
