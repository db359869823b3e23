"""`HumanInTheLoop`: who is asked, what approves, what is trusted."""

import pytest
from pydantic import BaseModel
from tests.core.driving import acts, make, reply, results, valid

from countersign import Agent, ScriptedModel, tool
from countersign.agent_core.hitl import TRUSTED_TOOLS_KEY
from countersign.agent_core.state import AgentState
from countersign.errors import AgentDefinitionError
from countersign.hooks import AgentInitializedEvent, BeforeToolCallEvent
from countersign.models import calls
from countersign.types.tools import ToolContext
from countersign.vended_interventions.hitl import HumanInTheLoop


@tool
def read_file(path: str = "a") -> str:
    """Read."""
    return "text"


@tool
def delete_files(path: str = "a") -> str:
    """Delete."""
    return "gone"


def asked_about(**options):
    """Which of two tools a person is asked about."""
    model = ScriptedModel([calls(("read_file", {}), ("delete_files", {})), "done"])
    result = Agent(model, tools=[read_file, delete_files], interventions=[HumanInTheLoop(**options)])("go")
    return [interrupt.reason.split('"')[1] for interrupt in result.interrupts or []]


@pytest.mark.parametrize(
    ("allowed", "asked"),
    [
        (None, ["read_file", "delete_files"]),
        (["read_file"], ["delete_files"]),
        (["*"], []),
        (["*", "!delete_files"], ["delete_files"]),
        (["delete_files", "!delete_files"], ["read_file", "delete_files"]),
    ],
)
def test_allowed_tools(allowed, asked):
    """Names and "*" run without asking; "!name" always asks."""
    assert asked_about(allowed_tools=allowed) == asked


def test_allowed_tools_must_be_a_list():
    """A single text would silently be taken letter by letter; it is refused."""
    with pytest.raises(AgentDefinitionError):
        HumanInTheLoop(allowed_tools="read_file")


@pytest.mark.parametrize("answer", [True, "y", "YES", " yes "])
def test_what_approves(answer):
    """True, "y" and "yes" approve, trimmed and in any case."""
    log = []
    agent = make(log, acts(1), hooks=[], interventions=[HumanInTheLoop()])
    agent(reply(agent("go"), answer))
    assert log == [1]


@pytest.mark.parametrize("answer", [False, 0, 1, "", [], {}, None, "n", "t", "sure", "yes please", ["y"]])
def test_what_does_not_approve(answer):
    """Everything else is an answer that does not approve: the call is cancelled and nobody is asked again."""
    log = []
    agent = make(log, acts(1), hooks=[], interventions=[HumanInTheLoop()])
    result = agent(reply(agent("go"), answer))
    assert result.stop_reason == "end_turn"
    assert log == []
    assert results(agent)[0][0] == "error"
    assert valid(agent)


def test_the_words_of_a_refusal_reach_the_model():
    """What the person wrote beside the no is in the call's result."""
    agent = make([], acts(1), hooks=[], interventions=[HumanInTheLoop()])
    agent(reply(agent("go"), "no: use the staging account"))
    assert "use the staging account" in results(agent)[0][1]


def twice():
    return [*acts(1)[:1], *acts(2)]


@pytest.mark.parametrize(("enabled", "asked_again"), [(True, False), (False, True)])
def test_trust_counts_only_while_enabled(enabled, asked_again):
    """ "t" approves and is remembered for the tool if trust is enabled; otherwise it is a refusal."""
    log = []
    agent = make(log, twice(), hooks=[], interventions=[HumanInTheLoop(enable_trust=enabled)])
    result = agent(reply(agent("go"), "t"))
    assert (result.stop_reason == "interrupt") is asked_again
    assert log == ([] if asked_again else [1, 2])


def test_a_negated_tool_cannot_be_trusted():
    """ "!name" asks each time, and "t" does not even approve."""
    log = []
    hitl = HumanInTheLoop(allowed_tools=["*", "!act"], enable_trust=True)
    agent = make(log, twice(), hooks=[], interventions=[hitl])
    result = agent(reply(agent("go"), "t"))
    assert (log, result.stop_reason) == ([], "interrupt")
    agent(reply(result, "y"))
    assert log == [2]


def test_a_negated_tool_that_is_misspelt_makes_no_agent():
    """The tool that is meant would be without a gate. A handler of several agents may name a tool that one lacks."""
    with pytest.raises(AgentDefinitionError, match="no tool 'acts', and has 'act'"):
        make([], [], hooks=[], interventions=[HumanInTheLoop(allowed_tools=["*", "!acts"])])
    make([], [], hooks=[], interventions=[HumanInTheLoop(allowed_tools=["*", "!delete_everything"])])


class Brings:
    """A hook provider that gives the agent a tool."""

    def register_hooks(self, registry, **kwargs):
        registry.add_callback(AgentInitializedEvent, lambda event: event.agent.tool_registry.add(late))


@tool
def late() -> str:
    """Late."""
    return "ok"


class Wanted(BaseModel):
    """What a turn leads to."""


