"""Cases: what people answer, and what an answer covers."""

from datetime import timedelta
from typing import Any

from tests.differential.must_show import Case, agent, asks, case, counted, messages_only, outcome, ran, says, up, use
from tests.differential.running import Trace, blocks
from tests.differential.sdk import World

from countersign.vended_interventions.hitl import ClassifierResult, HumanInTheLoop

TWO = says([use(1), use(2)])


def flips(w: World) -> Any:
    """Risky when it is first heard, fine afterwards."""

    def classify(event: Any, **kwargs: Any) -> ClassifierResult:
        first = up(event, "judged") == 1
        return ClassifierResult(requires_human_in_the_loop=first, reason="risky" if first else None)

    return agent(w, says([use(1)]), handlers=[HumanInTheLoop(classifier=classify)])


def trusting(w: World) -> Any:
    return agent(w, TWO, handlers=[HumanInTheLoop(enable_trust=True)])


def last_run_fails(w: World) -> Any:
    """The first turn fails after its question was answered; the second has a call of the same id."""

    def fails(event: Any) -> None:
        if up(event, "passes") == 2:
            raise ValueError("broken")

    return agent(w, says([use(1)]), hooks=[asks(w), w.hooks(BeforeToolCall=fails)])


def changes_in_place(w: World) -> Any:
    """Before the question, after it, and again on each resume."""

    def more(event: Any) -> None:
        event.tool_use["input"]["x"] += 10

    transform = w.handler("more", before_tool_call=lambda e: w.sdk.Transform(apply=more))
    return agent(w, TWO, hooks=[w.hooks(BeforeToolCall=more), asks(w)], handlers=[transform])


def renames_late(w: World) -> Any:
    def rename(event: Any) -> None:
        event.tool_use["name"] = "act"

    late = w.handler("late", before_tool_call=lambda e: w.sdk.Transform(apply=rename))
    return agent(w, says([use(1, name="look")]), handlers=[HumanInTheLoop(allowed_tools=["look"]), late])


def recomputes(w: World) -> Any:
    def hook(event: Any) -> None:
        price = 10 * min(up(event, "asked"), 2)
        if event.interrupt("pay?", reason={"price": price}) != "y":
            event.cancel_tool = "refused"

    return agent(w, says([use(1)]), hooks=[w.hooks(BeforeToolCall=hook)])


def fails_and_retries(w: World) -> Any:
    def body(context: Any, x: int) -> Any:
        raise RuntimeError("broken")

    def retry(event: Any) -> None:
        event.retry = up(event, "ended") == 1

    return agent(w, says([use(1)]), hooks=[asks(w), w.hooks(AfterToolCall=retry)], tools=[counted(w, body=body)])


asked_inline: list[str] = []


def inline(w: World) -> Any:
    """An inline `ask`, and another question that pauses the same call."""

    def ask(prompt: str) -> str:
        asked_inline.append(prompt)
        return "y"

    def body(context: Any, x: int) -> Any:
        times, _ = len(asked_inline), asked_inline.clear()
        return times

    return agent(w, says([use(1)]), hooks=[w.hooks(order=95, BeforeToolCall=lambda e: e.interrupt("late"))],
                 handlers=[HumanInTheLoop(ask=ask)], tools=[counted(w, body=body)])  # fmt: skip


def one_time_code(w: World) -> Any:
    def before(event: Any) -> Any:
        def evaluate(response: Any) -> bool:
            return up(event, "checked") == 1 and response == "4711"

        return w.sdk.Confirm(prompt="code?", evaluate=evaluate)

    return agent(w, TWO, handlers=[w.handler("code", before_tool_call=before)])


def shows_answer(w: World) -> Any:
    def hook(event: Any) -> None:
        event.cancel_tool = repr(event.interrupt("any", answers={}))

    return agent(w, says([use(x) for x in range(len(FALSY))]), hooks=[w.hooks(BeforeToolCall=hook)])


def bad_reason(reason: Any) -> Any:
    return lambda w: agent(w, TWO, hooks=[asks(w, only=[2], reason=reason)])


def confirming(w: World) -> Any:
    confirm = w.handler("c", before_tool_call=lambda e: w.sdk.Confirm(prompt="ok?"))
    return agent(w, says([use(x) for x in range(len(NO))]), handlers=[confirm])


def reads_state(w: World) -> Any:
    """The hook reads what came with the prompt, on each pass; the model asks for ever."""

    def hook(event: Any) -> None:
        if event.interrupt("ok?", reason=event.invocation_state.get("user")) != event.invocation_state.get("user"):
            event.cancel_tool = "somebody else"

    return agent(w, lambda scene: [use(len(scene.messages))], hooks=[w.hooks(BeforeToolCall=hook)])


