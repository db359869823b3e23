"""Countersign's own questions: one about all that is not covered, and an approval of one run."""

import pytest
from tests.core.driving import acts, asking, asks, asks_about_all, make, reply, results, succeed

from countersign import ToolContext, tool
from countersign.hooks import AfterToolCallEvent, BeforeToolCallEvent


def change(event: BeforeToolCallEvent):
    event.tool_use["input"]["x"] = 99


def approved(agent, result):
    """Approve all that is asked; the result."""
    return agent(reply(result, *("y" for _ in result.interrupts)))


def shown(result):
    """The one question that is open: its name, and what the reason says was asked before."""
    [question] = result.interrupts
    return question.name, [one["was_asked"] for one in [question.reason, *question.reason.get("also", [])]]


@pytest.mark.parametrize("hooks", [[asks("a"), asks("b")], [asks_about_all("a"), asks("b")]])
def test_one_question_is_about_all_answers_whose_code_is_gone(hooks):
    """It shows them all, so that one approval runs the call."""
    log = []
    old = make(log, acts(1), hooks=hooks)
    result = old("go")
    if len(result.interrupts) == 1:  # the batch is asked about first
        result = approved(old, result)
    new = succeed(old, make(log, acts(1), hooks=[]))
    result = approved(new, result)
    assert sorted(shown(result)[1]) == ["a", "b"]
    assert (shown(result)[0], approved(new, result).stop_reason, log) == ("policy-changed", "end_turn", [1])


def test_one_question_is_about_all_batch_approvals_of_a_changed_call():
    """Two hooks approved the batch; the changed call is asked about once."""
    log = []
    agent = make(log, acts(1), hooks=[asks_about_all("a"), asks_about_all("b"), change])
    result = approved(agent, agent("go"))
    assert shown(result) == ("input-changed", ["a", "b"])
    assert (approved(agent, result).stop_reason, log) == ("end_turn", [99])


def test_an_approval_of_a_changed_policy_covers_one_run():
    """No hook asks any more, and one wants the call to run again: a person does so, too."""
    log = []

    def again(event: AfterToolCallEvent):
        event.retry = len(log) < 3

    old = make(log, acts(1), hooks=[asking])
    result = old("go")
    new = succeed(old, make(log, acts(1), hooks=[again]))
    for name, runs in [("policy-changed", []), ("run-again", [1]), ("run-again", [1, 1])]:
        result = approved(new, result)
        assert (shown(result)[0], log) == (name, runs)
    assert (approved(new, result).stop_reason, log) == ("end_turn", [1, 1, 1])


def again_and_again(event: AfterToolCallEvent):
    event.retry = event.result["status"] == "success"


def harmless(log):
    """`act`, of which a later version says that it may run twice."""

    @tool(idempotent=True)
    def act(x: int = 0) -> int:
        """Act."""
        log.append(x)
        return x

    return [act]


def policy_that_was_rolled_back(log):
    """Approved by a hook that is gone in the next deployment, and back in the one after it."""
    old = make(log, acts(1), hooks=[asking])
    new = succeed(old, make(log, acts(1), hooks=[]))
    result = approved(new, old("go"))
    return result, succeed(new, make(log, acts(1), hooks=[asking]))


def input_that_was_changed_once(log):
    """Approved as one of a batch; only in the first pass a hook makes another call of it."""
    agent = make(log, acts(1), hooks=[asks_about_all("a"), change])
    result = approved(agent, agent("go"))
    return result, succeed(agent, make(log, acts(1), hooks=[asks_about_all("a")]))


def tool_that_may_run_again(log):
    """Retried by a hook; meanwhile its tool needs no approval for that any more."""
    hooks = [asks_about_all("a"), again_and_again]
    agent = make(log, acts(1), hooks=hooks)
    result = approved(agent, agent("go"))
    return result, succeed(agent, make(log, acts(1), hooks=hooks, tools=harmless(log)))


@pytest.mark.parametrize("said", ["n", "perhaps"])
@pytest.mark.parametrize(
    ("question", "waits", "ran"),
    [
        ("policy-changed", policy_that_was_rolled_back, []),
        ("input-changed", input_that_was_changed_once, []),
        ("run-again", tool_that_may_run_again, [1]),
    ],
)
def test_a_refusal_holds_where_nothing_is_left_to_ask_about(question, waits, ran, said):
    """A call that a person refused does not run, whatever its policy, its input and its tool are by then."""
    log = []
    result, agent = waits(log)
    assert (shown(result)[0], log) == (question, ran)
    assert (agent(reply(result, said)).stop_reason, log) == ("end_turn", ran)
    assert results(agent)[0] == ("error", f"Not run: a person refused it ({question}: {said!r}).")


def bodies(log):
    """`act`, whose body asks, and `other`, whose body does not."""

    @tool(context=True)
    def act(tool_context: ToolContext, x: int = 0) -> str:
        """Act, if a person agrees."""
        if tool_context.interrupt("really?") == "y":
            log.append(x)
        return "heard"

    @tool
    def other(x: int = 0) -> None:
        """Act."""
        log.append(x)

    return [act, other]


def select(event: BeforeToolCallEvent):
    event.selected_tool = event.agent.tool_registry.get("other")


@pytest.mark.parametrize(
    ("hooks", "told"),
    [
        ([], ("success", "heard")),
        ([select], ("error", "Not run: a person refused it (really?: 'n').")),
        ([change], ("error", "Not run: a person refused it (really?: 'n').")),
    ],
)
def test_a_no_to_a_tools_body_holds_for_whatever_hooks_make_of_its_call(hooks, told):
    """The body that asked hears it; another tool, and one that would get another input, does not run."""
    log = []
    old = make(log, acts(1), hooks=[], tools=bodies(log))
    result = old("go")
    new = succeed(old, make(log, acts(1), hooks=hooks, tools=bodies(log)))
    assert (new(reply(result, "n")).stop_reason, log) == ("end_turn", [])
    assert results(new) == [told]