def test_a_negated_tool_may_come_with_a_hook_or_be_the_one_for_structured_output():
    """Whoever adds tools does so when the agent is made."""
    hitl = HumanInTheLoop(allowed_tools=["*", "!act", "!late", "!Wanted"])
    agent = make([], [calls(("late", {})), "done"], hooks=[Brings()], interventions=[hitl],
                 structured_output_model=Wanted)  # fmt: skip
    assert agent("go").stop_reason == "interrupt"


def test_no_beats_trust_given_beside_it():
    """ "t" for one call does not run its sibling that was refused in the same batch of answers."""
    log = []
    agent = make(log, acts(1, 2), hooks=[], interventions=[HumanInTheLoop(enable_trust=True)])
    assert agent(reply(agent("go"), "t", "n")).stop_reason == "end_turn"
    assert log == [1]


@pytest.mark.parametrize("position", [0, 1])
def test_trust_does_not_run_a_sibling_that_got_another_answer(position):
    """A sibling answered with words that approve nothing is not run by trust either."""
    log = []
    agent = make(log, acts(1, 2), hooks=[], interventions=[HumanInTheLoop(enable_trust=True)])
    said = ["use the staging account", "t"] if position == 0 else ["t", "use the staging account"]
    agent(reply(agent("go"), *said))
    assert log == [2 if position == 0 else 1]


def test_no_tool_can_make_itself_trusted():
    """Trust is what a person said: the model may choose the key that a tool writes, but not this one."""

    @tool(context=True)
    def remember(key: str, value: list[str], tool_context: ToolContext) -> str:
        """Remember."""
        tool_context.agent.state.set(key, value)
        return "remembered"

    script = [calls(("remember", {"key": TRUSTED_TOOLS_KEY, "value": ["delete_files"]})), calls(("delete_files", {}))]
    hitl = HumanInTheLoop(allowed_tools=["remember"], enable_trust=True)
    agent = Agent(ScriptedModel(script), tools=[remember, delete_files], interventions=[hitl])
    assert [interrupt.name for interrupt in agent("go").interrupts] == [hitl.name]
    [(status, text)] = results(agent)
    assert status == "error" and "Choose another key" in text


def test_what_a_worker_of_other_code_says_that_a_tool_wrote_makes_no_trust():
    """The cycle drops it, whoever ran the tool."""
    state = AgentState({TRUSTED_TOOLS_KEY: ["a"]})
    state.merge({TRUSTED_TOOLS_KEY: ["b"], "seen": 1}, [TRUSTED_TOOLS_KEY])
    assert state.get() == {TRUSTED_TOOLS_KEY: ["a"], "seen": 1}


def test_custom_trust():
    """`evaluate_trust` decides what means trust."""
    log = []
    hitl = HumanInTheLoop(enable_trust=True, evaluate_trust=lambda r: r == "always")
    agent = make(log, twice(), hooks=[], interventions=[hitl])
    agent(reply(agent("go"), "always"))
    assert log == [1, 2]


async def confirm_later(response):
    return response == "confirm"


@pytest.mark.parametrize("evaluate", [lambda r: r == "confirm", confirm_later])
@pytest.mark.parametrize(("said", "ran"), [("confirm", [1]), ("y", [])])
def test_custom_evaluate(evaluate, said, ran):
    """A custom `evaluate` replaces the default words; an async one is awaited, not taken as true."""
    log = []
    agent = make(log, acts(1), hooks=[], interventions=[HumanInTheLoop(evaluate=evaluate)])
    agent(reply(agent("go"), said))
    assert log == ran


def test_an_answer_is_judged_once():
    """A resume for another call does not judge an answer again."""
    judged = []

    def evaluate(response):
        judged.append(response)
        return True

    log = []
    agent = make(log, acts(1, 2), hooks=[], interventions=[HumanInTheLoop(evaluate=evaluate)])
    rest = agent(reply(agent("go"), "one")[:1])
    agent(reply(rest, "two"))
    assert (judged, log) == (["one", "two"], [1, 2])


def test_the_prompt_shows_tool_and_input():
    """The question reads as Strands words it, with the input as JSON."""
    agent = make([], acts(7), hooks=[], interventions=[HumanInTheLoop()])
    assert agent("go").interrupts[0].reason == 'Tool "act" requires human approval. Input: {"x": 7}'


def test_a_tool_that_a_hook_puts_behind_an_allowed_call_is_asked_about() -> None:
    """What counts is the tool that would run, not only the name in the call."""
    ran: list[str] = []

    @tool
    def look() -> str:
        """Look."""
        ran.append("look")
        return ""

    @tool
    def wipe() -> str:
        """Wipe."""
        ran.append("wipe")
        return ""

    def swap(event: BeforeToolCallEvent) -> None:
        event.selected_tool = wipe

    agent = Agent(
        model=ScriptedModel([calls(("look", {})), "done"]),
        tools=[look, wipe],
        hooks=[swap],
        interventions=[HumanInTheLoop(allowed_tools=["look"])],
    )
    assert agent("go").stop_reason == "interrupt"
    assert ran == []
