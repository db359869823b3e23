"""Interventions: what each action does at each lifecycle method, and in which order they win."""

import pytest
from tests.core.driving import acts, make, reply, results, valid

from countersign import InterventionHandler
from countersign.errors import AgentDefinitionError, EventLoopException, GuideLimitError
from countersign.hooks import AfterToolCallEvent, BeforeToolCallEvent
from countersign.interventions import Confirm, Deny, Guide, Proceed, Transform
from countersign.vended_interventions.hitl import HumanInTheLoop


def handler(handler_name, on_error="throw", **methods):
    """A handler whose lifecycle methods are the given functions."""
    members = {"name": handler_name, "on_error": on_error}
    for method, function in methods.items():
        members[method] = lambda self, event, function=function, **kwargs: function(event)
    return type(f"H_{handler_name}", (InterventionHandler,), members)()


def fails(event):
    raise OSError("service down")


def run(script, *handlers, log=None, **options):
    agent = make([] if log is None else log, script, hooks=options.pop("hooks", ()), interventions=handlers)
    return agent, agent("go")


def texts(agent):
    return [part["text"] for message in agent.messages for part in message["content"] if "text" in part]


@pytest.mark.parametrize("method", ["before_invocation", "before_tool_call", "after_tool_call", "before_model_call",
                                    "after_model_call"])  # fmt: skip
def test_proceed_changes_nothing(method):
    """Proceed is fine at every lifecycle method."""
    log = []
    _, result = run(acts(1), handler("h", **{method: lambda e: Proceed()}), log=log)
    assert (result.stop_reason, log) == ("end_turn", [1])


@pytest.mark.parametrize(("method", "said"), [("before_invocation", "DENIED: no"), ("before_model_call", "DENIED: no")])
def test_deny_before_invocation_and_model(method, said):
    """Deny ends the turn with its reason in the assistant's place; the prompt stays in the conversation."""
    agent, result = run(acts(1), handler("h", **{method: lambda e: Deny(reason="no")}))
    assert result.stop_reason == "end_turn"
    assert texts(agent) == ["go", said]
    assert valid(agent)


def test_deny_before_a_tool_call():
    """Deny cancels the call with its reason; the loop goes on, and later handlers are not asked."""
    heard, log = [], []
    agent, result = run(
        acts(1),
        handler("a", before_tool_call=lambda e: Deny(reason="no")),
        handler("b", before_tool_call=lambda e: heard.append(1) or Proceed()),
        log=log,
    )
    assert results(agent) == [("error", "DENIED: no")]
    assert (heard, log, result.stop_reason) == ([], [], "end_turn")


@pytest.mark.parametrize("method", ["after_tool_call", "after_model_call"])
def test_deny_after_the_fact_has_no_effect(method):
    """Deny on an after_ method is ignored with a warning."""
    log = []
    _, result = run(acts(1), handler("h", **{method: lambda e: Deny(reason="no")}), log=log)
    assert (result.stop_reason, log) == ("end_turn", [1])


def test_confirm_only_before_tool_calls():
    """Confirm elsewhere asks nobody."""
    _, result = run(acts(1), handler("h", before_model_call=lambda e: Confirm(prompt="?")))
    assert result.stop_reason == "end_turn"


def test_guide_before_a_tool_call_is_combined():
    """All guiding handlers are heard; the model gets their feedback together and the call does not run."""
    log = []
    agent, _ = run(
        acts(1),
        handler("a", before_tool_call=lambda e: Guide(feedback="one")),
        handler("b", before_tool_call=lambda e: Guide(feedback="two")),
        log=log,
    )
    assert (results(agent), log) == ([("error", "GUIDANCE: [a] one\n[b] two")], [])


def test_guide_before_invocation():
    """Guide ends the invocation with the feedback."""
    agent, _ = run(acts(1), handler("h", before_invocation=lambda e: Guide(feedback="ask nicely")))
    assert texts(agent) == ["go", "GUIDANCE: [h] ask nicely"]


