"""Steering: rules in code and rules in words, before a tool runs and after the model has answered."""

import json

import pytest
from tests.core.driving import acts, make, reply, results, valid

from countersign import ScriptedModel
from countersign.agent_core.steering_judge import situation
from countersign.errors import AgentDefinitionError, EventLoopException, GuideLimitError, ModelAuthenticationError
from countersign.interventions import Confirm, Guide, Proceed
from countersign.models import calls
from countersign.vended_interventions.hitl import HumanInTheLoop
from countersign.vended_interventions.steering import LLMSteeringHandler, SteeringHandler


def verdict(decision, feedback="use staging"):
    """A judge's message."""
    return calls(("verdict", {"decision": decision, "feedback": feedback}))


def judge(*verdicts):
    """A model that gives these verdicts, the last one again and again; and what it was asked."""
    seen = []

    def script(scene):
        seen.append(scene)
        return verdicts[min(len(seen), len(verdicts)) - 1]

    return ScriptedModel(script), seen


def steered(log, model, script=None, **options):
    """An agent that calls `act` with 1, watched by a judge."""
    handler = LLMSteeringHandler("Never touch production.", model=model, **options)
    return make(log, script or acts(1), hooks=[], interventions=[handler])


class OddOnly(SteeringHandler):
    """Rules in code."""

    async def steer_before_tool(self, *, agent, tool_use, **kwargs):
        x = tool_use["input"]["x"]
        if x > 100:
            return Confirm(prompt=f"act on {x}?")
        return Proceed() if x % 2 else Guide(feedback="only odd numbers")


def test_a_rule_in_code_guides_one_call_and_asks_about_another():
    """The signature is that of Strands' plugin."""
    log = []
    agent = make(log, acts(1, 2, 101), hooks=[], interventions=[OddOnly()])
    result = agent("go")
    assert (log, [q.reason for q in result.interrupts]) == ([1], ["act on 101?"])
    agent(reply(result, "y"))
    assert log == [1, 101]
    assert results(agent)[1] == ("error", "GUIDANCE: [countersign:steering] only odd numbers")


def test_a_rule_in_code_sends_an_answer_back():
    """The first answer is discarded, the feedback is in the conversation; sync works too."""

    class Polite(SteeringHandler):
        def steer_after_model(self, *, agent, message, stop_reason, **kwargs):
            return Proceed() if "please" in str(message) else Guide(feedback="say please")

    agent = make([], ["give", "give, please"], hooks=[], interventions=[Polite()])
    assert str(agent("go")).strip() == "give, please"
    assert [message["content"][0]["text"] for message in agent.messages] == [
        "go",
        "[countersign:steering] say please",
        "give, please",
    ]


def test_the_judge_lets_a_call_pass():
    """It saw the rules, the call, what the user said, and what was done before."""
    log = []
    model, seen = judge(verdict("proceed"))
    steered(log, model, [*acts(1)[:1], *acts(2)])("tidy up")
    assert log == [1, 2]
    assert seen[1].system_prompt.startswith("Never touch production.")
    shown = json.loads(seen[1].prompt.split("\n\n", 1)[1])
    assert shown == {
        "user_said": ["tidy up"],
        "calls_so_far": [{"tool": "act", "input": '{"x": 1}', "status": "success", "result": "1"}],
        "call": {"tool": "act", "input": {"x": 2}},
    }


def test_the_judge_guides_a_call():
    """It does not run, and the model reads the feedback."""
    log = []
    model, _ = judge(verdict("guide"))
    agent = steered(log, model)
    agent("go")
    assert (log, results(agent)) == ([], [("error", "GUIDANCE: [countersign:steering] use staging")])


def test_the_judge_leaves_a_call_to_a_person():
    """With its reason; it is not heard again on resume, though it would say otherwise by now."""
    log = []
    model, seen = judge(verdict("confirm", "it is the only backup"), verdict("guide"))
    agent = steered(log, model)
    result = agent("go")
    assert result.interrupts[0].reason == 'Tool "act" requires human approval (it is the only backup). Input: {"x": 1}'
    agent(reply(result, "y"))
    assert (log, len(seen)) == ([1], 1)


