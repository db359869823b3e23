"""Risk classifiers of `HumanInTheLoop`: whom they judge, how often, and that they fail closed."""

import pytest
from tests.core.driving import acts, make, reply, results

from countersign import ScriptedModel
from countersign.decisions import DecisionMetadata, DecisionModel, DecisionResult
from countersign.errors import AgentDefinitionError, ModelAuthenticationError
from countersign.models import calls
from countersign.vended_interventions.hitl import ClassifierResult, HumanInTheLoop, LLMClassifierConfig


def gated(log, classifier, script=None, **options):
    """An agent that calls `act` with 1, behind a classifier."""
    handler = HumanInTheLoop(classifier=classifier, **options)
    return make(log, script or acts(1), hooks=[], interventions=[handler])


def judge(*verdicts):
    """A model that gives these verdicts, and what it was asked."""
    seen = []
    given = list(verdicts)

    def script(scene):
        seen.append(scene)
        return given.pop(0)

    return ScriptedModel(script), seen


def verdict(requires, reason="because"):
    """A judge's message."""
    return calls(("verdict", {"requires_approval": requires, "reason": reason}))


def test_a_harmless_call_runs_without_a_question():
    """And the judge saw tool and input, and the criteria."""
    log = []
    model, seen = judge(verdict(False))
    result = gated(log, LLMClassifierConfig(model=model))("go")
    assert (result.stop_reason, log) == ("end_turn", [1])
    assert "Tool: act" in seen[0].prompt and '"x": 1' in seen[0].prompt
    assert "destroys something" in seen[0].system_prompt


def test_a_risky_call_is_asked_about_with_the_reason():
    """The person sees why."""
    model, _ = judge(verdict(True, "deletes data"))
    result = gated([], LLMClassifierConfig(model=model))("go")
    assert result.interrupts[0].reason == 'Tool "act" requires human approval (deletes data). Input: {"x": 1}'


def test_a_judge_that_changes_its_mind_is_not_heard_again():
    """Risky at the question, fine on resume, and the person says no: the call does not run."""
    log = []
    model, seen = judge(verdict(True), verdict(False))
    agent = gated(log, LLMClassifierConfig(model=model))
    agent(reply(agent("go"), "n"))
    assert (log, len(seen)) == ([], 1)


@pytest.mark.parametrize(
    "said",
    [
        "I am not sure.",
        calls(("verdict", {"reason": "no verdict"})),
        calls(("verdict", {"requires_approval": "no", "reason": "text"})),
        calls(("another_tool", {"requires_approval": False})),
        [
            *calls(("verdict", {"requires_approval": False, "reason": "a"})),
            *calls(("verdict", {"requires_approval": True, "reason": "b"})),
        ],
        ModelAuthenticationError("bad key"),
        RuntimeError("boom"),
    ],
)
def test_whatever_is_no_clear_no_asks_a_person(said):
    """No verdict, a malformed one, a model that fails: fail closed."""
    log = []
    model, _ = judge(said)
    result = gated(log, LLMClassifierConfig(model=model))("go")
    assert (result.stop_reason, log) == ("interrupt", [])


def test_a_verdict_in_plain_json_counts():
    """Models without tools write it down."""
    log = []
    model, _ = judge('{"requires_approval": false, "reason": "reads only"}')
    gated(log, LLMClassifierConfig(model=model))("go")
    assert log == [1]


def test_true_judges_with_the_agents_own_model():
    """The documents' short form; other criteria and another model go into the config."""
    log = []

    def script(scene):
        if "verdict" in scene.tools:
            return verdict(False)
        return "done" if scene.results("act") else calls(("act", {"x": 1}))

    assert gated(log, True, script)("go").stop_reason == "end_turn"
    assert log == [1]


def test_criteria_of_ones_own_take_the_place_of_the_built_in_ones():
    """The judge reads those."""
    model, seen = judge(verdict(False))
    gated([], LLMClassifierConfig(system_prompt="Only flag deletions.", model=model))("go")
    assert seen[0].system_prompt.startswith("Only flag deletions.")
    assert "destroys something" not in seen[0].system_prompt


@pytest.mark.parametrize(
    ("options", "asked"), [({"allowed_tools": ["act"]}, False), ({"allowed_tools": ["*", "!act"]}, True)]
)
def test_allowed_tools_are_not_judged_and_negated_ones_are_always_asked_about(options, asked):
    """The classifier is heard about neither."""
    heard = []

    def classifier(event):
        heard.append(event)
        return ClassifierResult(False)

    result = gated([], classifier, **options)("go")
    assert (result.stop_reason == "interrupt", heard) == (asked, [])


