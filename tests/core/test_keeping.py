"""When an in-process session is stored: what a process that died left behind, and what becomes of errors."""

import asyncio
import signal
import subprocess
import sys
import threading

import pytest
from strands.session import FileSessionManager as StrandsFiles
from tests.core.driving import acts, make, reply, results, valid
from tests.core.paying import payer

from countersign import ToolContext, tool
from countersign.agent_core.messages import tool_uses
from countersign.errors import AnswerRefused, EventLoopException
from countersign.hooks import AfterModelCallEvent, AfterToolCallEvent, BeforeToolCallEvent
from countersign.models import calls
from countersign.session import FileSessionManager


def dies(folder, manager, prompt, deadly, **options):
    """Give a prompt to such an agent in another process, which this kills."""
    code = (
        "import sys, pathlib; from tests.core.paying import payer\n"
        "payer(pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3], **eval(sys.argv[5]))(eval(sys.argv[4]))"
    )
    words = [str(folder), manager, deadly, repr(prompt), repr(options)]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr


def paid(folder):
    """Amounts and keys of the payments, in order."""
    lines = (folder / "paid").read_text().splitlines()
    return [line.split()[0] for line in lines], [line.split()[1] for line in lines]


@pytest.mark.parametrize(
    ("manager", "word", "amounts"),
    [
        ("countersign", "skip", ["1", "2"]),
        ("countersign", "retry", ["1", "2", "2"]),
        ("strands", "retry", ["1", "2", "2"]),
    ],
)
def test_a_call_that_a_process_died_in_is_asked_about(tmp_path, manager, word, amounts):
    """The approval is used up: the old answer runs nothing again, and a person says what now. What ended is kept."""
    agent = payer(tmp_path, manager)
    second = agent(reply(agent("go"), "y"))  # the second call asks once the first has run
    dies(tmp_path, manager, reply(second, "y"), "2")
    assert paid(tmp_path)[0] == ["1", "2"]
    later = payer(tmp_path, manager)
    asked = later(reply(second, "y"))
    assert [question.name for question in asked.interrupts] == ["unknown-outcome"] and paid(tmp_path)[0] == ["1", "2"]
    assert asked.interrupts[0].reason["detail"] == "its process ended while it ran"
    assert later(reply(asked, word)).stop_reason == "end_turn"
    assert paid(tmp_path)[0] == amounts and valid(later)
    assert [status for status, _ in results(later)] == ["success", "success" if word == "retry" else "error"]


def test_what_is_stored_is_the_batch_that_hooks_left(tmp_path):
    """A process that dies in a call leaves a doubt about that very call, also if a hook has taken out one before it."""
    found = []

    def take_out(event: AfterModelCallEvent):
        if event.stop_response is not None and tool_uses(event.stop_response.message):
            del event.stop_response.message["content"][0]

    def stored(tools):
        return make([], acts(1, 2), tools=tools, hooks=[take_out], session_manager=FileSessionManager(
            "s", storage_dir=str(tmp_path)))  # fmt: skip

    @tool
    def act(x: int) -> int:
        """Act."""
        pending = stored([])._here()._session.state.pending
        found.extend((use["input"], place in pending.unknown) for place, use in enumerate(tool_uses(pending.message)))
        return x

    stored([act])("go")
    assert found == [({"x": 2}, True)]


@pytest.mark.parametrize(("idempotent", "doubted"), [(False, [0]), (True, [])])
async def test_cancelled_invocations_do_not_count_as_deaths(tmp_path, idempotent, doubted):
    """A process that dies after two of them leaves what it would have left without them."""
    begun, runs, left = asyncio.Event(), [], []

    def one_call(scene):
        return calls(("act", {"x": 1})) if len(scene.turn) == 1 else "done"

    def stored():
        return make([], one_call, hooks=[], tools=[act], session_manager=FileSessionManager("s", str(tmp_path)))

    @tool(idempotent=idempotent)
    async def act(x: int) -> int:
        """Act."""
        runs.append(x)
        begun.set()
        if len(runs) <= 2:
            await asyncio.Event().wait()
        left.append(stored()._here()._session.state.pending)
        return x

    for _ in range(2):
        running = asyncio.create_task(stored().invoke_async("go"))
        await begun.wait()
        begun.clear()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    await stored().invoke_async("go")
    assert [sorted(pending.unknown) for pending in left] == [doubted]