FALSY: tuple[Any, ...] = (None, False, 0, 0.0, "", [], {})
NO: tuple[Any, ...] = ("false", "not ok", {"approved": False}, False, None, 0, [], "n", "yes please", 1, ["y"])


def first_only(interrupts: Any) -> list[Any]:
    return blocks(interrupts, ["t", ...])


def old_answer(interrupts: Any) -> list[Any]:
    """An answer to the question of the turn before."""
    return [{"interruptResponse": {"interruptId": "int-1-0-0000000000000000", "response": "y"}}]


def ids_differ(trace: Trace) -> bool:
    found = [item for ids in trace.ids for item in ids]
    return len(set(found)) == len(found)


ALL: list[Case] = [
    case("a classifier that changes its mind", flips, [["n"]], outcome, (["interrupt", "end_turn"], {}, ["error"])),
    case("trust for one and no for the other", trusting, [["t", "n"]], outcome,
         (["interrupt", "end_turn"], {"use-1 act(1)": 1}, ["success", "error"])),
    case("no for one and trust for the other", trusting, [["n", "t"]], outcome,
         (["interrupt", "end_turn"], {"use-2 act(2)": 1}, ["error", "success"])),
    case("trust alone, and no later", trusting, [first_only, ["n"]], lambda t: (ran(t), len(t.asked)),
         ({"use-1 act(1)": 1, "use-2 act(2)": 1}, 1)),
    case("two calls of one id", lambda w: agent(w, says([use(1, "twin"), use(2, "twin")]), hooks=[asks(w)]),
         [["n", "y"]], lambda t: (ran(t), ids_differ(t)), ({"twin act(2)": 1}, True)),
    case("an id that comes again in a later turn", lambda w: agent(w, says([use(1, "again")]), hooks=[asks(w)]),
         [["y"], ["n"]], lambda t: (ran(t), len(t.asked), ids_differ(t)), ({"again act(1)": 1}, 2, True), ("go", "go")),
    case("a question of a failed turn", last_run_fails, [["y"], ["n"]],
         lambda t: (*messages_only(t)[:1], ran(t), ids_differ(t)),
         (["interrupt", "ValueError", "interrupt", "end_turn"], {}, True), ("go", "go")),
    case("an input changed in place, before and after the question", changes_in_place, [["y", ...], ["y"]],
         lambda t: (ran(t), [block["toolUse"]["input"] for block in t.messages[1]["content"]]),
         ({"use-1 act(21)": 1, "use-2 act(22)": 1}, [{"x": 1}, {"x": 2}])),
    case("a tool renamed after the list was checked", renames_late, [["n"]], outcome,
         (["interrupt", "end_turn"], {}, ["error"])),
    case("a price that is computed again", recomputes, [["y"], ["y"]], lambda t: (t.asked, ran(t)),
         ([[["pay?", {"price": 10}]], [["pay?", {"price": 20}]]], {"use-1 act(1)": 1})),
    case("an approved call that fails and is tried again", fails_and_retries, [["y"], ["n"]],
         lambda t: (len(t.asked), ran(t)), (2, {"use-1 act(1)": 1})),
    case("an inline question is asked once", inline, [["y"]], lambda t: (ran(t), messages_only(t)[1]),
         ({"use-1 act(1)": 1}, [("success", "1")])),
    case("a one-time code is checked once", one_time_code, [["4711", ...], ["4711"]],
         lambda t: (ran(t), t.state["checked"]), ({"use-1 act(1)": 1}, 2)),
    case("every falsy answer arrives as it is", shows_answer, [FALSY],
         lambda t: messages_only(t)[1], [("error", repr(value)) for value in FALSY]),
    case("nothing but a clear yes approves", confirming, [NO], lambda t: (outcome(t)[0], ran(t)),
         (["interrupt", "end_turn"], {})),
    *(case(f"a reason that is {type(value).__name__}", bad_reason(value), [],
           lambda t: (t.stops[0].split(":")[0], [status for status, _ in messages_only(t)[1]]),
           ("TypeError", ["error"] * 2))
      for value in (timedelta(days=1), {1, 2}, b"bytes")),
    case("what came with the prompt, and limits, survive the pause", reads_state, [["ana"]] * 5,
         lambda t: ([stop for stop in t.stops if stop != "interrupt"], t.asked[-1], len(ran(t))),
         (["limit_turns"], [["ok?", "ana"]], 2), invocation_state={"user": "ana"}, limits={"turns": 2}),
]  # fmt: skip