def test_guide_before_a_model_call():
    """The feedback is an ordinary user message before the call."""
    agent, _ = run(["done"], handler("h", before_model_call=lambda e: Guide(feedback="be brief")))
    assert texts(agent) == ["go", "[h] be brief", "done"]


def test_guide_after_a_model_call_retries():
    """The answer is discarded, the feedback is added, and the model is called again."""

    def tone(event):
        rough = event.stop_response.message["content"][0]["text"] == "rough"
        return Guide(feedback="politely") if rough else Proceed()

    agent, result = run(["rough", "polite"], handler("h", after_model_call=tone))
    assert str(result) == "polite\n"
    assert texts(agent) == ["go", "[h] politely", "polite"]


def test_guide_is_capped():
    """Handlers that never stop guiding fail the turn by name instead of looping."""
    with pytest.raises(EventLoopException) as caught:
        run(lambda scene: "rough", handler("h", after_model_call=lambda e: Guide(feedback="again")))
    assert isinstance(caught.value.original_exception, GuideLimitError)


def test_transform_reaches_later_handlers_and_the_tool():
    """A Transform is applied at once: the next handler sees it, and it is what runs."""
    seen, log = [], []

    def change(event):
        event.tool_use["input"]["x"] = 5

    run(
        acts(1),
        handler("a", before_tool_call=lambda e: Transform(apply=change)),
        handler("b", before_tool_call=lambda e: seen.append(e.tool_use["input"]["x"]) or Proceed()),
        log=log,
    )
    assert (seen, log) == ([5], [5])


def test_transform_leaves_the_models_message_alone():
    """A changed input changes what runs, not what the model said."""
    agent, _ = run(
        acts(1), handler("a", before_tool_call=lambda e: Transform(apply=lambda e: e.tool_use["input"].update(x=5)))
    )
    assert agent.messages[1]["content"][0]["toolUse"]["input"] == {"x": 1}


def test_transform_of_results_and_answers():
    """Transform on the after_ methods changes what the model and the user get."""

    def redact(event):
        event.result = {**event.result, "content": [{"text": "redacted"}]}

    def shout(event):
        for part in event.stop_response.message["content"]:
            if "text" in part:
                part["text"] = part["text"].upper()

    agent, result = run(
        acts(1),
        handler("a", after_tool_call=lambda e: Transform(apply=redact)),
        handler("b", after_model_call=lambda e: Transform(apply=shout)),
    )
    assert (results(agent), str(result)) == ([("success", "redacted")], "DONE\n")


@pytest.mark.parametrize("later", [Deny(reason="never"), Guide(feedback="not like this")])
def test_nobody_is_asked_about_a_call_that_a_later_handler_blocks(later):
    """Deny and Guide of a later handler win over an earlier Confirm before a person is bothered."""
    agent, result = run(
        acts(1),
        handler("a", before_tool_call=lambda e: Confirm(prompt="?")),
        handler("b", before_tool_call=lambda e: later),
    )
    assert result.stop_reason == "end_turn"
    assert results(agent)[0][0] == "error"


def test_nobody_is_asked_about_a_call_that_a_hook_has_cancelled():
    """A hook's cancellation wins over a Confirm."""

    def hook(event: BeforeToolCallEvent):
        event.cancel_tool = "not today"

    agent, _ = run(acts(1), handler("a", before_tool_call=lambda e: Confirm(prompt="?")), hooks=[hook])
    assert results(agent) == [("error", "not today")]


@pytest.mark.parametrize(("said", "ran"), [("y", [1]), ("n", [])])
def test_confirm_asks_under_the_handlers_name(said, ran):
    """The question carries the handler's name and the prompt; the answer decides."""
    log = []
    agent, result = run(acts(1), handler("a", before_tool_call=lambda e: Confirm(prompt="Allow?")), log=log)
    assert [(i.name, i.reason) for i in result.interrupts] == [("a", "Allow?")]
    agent(reply(result, said))
    assert log == ran
    if not ran:
        assert results(agent) == [("error", "CONFIRMATION_FAILED: Allow?")]