def test_a_third_death_in_a_row_is_asked_about_too(tmp_path):
    """No cycle ends between them: none gives up the calls of those before it, and the conversation stays valid."""
    runs, left = [], []

    def stored():
        return make([], acts(1, 2), tools=[act], session_manager=FileSessionManager("s", str(tmp_path)))

    @tool(idempotent=True)
    def act(x: int) -> int:
        """Act; whatever comes after a death in it is done by another agent."""
        runs.append(x)
        if len(runs) == 1:
            stored()([])
        elif len(runs) == 2:
            stored()(reply(asked, None, "y")[1:])
        elif len(runs) == 3:
            left.append(stored())
        return x

    asked = stored()("go")
    stored()(reply(asked, "y"))
    assert runs == [1, 1, 2]
    later = left[0]
    assert [question.reason["tool"] for question in later([]).interrupts] == ["act", "act"]
    assert later(reply(later([]), "skip", "skip")).stop_reason == "end_turn" and valid(later)


def test_a_lost_second_run_runs_again_as_the_second(tmp_path):
    """With its key, and with what the first run wrote to the agent's state."""
    keys = []

    def stored():
        return make([], acts(1), hooks=[again], tools=[act], session_manager=FileSessionManager("s", str(tmp_path)))

    def again(event: AfterToolCallEvent):
        event.retry = event.result["status"] == "error"

    @tool(context=True, idempotent=True)
    def act(x: int, tool_context: ToolContext) -> int:
        """Act: fail once, and die once."""
        keys.append((tool_context.idempotency_key, tool_context.agent.state.get("tried")))
        if len(keys) == 1:
            tool_context.agent.state.set("tried", True)
            raise ConnectionError("the first run fails")
        if len(keys) == 2:
            stored()([])  # as a process would that comes after this one
        return x

    stored()("go")
    first, second, third = keys
    assert first[0] != second[0] and second == third == (second[0], True)


def test_a_later_process_that_knows_no_question_is_told(tmp_path):
    """A prompt is refused, an empty list of answers returns what is asked; another answer to the old one is none."""
    agent = payer(tmp_path)
    first = agent("go")
    dies(tmp_path, "countersign", reply(first, "y"), "1")
    later = payer(tmp_path)
    with pytest.raises(TypeError, match="must resume from interrupt") as refused:
        later("go on")
    assert "an empty list" in refused.value.__notes__[0]
    with pytest.raises(AnswerRefused, match="already answered"):
        later(reply(first, "n"))
    asked, again = later([]), payer(tmp_path)([])
    assert asked.interrupts == again.interrupts and asked.interrupts[0].name == "unknown-outcome"
    assert again.stop_reason == "interrupt" and paid(tmp_path)[0] == ["1"]


def test_an_idempotent_call_runs_again_by_itself_but_once(tmp_path):
    """With the same key, and for one death; when it has killed two processes, a person is asked."""
    free = {"idempotent": True, "hooks": ()}
    dies(tmp_path, "countersign", "go", "1", **free)
    dies(tmp_path, "countersign", [], "1", **free)
    later = payer(tmp_path, **free)
    asked = later([])
    assert [question.name for question in asked.interrupts] == ["unknown-outcome"]
    amounts, keys = paid(tmp_path)
    assert amounts == ["1", "1"] and len(set(keys)) == 1
    assert later(reply(asked, "skip")).stop_reason == "end_turn"
    assert paid(tmp_path)[0] == ["1", "1", "2"] and len(set(paid(tmp_path)[1])) == 2


def test_what_a_hook_took_out_of_a_prompt_is_not_written_down(tmp_path):
    """The conversation is stored as hooks have made it, while tools run as well."""
    from countersign.hooks import BeforeInvocationEvent

    def redact(event: BeforeInvocationEvent):
        event.messages = [{"role": "user", "content": [{"text": "***"}]}]

    files = []

    def look(event: AfterToolCallEvent):
        files.append((tmp_path / "s" / "default.json").read_text())

    make([], acts(1), hooks=[redact, look], session_manager=FileSessionManager("s", tmp_path))("a secret")
    assert "***" in files[0] and "a secret" not in files[0]


