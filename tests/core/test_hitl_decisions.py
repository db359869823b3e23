"""Inline `ask`, and approve, edit, reject: what a person may say besides y and n."""

import pytest
from tests.core.driving import acts, make, reply, results, valid

from countersign import tool
from countersign.agent_core.interventions.actions import Edit
from countersign.errors import AgentDefinitionError, EventLoopException
from countersign.hooks import AfterToolCallEvent, BeforeToolCallEvent, BeforeToolsEvent
from countersign.interventions import Confirm, Deny, InterventionHandler, Proceed, Transform
from countersign.vended_interventions.hitl import HumanInTheLoop


def agent_with(log, *handlers, script=None, hooks=(), **options):
    """An agent that calls `act` with 1, behind `HumanInTheLoop` and other handlers."""
    return make(log, script or acts(1), hooks=list(hooks), interventions=[HumanInTheLoop(**options), *handlers])


# --- Inline ---


@pytest.mark.parametrize(("said", "ran"), [("y", [1]), (True, [1]), ("n", []), ("", []), (None, []), (0, [])])
def test_an_inline_ask_decides_without_a_pause(said, ran):
    """None and every other answer that is no approval deny."""
    log, asked = [], []

    def ask(prompt):
        asked.append(prompt)
        return said

    agent = agent_with(log, ask=ask)
    assert agent("go").stop_reason == "end_turn"
    assert (log, asked) == (ran, ['Tool "act" requires human approval. Input: {"x": 1}'])
    assert valid(agent)


async def test_an_async_ask_is_awaited():
    """Web pages and chats are async."""
    log = []

    async def ask(prompt):
        return "yes"

    await agent_with(log, ask=ask).invoke_async("go")
    assert log == [1]


def test_what_an_ask_raises_ends_the_turn():
    """Fail closed, by its own name."""
    log = []

    def ask(prompt):
        raise RuntimeError("the chat is down")

    with pytest.raises(EventLoopException, match="the chat is down"):
        agent_with(log, ask=ask)("go")
    assert log == []


def test_trust_works_inline_too():
    """A "t" covers the tool's later calls."""
    log, asked = [], []

    def ask(prompt):
        asked.append(prompt)
        return "t"

    agent_with(log, script=[*acts(1)[:1], *acts(2)], ask=ask, enable_trust=True)("go")
    assert (log, len(asked)) == ([1, 2], 1)


def test_an_inline_ask_is_not_repeated_on_resume():
    """Another question pauses the same call; when it goes on, the inline answer stands, and so does its verdict."""
    log, asked, judged = [], [], []

    class Second(InterventionHandler):
        name = "second"

        def before_tool_call(self, event, **kwargs):
            return Confirm("and you?")

    def ask(prompt):
        asked.append(prompt)
        return "code-7"

    def one_time_code(response):
        judged.append(response)
        return response == "code-7" and len(judged) == 1

    agent = agent_with(log, Second(), ask=ask, evaluate=one_time_code)
    agent(reply(agent("go"), "y"))
    assert (log, len(asked), judged) == ([1], 1, ["code-7"])


def test_nobody_is_asked_inline_about_a_call_that_another_handler_denies():
    """All handlers are heard first."""
    asked = []

    class Never(InterventionHandler):
        name = "never"

        def before_tool_call(self, event, **kwargs):
            return Deny(reason="never")

    agent_with([], Never(), ask=lambda prompt: asked.append(prompt) or "y")("go")
    assert asked == []


def test_a_call_that_changes_after_its_inline_approval_does_not_run():
    """A hook behind the handler puts another input in place: what was approved is not what would run."""
    log = []

    def later(event: BeforeToolCallEvent) -> None:
        event.tool_use["input"] = {"x": 1_000}

    agent = agent_with(log, ask=lambda prompt: "y")
    agent.hooks.add_callback(BeforeToolCallEvent, later, order=10_000)
    agent("go")
    assert log == []
    assert "changed after a person had approved it" in results(agent)[0][1]