@pytest.mark.parametrize(("response", "ran"), [("yes", [1]), (None, []), (False, [])])
def test_confirm_with_a_known_answer_asks_nobody(response, ran):
    """A preemptive answer is judged like a person's; None counts as one."""
    log = []
    _, result = run(acts(1), handler("a", before_tool_call=lambda e: Confirm("?", response=response)), log=log)
    assert (result.stop_reason, log) == ("end_turn", ran)


@pytest.mark.parametrize("on_error", ["throw", "proceed", "deny"])
@pytest.mark.parametrize(("said", "ran"), [("y", [1]), ("n", [])])
def test_a_handler_may_ask_by_itself(on_error, said, ran):
    """`event.interrupt` in a handler pauses the call as it does in a hook; it is no error for `on_error`."""
    log = []
    asks = handler(
        "h", on_error, before_tool_call=lambda e: Proceed() if e.interrupt("mine") == "y" else Deny(reason="no")
    )
    agent, result = run(acts(1), asks, log=log)
    assert [interrupt.name for interrupt in result.interrupts] == ["mine"]
    agent(reply(result, said))
    assert log == ran


def test_two_confirms_both_count():
    """Two handlers that ask both must be satisfied."""
    log = []
    confirm = {"before_tool_call": lambda e: Confirm(prompt="?")}
    agent, result = run(acts(1), handler("a", **confirm), handler("b", **confirm), log=log)
    result = agent(reply(result, "y"))
    assert ([i.name for i in result.interrupts], log) == (["b"], [])
    agent(reply(result, "y"))
    assert log == [1]


@pytest.mark.parametrize("broken", [fails, lambda e: None, lambda e: "deny"])
@pytest.mark.parametrize(("policy", "ran"), [("proceed", [1]), ("deny", [])])
def test_on_error(broken, policy, ran):
    """A handler that raises, or returns no action, goes on or blocks as it has declared."""
    log = []
    agent, _ = run(acts(1), handler("h", on_error=policy, before_tool_call=broken), log=log)
    assert log == ran
    assert valid(agent)


def test_what_can_not_be_sent_on_is_an_error_of_the_handler_that_wrote_it():
    """By its own `on_error`: it is taken out again, and the handlers after it are not blamed."""
    seen = []

    def writes(event):
        event.invocation_state.update(good=1, bad=object())
        return Proceed()

    def looks(event):
        seen.append(dict(event.invocation_state))
        return Proceed()

    log = []
    first, second = handler("a", "proceed", before_tool_call=writes), handler("b", before_tool_call=looks)
    run(acts(1), first, second, log=log)
    assert (log, seen) == ([1], [{"request_state": {}, "good": 1}])


@pytest.mark.parametrize(("broken", "kind"), [(fails, OSError), (lambda e: None, TypeError)])
def test_on_error_throw(broken, kind):
    """By default the invocation fails with the handler's own error, and the conversation stays valid."""
    agent = make([], acts(1), hooks=(), interventions=[handler("h", before_tool_call=broken)])
    with pytest.raises(EventLoopException) as caught:
        agent("go")
    assert isinstance(caught.value.original_exception, kind)
    assert valid(agent)


def test_on_error_deny_withholds_a_result():
    """Fail-closed after a tool: its result does not reach the model, and the handler is named."""
    agent, _ = run(acts(1), handler("h", on_error="deny", after_tool_call=fails))
    ((status, text),) = results(agent)
    assert status == "error"
    assert "'h'" in text