def test_messages_without_their_state_do_not_count(tmp_path):
    """A manager that stores them one by one may die in between; the session is the one that was stored last."""

    class Dies(StrandsFiles):
        def sync_agent(self, agent, **kwargs):
            if len(agent.messages) > 2:
                raise OSError("died")
            super().sync_agent(agent)

    def agent(script, manager=StrandsFiles):
        return make([], script, hooks=[], session_manager=manager("s", storage_dir=str(tmp_path)))

    def one_call(scene):
        return calls(("act", {"x": 1})) if len(scene.turn) == 1 else "done"

    agent(["hi"])("hello")
    with pytest.raises(EventLoopException, match="died"):
        agent(one_call, Dies)("go")
    later = agent(one_call)
    assert len(later.messages) == 2
    assert later("go").stop_reason == "end_turn" and valid(later) and len(later.messages) == 6
    assert agent(one_call).messages == later.messages


def test_a_process_that_dies_in_its_first_store_leaves_no_broken_conversation(tmp_path):
    """Also where a manager had stored messages, and no state of theirs yet."""

    class Dies(StrandsFiles):
        def append_message(self, message, agent, **kwargs):
            super().append_message(message, agent)
            if "toolUse" in message["content"][0]:
                raise OSError("died")

    def agent(manager):
        return make(log, acts(1), hooks=[], session_manager=manager("s", storage_dir=str(tmp_path)))

    log = []
    with pytest.raises(EventLoopException, match="died"):
        agent(Dies)("go")
    later = agent(StrandsFiles)
    assert later([]).interrupts[0].name == "unknown-outcome" and log == []
    assert later(reply(later([]), "retry")).stop_reason == "end_turn" and valid(later) and log == [1]


class Breaks:
    """A session manager whose disk is full from some moment on."""

    def __init__(self, after):
        self.left, self.threads = after, set()

    def initialize(self, agent):
        pass

    def append_message(self, message, agent):
        pass

    def sync_agent(self, agent):
        self.threads.add(threading.current_thread())
        self.left -= 1
        if self.left < 0:
            raise OSError("disk full")


async def test_storing_does_not_hold_up_the_loop():
    """It happens in a thread, before tools as after them; the first time in two steps."""
    manager = Breaks(9)
    assert (await make([], acts(1), hooks=[], session_manager=manager).invoke_async("go")).stop_reason == "end_turn"
    assert manager.left == 6 and threading.current_thread() not in manager.threads


def test_tools_do_not_run_if_the_session_can_not_be_stored():
    """Else nobody would know of them after a crash; the conversation says that they did not run."""
    log = []
    agent = make(log, acts(1), hooks=[], session_manager=Breaks(0))
    with pytest.raises(EventLoopException, match="disk full"):
        agent("go")
    assert log == [] and valid(agent) and results(agent)[0][0] == "error" and "Not run" in results(agent)[0][1]


@pytest.mark.parametrize("how", ["turn", "direct"])
def test_an_error_of_storing_stands_beside_the_first(how):
    """Whoever catches the error of a hook still catches it."""

    def fails(event: BeforeToolCallEvent):
        raise ZeroDivisionError("broken")

    agent = make([], acts(1), hooks=[fails], session_manager=Breaks(0))
    with pytest.raises((EventLoopException, ZeroDivisionError), match="broken") as raised:
        agent("go") if how == "turn" else agent.tool.act(x=1)
    assert raised.value.__notes__ == ["the session could not be stored: OSError: disk full"]


def test_an_error_of_storing_alone_is_raised():
    """A caller who hears nothing would think that it is kept."""
    with pytest.raises(OSError, match="disk full"):
        make([], ["hi"], session_manager=Breaks(0))("go")


async def test_a_cancelled_invocation_is_stored():
    """As one that has ended: the next process finds no call that could run."""
    begun, manager = asyncio.Event(), Breaks(9)

    @tool
    async def act(x: int) -> int:
        """Act."""
        begun.set()
        await asyncio.Event().wait()
        return x

    agent = make([], acts(1), hooks=[], tools=[act], session_manager=manager)
    running = asyncio.create_task(agent.invoke_async("go"))
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert manager.left == 6 and valid(agent)