def test_the_terminal_is_asked_as_the_document_shows_it(monkeypatch):
    """Prompt and options on one line."""
    log, shown = [], []
    monkeypatch.setattr("builtins.input", lambda prompt: shown.append(prompt) or " y ")
    agent_with(log, ask="stdio", enable_trust=True)("go")
    assert (log, shown) == ([1], ['Tool "act" requires human approval. Input: {"x": 1} (y/n/t): '])


def test_an_ask_that_is_none_is_refused():
    """When the handler is made."""
    with pytest.raises(AgentDefinitionError, match="ask must be"):
        HumanInTheLoop(ask="slack")


def test_another_tool_behind_a_call_after_its_inline_approval_does_not_run():
    """The name and the input are the same; what would run is not what was approved."""
    log, other = [], []

    @tool
    def wipe(x: int = 0) -> int:
        """Wipe."""
        other.append(x)
        return x

    @tool
    def act(x: int = 0) -> int:
        """Act."""
        log.append(x)
        return x

    def later(event: BeforeToolCallEvent) -> None:
        event.selected_tool = wipe

    agent = make(log, acts(1), tools=[act, wipe], hooks=[], interventions=[HumanInTheLoop(ask=lambda prompt: "y")])
    agent.hooks.add_callback(BeforeToolCallEvent, later, order=10_000)
    agent("go")
    assert (log, other) == ([], [])


@pytest.mark.parametrize(("answers", "ran"), [(["y", "y"], [1, 1]), (["y", "n"], [1])])
def test_a_retry_asks_inline_again(answers, ran):
    """An approval covers one execution."""
    log, said = [], list(answers)

    def again(event: AfterToolCallEvent) -> None:
        event.retry = len(log) == 1 and not event.cancel_message

    agent = agent_with(log, hooks=[again], ask=lambda prompt: said.pop(0))
    agent("go")
    assert (log, said) == (ran, [])


# --- Decisions ---


def decide(log, response, **options):
    """What becomes of the call when a person decides so."""
    agent = agent_with(log, **options)
    result = agent(reply(agent("go"), response))
    assert result.interrupts or valid(agent)
    return agent, result


def told(agent):
    """All that the model is told of the call."""
    return str(agent.messages[2]["content"])


def test_a_decision_to_approve_runs_the_call_and_its_reason_reaches_the_model():
    """Beside the tool's own words."""
    log = []
    agent, _ = decide(log, {"decision": "approve", "reason": "only this once"})
    assert log == [1]
    assert "A person said: only this once" in told(agent)


def test_a_decision_to_reject_does_not_run_it_and_its_reason_reaches_the_model():
    """As words would."""
    log = []
    agent, _ = decide(log, {"decision": "reject", "reason": "use the staging account"})
    assert (log, results(agent)[0][0]) == ([], "error")
    assert "use the staging account" in results(agent)[0][1]


@pytest.mark.parametrize(("enabled", "ran"), [(True, [1, 2]), (False, [])])
def test_a_decision_to_trust_counts_only_where_trust_is_enabled(enabled, ran):
    """Else it is no approval."""
    log = []
    agent = agent_with(log, script=[*acts(1)[:1], *acts(2)], enable_trust=enabled)
    agent(reply(agent("go"), {"decision": "trust"}))
    assert log == ran


def test_an_edit_runs_the_edited_call_and_says_so():
    """The model's message stays as it was; the audit has both inputs."""
    log = []
    agent, _ = decide(log, {"decision": "edit", "input": {"x": 7}, "reason": "seven is enough"})
    assert log == [7]
    assert agent.messages[1]["content"][0]["toolUse"]["input"] == {"x": 1}
    assert 'changed the input of this call before it ran: {"x":7}' in told(agent)
    assert "seven is enough" in told(agent)


@pytest.mark.parametrize("bad", [{"x": "many"}, "text", None])
def test_an_edit_that_does_not_fit_the_schema_asks_again_and_says_why(bad):
    """Nothing ran, and the person can correct it."""
    log = []
    agent, again = decide(log, {"decision": "edit", "input": bad})
    assert (again.stop_reason, log) == ("interrupt", [])
    agent(reply(again, {"decision": "edit", "input": {"x": 3}}))
    assert log == [3]