def test_a_trusted_tool_is_not_judged():
    """Trust covers later calls of that tool."""
    heard = []

    def classifier(event, **kwargs):
        heard.append(event.tool_use["input"]["x"])
        return ClassifierResult(True, "always")

    log = []
    agent = gated(log, classifier, [*acts(1)[:1], *acts(2)], enable_trust=True)
    agent(reply(agent("go"), "t"))
    assert (log, heard) == ([1, 2], [1])


@pytest.mark.parametrize("bad", [True, None, "risky", RuntimeError("boom")])
def test_a_function_that_fails_or_returns_something_else_asks_a_person(bad):
    """With what went wrong in the question."""

    def classifier(event):
        if isinstance(bad, Exception):
            raise bad
        return bad

    result = gated([], classifier)("go")
    assert "the classifier failed" in result.interrupts[0].reason


async def test_an_async_function_is_awaited():
    """As documented."""
    log = []

    async def classifier(event, **kwargs):
        return ClassifierResult(event.tool_use["name"].startswith("delete"))

    await gated(log, classifier).invoke_async("go")
    assert log == [1]


class Decider(DecisionModel):
    """Answers what it is told to."""

    def __init__(self, answer, reason):
        self.answer, self.reason, self.asked = answer, reason, []

    async def _ask(self, state, questions, **kwargs):
        self.asked.append((state, questions))
        reasons = dict.fromkeys(questions, self.reason) if self.reason else {}
        return DecisionResult(dict.fromkeys(questions, self.answer), reasons, DecisionMetadata(latency_ms=3))


@pytest.mark.parametrize(
    ("answer", "reason", "asked", "shown"),
    [
        (False, None, False, ""),
        (True, "drops a table", True, "(drops a table)"),
        (None, None, True, "(the decision model is uncertain)"),
        (None, "never seen this tool", True, "(never seen this tool)"),
    ],
)
def test_a_decision_model_answers_one_yes_no_question_to_the_same_criteria(answer, reason, asked, shown):
    """An uncertain answer requires approval and shows its reason."""
    model = Decider(answer, reason)
    result = gated([], model)("go")
    assert (result.stop_reason == "interrupt") is asked
    assert not asked or shown in result.interrupts[0].reason
    [(state, questions)] = model.asked
    assert state == {"tool": "act", "input": {"x": 1}}
    [question] = questions.values()
    assert "destroys something" in question["question"]


def test_an_argument_that_is_no_classifier_is_refused():
    """When the handler is made."""
    with pytest.raises(AgentDefinitionError, match="classifier must be"):
        HumanInTheLoop(classifier="risky")


def test_a_call_that_waits_beside_another_is_judged_once():
    """One of two calls is answered; the other is neither judged nor asked about anew."""
    log, heard = [], []

    def classifier(event):
        heard.append(event.tool_use["input"]["x"])
        return ClassifierResult(True)

    agent = gated(log, classifier, acts(1, 2))
    first = agent("go")
    second = agent([reply(first, "y", "y")[0]])
    assert (log, heard, [q.id for q in second.interrupts]) == ([1], [1, 2], [first.interrupts[1].id])
    agent(reply(second, "n"))
    assert (log, heard) == ([1], [1, 2])
    assert [status for status, _ in results(agent)] == ["success", "error"]


def test_what_the_judge_used_counts_as_the_turns():
    """Tokens of the classifier stand in the usage, once for each call, and limits hold for them too."""

    def used(result):
        return result.metrics.accumulated_usage["totalTokens"]

    def with_judge():
        return gated([], LLMClassifierConfig(model=judge(verdict(True))[0]))

    free = gated([], lambda event, **kwargs: ClassifierResult(True))
    judged, limited = with_judge(), with_judge()
    first_free, first_judged = free("go"), judged("go")
    of_judge = used(first_judged) - used(first_free)
    assert of_judge > 0
    assert used(judged(reply(first_judged, "y"))) - used(free(reply(first_free, "y"))) == of_judge
    result = limited("go", limits={"total_tokens": used(first_judged)})
    assert limited(reply(result, "y")).stop_reason == "limit_total_tokens"