def test_a_call_that_waits_for_another_handler_is_judged_once():
    """The verdict stays with the call however often it is resumed."""
    log = []
    model, seen = judge(verdict("proceed"), verdict("guide"))
    handlers = [LLMSteeringHandler("Be careful.", model=model), HumanInTheLoop()]
    agent = make(log, acts(1), hooks=[], interventions=handlers)
    agent(reply(agent("go"), "y"))
    assert (log, len(seen)) == ([1], 1)


def test_nobody_is_asked_about_a_guided_call():
    """Whatever the order of the handlers."""
    model, _ = judge(verdict("guide"))
    handlers = [HumanInTheLoop(), LLMSteeringHandler("Be careful.", model=model)]
    assert make([], acts(1), hooks=[], interventions=handlers)("go").stop_reason == "end_turn"


def test_an_answer_is_judged_and_sent_back():
    """Only messages that ask for no tool are answers."""
    log = []
    model, seen = judge(verdict("guide", "be brief"), verdict("proceed"))
    agent = steered(log, model, [*acts(1), "ok"], before_tool=False, after_model=True)
    assert str(agent("go")).strip() == "ok"
    assert (log, len(seen)) == ([1], 2)
    shown = [json.loads(scene.prompt.split("\n\n", 1)[1]) for scene in seen]
    assert [item["answer"] for item in shown] == ["done", "ok"]
    assert shown[1]["user_said"] == ["go", "[countersign:steering] be brief"]


def test_an_answer_can_not_be_left_to_a_person():
    """There is nothing to wait with; a judge that says so anyway is not understood, and the answer withheld."""
    model, seen = judge(verdict("confirm"))
    agent = steered([], model, ["hi"], after_model=True)
    assert "DENIED: withheld" in str(agent("go"))
    assert "confirm" not in seen[0].system_prompt


UNREADABLE = [
    "I am not sure.",
    verdict("maybe"),
    verdict("guide", " "),
    calls(("verdict", {"feedback": "x"})),
    calls(("other", {"decision": "proceed"})),
    calls(("verdict", {"decision": "proceed", "feedback": ""}), ("verdict", {"decision": "guide", "feedback": "no"})),
    ModelAuthenticationError("bad key"),
]


@pytest.mark.parametrize("said", UNREADABLE)
def test_a_judge_that_fails_denies_the_call(said):
    """Fail closed, with what went wrong."""
    log = []
    model, _ = judge(said)
    agent = steered(log, model)
    agent("go")
    assert log == []
    assert "DENIED: Handler threw: the steering judge" in results(agent)[0][1]


@pytest.mark.parametrize(("on_error", "ran"), [("proceed", [1]), ("deny", [])])
def test_on_error_says_what_a_failing_judge_means(on_error, ran):
    """For guidance that may be missed, and for rules that may not."""
    log = []
    model, _ = judge(RuntimeError("down"))
    assert steered(log, model, on_error=on_error)("go").stop_reason == "end_turn"
    assert log == ran


def test_a_failing_judge_may_fail_the_turn():
    """`on_error="throw"`."""
    model, _ = judge(RuntimeError("down"))
    with pytest.raises(EventLoopException, match="steering judge failed: down"):
        steered([], model, on_error="throw")("go")


def test_a_judge_that_failed_is_not_heard_again_while_the_call_waits():
    """It was let through and a person said yes: a judge that is back does not overrule them."""
    log = []
    model, seen = judge(RuntimeError("down"), verdict("guide"))
    handlers = [LLMSteeringHandler("Be careful.", model=model, on_error="proceed"), HumanInTheLoop()]
    agent = make(log, acts(1), hooks=[], interventions=handlers)
    agent(reply(agent("go"), "y"))
    assert (log, len(seen)) == ([1], 1)