def test_an_edit_is_heard_by_the_other_handlers():
    """A policy that denies the edited call denies it."""
    log = []

    class Small(InterventionHandler):
        name = "small"

        def before_tool_call(self, event, **kwargs):
            return Deny(reason="too much") if event.tool_use["input"]["x"] > 5 else Proceed()

    agent = agent_with(log, Small())
    agent(reply(agent("go"), {"decision": "edit", "input": {"x": 6}}))
    assert log == []
    assert "too much" in results(agent)[0][1]


def test_an_edit_voids_what_others_signed():
    """Another person approved the call as it was; they are asked about the edited one."""
    log = []

    class Second(InterventionHandler):
        name = "second"

        def before_tool_call(self, event, **kwargs):
            return Confirm(f"x = {event.tool_use['input']['x']}?")

    agent = agent_with(log, Second())
    first = agent("go")
    both = agent([reply(first, {"decision": "edit", "input": {"x": 7}})[0]])
    assert [question.reason for question in both.interrupts] == ["x = 7?"]
    agent(reply(both, "y"))
    assert log == [7]


def test_a_transform_after_an_edit_voids_it():
    """What was signed is the edited input; what would run is another one, so the person is asked again."""
    log = []

    class Double(InterventionHandler):
        name = "double"

        def before_tool_call(self, event, **kwargs):
            def double(event):
                event.tool_use["input"]["x"] *= 2

            return Transform(double)

    agent = agent_with(log, Double())
    again = agent(reply(agent("go"), {"decision": "edit", "input": {"x": 7}}))
    assert (again.stop_reason, log) == ("interrupt", [])
    agent(reply(again, "n"))
    assert log == []


def test_with_an_evaluate_of_ones_own_decisions_mean_what_it_says():
    """{"decision": "approve"} must not get past a rule that wants a word."""
    log = []
    decide(log, {"decision": "approve"}, evaluate=lambda response: response == "confirm")
    decide(log, {"decision": "edit", "input": {"x": 9}}, evaluate=lambda response: response == "confirm")
    assert log == []


def test_an_inline_ask_may_edit_too():
    """The edited call runs, and nobody is asked a second time."""
    log, asked = [], []

    def ask(prompt):
        asked.append(prompt)
        return {"decision": "edit", "input": {"x": 4}}

    agent_with(log, ask=ask)("go")
    assert (log, len(asked)) == ([4], 1)


def test_an_edit_that_is_known_beforehand_runs_the_edited_call():
    """A handler hands it over as its Confirm's response, on every hearing; the second one changes nothing."""
    log = []

    class Knows(InterventionHandler):
        name = "knows"

        def before_tool_call(self, event, **kwargs):
            return Confirm("ok?", response={"x": 7}, evaluate=Edit)

    assert make(log, acts(1), hooks=[], interventions=[Knows()])("go").stop_reason == "end_turn"
    assert log == [7]


def test_an_inline_edit_that_a_hook_always_changes_ends_in_words():
    """Nobody has approved what would run; the model is told, and the turn goes on."""
    log = []

    @tool
    def act(x: int, tenant: str = "") -> None:
        """Act."""
        log.append((x, tenant))

    def add_tenant(event: BeforeToolCallEvent):
        event.tool_use["input"]["tenant"] = "a"

    human = HumanInTheLoop(ask=lambda prompt: {"decision": "edit", "input": {"x": 5}})
    agent = make(log, acts(1), hooks=[add_tenant], tools=[act], interventions=[human])
    assert agent("go").stop_reason == "end_turn"
    assert log == []
    assert "keep changing this call" in results(agent)[0][1]


def test_a_batch_hook_gets_the_edited_input_in_later_passes():
    """The call waits for another answer still; the batch's question is about what would run."""
    log, heard = [], []

    def batch(event: BeforeToolsEvent):
        heard.append(event.message["content"][0]["toolUse"]["input"])

    class Second(InterventionHandler):
        name = "second"

        def before_tool_call(self, event, **kwargs):
            return Confirm(f"{event.tool_use['input']}?")

    agent = agent_with(log, Second(), hooks=[batch])
    second = agent(reply(agent("go"), {"decision": "edit", "input": {"x": 7}}))
    agent(reply(second, "y"))
    assert (log, heard[0], heard[-1]) == ([7], {"x": 1}, {"x": 7})