def test_on_error_deny_withholds_an_answer():
    """Fail-closed after the model: its message is discarded, its calls do not run, the turn ends."""
    log = []
    agent, result = run(acts(1), handler("h", on_error="deny", after_model_call=fails), log=log)
    assert (log, result.stop_reason) == ([], "end_turn")
    assert str(result).startswith("DENIED")
    assert valid(agent)


def test_on_error_covers_evaluate():
    """An `evaluate` that raises is an error of its handler."""
    log = []
    agent, result = run(
        acts(1), handler("h", on_error="deny", before_tool_call=lambda e: Confirm("?", evaluate=fails)), log=log
    )
    agent(reply(result, "y"))
    assert (log, results(agent)[0][0]) == ([], "error")


def test_duplicate_handler_names():
    """Two handlers of one name are refused when the agent is built."""
    with pytest.raises(ValueError, match="Duplicate"):
        make([], acts(1), interventions=[handler("h"), handler("h")])


def yields(*args):
    """What somebody writes who means `return`."""
    yield False


async def yields_async(*args):
    yield False


@pytest.mark.parametrize("body", [yields, yields_async])
def test_a_gate_that_yields_lets_nothing_through(body):
    """Nothing of it has run; as a value it would be true."""

    def hook(event: BeforeToolCallEvent):
        return body(event)

    confirming = handler("h", before_tool_call=lambda event: Confirm(prompt="ok?", evaluate=body, response="n"))
    judged = HumanInTheLoop(evaluate=body, ask=lambda prompt: "n")
    for gates in ({"hooks": [hook]}, {"interventions": [confirming]}, {"interventions": [judged]}):
        log = []
        with pytest.raises(EventLoopException, match="is a generator"):
            make(log, acts(1), **{"hooks": [], **gates})("go")
        assert log == []


class Nothing(InterventionHandler):
    """A handler that only proceeds."""

    name = "nothing"

    def helper(self):
        """Help."""


class Misspelt(InterventionHandler):
    """A handler that would never be heard."""

    name = "misspelt"

    def before_tool_calls(self, event):
        return Deny(reason="never")


def test_a_handler_that_would_never_be_heard_is_refused():
    """A misspelt method would be a gate that gates nothing. All methods may be left out."""
    with pytest.raises(AgentDefinitionError, match=r"'misspelt' .* 'before_tool_calls' is none of .*before_tool_call,"):
        make([], acts(1), interventions=[Misspelt()])
    assert make([], acts(1), hooks=[], interventions=[Nothing()])("go").stop_reason == "end_turn"


class RateLimiter(InterventionHandler):
    """As in the interventions document, with a lower limit."""

    name = "rate-limiter"

    def __init__(self, limit):
        self.limit, self.call_count = limit, 0

    def before_tool_call(self, event, **kwargs):
        self.call_count += 1
        return Deny(reason="Rate limit exceeded") if self.call_count > self.limit else Proceed()


def test_a_rate_limiter_counts_each_call_once():
    """Passes that end in a question do not count: two approved calls fit a limit of two, a third does not."""
    log, limiter = [], RateLimiter(2)
    ask = handler("ask", before_tool_call=lambda e: Confirm(prompt="?"))
    agent, result = run(acts(1, 2, 3), limiter, ask, log=log)
    while result.stop_reason == "interrupt":
        result = agent(reply(result, "y")[:1])
    assert log == [1, 2]
    assert results(agent)[2] == ("error", "DENIED: Rate limit exceeded")


def test_after_tool_call_sees_each_call_once():
    """An after_tool_call handler hears each call once, across a pause."""
    seen = []

    def after(event: AfterToolCallEvent):
        seen.append(event.tool_use["input"]["x"])
        return Proceed()

    ask = handler("ask", before_tool_call=lambda e: Confirm(prompt="?"))
    agent, result = run(acts(1, 2), ask, handler("after", after_tool_call=after))
    agent(reply(agent(reply(result, "y")[:1]), "n"))
    assert seen == [1, 2]