def test_a_verdict_in_plain_json_counts():
    """Models without tools write it down."""
    log = []
    model, _ = judge('{"decision": "proceed", "feedback": ""}')
    steered(log, model)("go")
    assert log == [1]


def test_the_agents_own_model_judges_by_default():
    """The same model, another task."""
    log = []

    def script(scene):
        if "verdict" in scene.tools:
            return verdict("proceed")
        return "done" if scene.results("act") else calls(("act", {"x": 1}))

    steered(log, None, script)("go")
    assert log == [1]


@pytest.mark.parametrize(("tools", "heard"), [(["act"], 1), (["other"], 0)])
def test_tools_limit_what_is_judged(tools, heard):
    """A judge costs a model call."""
    model, seen = judge(verdict("proceed"))
    steered([], model, tools=tools)("go")
    assert len(seen) == heard


def test_a_model_that_does_not_take_guidance_is_stopped_for_the_turn():
    """After ten guided calls in a row the judge is not asked again; the next turn starts anew."""
    model, seen = judge(verdict("guide"))
    attempts = [calls(("act", {"x": x})) for x in range(12)]
    agent = steered([], model, [*attempts, "gave up", calls(("act", {"x": 99})), "done"])
    agent("go")
    assert len(seen) == 10
    assert "10 calls in a row needed guidance" in results(agent)[-1][1]
    agent("again")
    assert len(seen) == 11


def test_guided_answers_hit_the_limit_of_a_turn():
    """A judge that is never content fails the turn by name."""
    model, _ = judge(verdict("guide"))
    with pytest.raises(EventLoopException) as caught:
        steered([], model, lambda scene: "hi", after_model=True)("go")
    assert isinstance(caught.value.original_exception, GuideLimitError)


def test_the_judge_is_shown_the_end_of_a_long_session():
    """Twenty calls, each cut; two calls with one id keep their own results."""
    messages = [{"role": "user", "content": [{"text": "go"}]}]
    for number in range(15):
        uses = [{"toolUse": {"toolUseId": "same", "name": "act", "input": {"x": [number, side]}}} for side in "ab"]
        found = [
            {"toolResult": {"toolUseId": "same", "status": "success", "content": [{"text": f"{side}{number}" * 900}]}}
            for side in "ab"
        ]
        messages += [{"role": "assistant", "content": uses}, {"role": "user", "content": found}]
    shown = situation(messages, answer="x")["calls_so_far"]
    assert len(shown) == 20
    assert (shown[-1]["input"], shown[-1]["result"][:3]) == ('{"x": [14, "b"]}', "b14")
    assert all(len(call["result"]) < 1010 for call in shown)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"system_prompt": " "}, "the rules to judge by"),
        ({"system_prompt": "x", "model": 7}, "model must be"),
        ({"system_prompt": "x", "tools": "act"}, "a list of tool names"),
        ({"system_prompt": "x", "on_error": "panic"}, "on_error must be"),
        ({"system_prompt": "x", "before_tool": False}, "nothing to steer"),
    ],
)
def test_what_can_not_be_used_is_refused_when_the_handler_is_made(options, said):
    """By name."""
    with pytest.raises(AgentDefinitionError, match=said):
        LLMSteeringHandler(**options)


def test_two_judges_with_names_of_their_own():
    """Each guides by its rules, and the feedback is combined."""
    handlers = [
        LLMSteeringHandler("A", model=judge(verdict("guide", "a"))[0], name="first"),
        LLMSteeringHandler("B", model=judge(verdict("guide", "b"))[0], name="second"),
    ]
    agent = make([], acts(1), hooks=[], interventions=handlers)
    agent("go")
    assert results(agent)[0][1] == "GUIDANCE: [first] a\n[second] b"
    assert valid(agent)


def test_new_rules_judge_an_old_session():
    """The rules are not among what a handler remembers."""
    agent = steered([], judge(verdict("guide"))[0])
    agent("go")
    assert agent.memory.take() == {"LLMSteeringHandler:countersign:steering": {"guided_in_a_row": 1}}
