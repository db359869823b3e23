"""Cases: what code does wrong: models, tools, hooks and handlers that fail, swallow, loop, or object."""

import contextlib
from typing import Any

from tests.differential.must_show import Case, agent, asks, case, counted, messages_only, outcome, ran, says, up, use
from tests.differential.running import Trace, blocks
from tests.differential.sdk import World
from tests.differential.structured import Report

from countersign.agent_core.messages import history_faults
from countersign.models import Model, calls

TWO = says([use(1), use(2)])
CUT_OFF = {"toolUse": {"toolUseId": "u", "name": "act", "input": '{"x": 1'}}


def swallowing(w: World) -> Any:
    def hook(event: Any) -> None:
        with contextlib.suppress(Exception):
            event.interrupt("ok?")

    return agent(w, says([use(1)]), hooks=[w.hooks(BeforeToolCall=hook)])


def swallowing_bare(w: World) -> Any:
    def hook(event: Any) -> None:
        try:
            answer = event.interrupt("ok?")
        except BaseException:
            answer = "y"
        if answer != "y":
            event.cancel_tool = "refused"

    return agent(w, says([use(1)]), hooks=[w.hooks(BeforeToolCall=hook)])


def swallowing_tool(w: World) -> Any:
    def body(context: Any, x: int) -> Any:
        try:
            return context.interrupt("ok?")
        except BaseException:
            return "went on"

    return agent(w, says([use(1)]), tools=[counted(w, body=body)])


def with_handlers(*kinds: str) -> Any:
    """An agent whose handlers return these actions, in order, about one call."""

    def build(w: World) -> Any:
        made = {
            "confirm": lambda: w.sdk.Confirm(prompt="ok?"),
            "deny": lambda: w.sdk.Deny(reason="no"),
            "guide": lambda: w.sdk.Guide(feedback="otherwise"),
            "none": lambda: None,
            "text": lambda: "proceed",
        }
        handlers = [w.handler(f"h{i}", before_tool_call=lambda e, k=k: made[k]()) for i, k in enumerate(kinds)]
        return agent(w, says([use(1)]), handlers=handlers)

    return build


def confirm_after_cancel(w: World) -> Any:
    def cancel(event: Any) -> None:
        event.cancel_tool = "not now"

    handler = w.handler("c", before_tool_call=lambda e: w.sdk.Confirm(prompt="ok?"))
    return agent(w, says([use(1)]), hooks=[w.hooks(BeforeToolCall=cancel)], handlers=[handler])


def guides_for_ever(w: World) -> Any:
    return agent(w, ["rough"] * 30, handlers=[w.handler("g", after_model_call=lambda e: w.sdk.Guide(feedback="again"))])


def raising(where: str) -> Any:
    """The code about call 1 fails, once it was approved; call 2 needs no person."""

    def build(w: World) -> Any:
        def fails(event: Any) -> Any:
            if event.tool_use["input"].get("x") == 1 and (where == "after" or up(event, "passes") == 2):
                raise ValueError("broken")
            return w.sdk.Proceed()

        if where == "hook":
            return agent(w, TWO, hooks=[asks(w, only=[1]), w.hooks(BeforeToolCall=fails)])
        if where == "handler":
            return agent(w, TWO, hooks=[asks(w, only=[1])], handlers=[w.handler("h", before_tool_call=fails)])
        if where == "after":
            return agent(w, TWO, hooks=[asks(w, only=[1]), w.hooks(AfterToolCall=fails)])

        def evaluate(response: Any) -> bool:
            raise ValueError("broken")

        def confirm(event: Any) -> Any:
            return w.sdk.Confirm(prompt="ok?", evaluate=evaluate) if event.tool_use["input"]["x"] == 1 else fails(event)

        return agent(w, TWO, handlers=[w.handler("h", before_tool_call=confirm)])

    return build


def fails_with_one_open(w: World) -> Any:
    """Both calls ask; once one is answered, a hook fails."""

    def fails(event: Any) -> None:
        if up(event, "passes") == 3:
            raise ValueError("broken")

    return agent(w, TWO, hooks=[asks(w), w.hooks(BeforeToolCall=fails)])


def late(interrupts: Any) -> list[Any]:
    """The answer to the question that was open when the turn failed."""
    return blocks(interrupts[-1:], ["y"])


class CutOff(Model):
    """Stops at its token limit in the middle of a call."""

    async def stream(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": {"toolUse": {"toolUseId": "cut", "name": "act"}}}}
        yield {"contentBlockDelta": {"delta": {"toolUse": {"input": '{"x": 1'}}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "max_tokens"}}


def cut_off(w: World) -> Any:
    made = agent(w, TWO, hooks=[asks(w)])
    made.model = CutOff()
    return made


def cancelling(event: str, value: Any) -> Any:
    def build(w: World) -> Any:
        attribute = "cancel_tool" if event == "BeforeToolCall" else "cancel"
        return agent(w, TWO, hooks=[w.hooks(**{event: lambda e: setattr(e, attribute, value)})])

    return build


def denied(w: World) -> Any:
    """The first invocation is denied, the next one not."""

    def before(event: Any) -> Any:
        first = not event.agent.state.get("denied")
        event.agent.state.set("denied", True)
        return w.sdk.Deny(reason="not you") if first else w.sdk.Proceed()

    return agent(w, says([use(1)]), handlers=[w.handler("d", before_invocation=before)])


def cancelled_while_asked(w: World) -> Any:
    """Its own answer's pass is cancelled by a hook: between question and answer."""

    def cancel(event: Any) -> None:
        if event.agent.messages:
            event.agent.cancel()

    return agent(w, TWO, hooks=[asks(w), w.hooks(BeforeInvocation=cancel)])


def calls_directly(w: World) -> Any:
    def hook(event: Any) -> None:
        event.agent.tool.look(x=1, record_direct_tool_call=False)

    return agent(w, TWO, hooks=[w.hooks(BeforeToolCall=hook)])


def timed(w: World) -> Any:
    """Notes what kind of value the duration of a call is: that it ran, and that it was cancelled."""

    def after(event: Any) -> None:
        event.agent.state.set(f"took {event.tool_use['toolUseId']}", type(event.duration).__name__)

    def cancel(event: Any) -> None:
        if event.tool_use["input"]["x"] == 2:
            event.cancel_tool = "no"

    return agent(w, TWO, hooks=[w.hooks(BeforeToolCall=cancel, AfterToolCall=after)])


def valid(trace: Trace) -> list[Any]:
    """Faults of the conversation."""
    return list(history_faults(trace.messages))


def texts(trace: Trace) -> list[str]:
    """The text of each result."""
    return [text for _, text in messages_only(trace)[1]]


def one_by_one(build: Any) -> Any:
    def built(w: World) -> Any:
        made = build(w)
        made.tool_executor = w.sdk.SequentialToolExecutor()
        return made

    return built


ALL: list[Case] = [
    case("an unknown tool", lambda w: agent(w, says([use(1, name="nothing")]), hooks=[asks(w)]), [], outcome,
         (["end_turn"], {}, ["error"])),
    case("an input that does not fit", lambda w: agent(w, says([use("one")]), hooks=[asks(w)]), [], outcome,
         (["end_turn"], {}, ["error"])),
    case("an input that is no object",
         lambda w: agent(w, says([CUT_OFF]), hooks=[asks(w)]),
         [], outcome, (["end_turn"], {}, ["error"])),
    case("a message that was cut off in a call", cut_off, [], lambda t: (messages_only(t), valid(t)),
         ((["MaxTokensReachedException"], []), [])),
    case("a hook that raises while another question is open", fails_with_one_open, [["y", ...]],
         lambda t: (messages_only(t)[0], [status for status, _ in messages_only(t)[1]], valid(t)),
         (["interrupt", "ValueError", "AnswerRefused"], ["error", "error"], []), ("go", late)),
    case("a Confirm before a Deny", with_handlers("confirm", "deny"), [], outcome, (["end_turn"], {}, ["error"])),
    case("a Deny before a Confirm", with_handlers("deny", "confirm"), [], outcome, (["end_turn"], {}, ["error"])),
    case("a Confirm before a Guide", with_handlers("confirm", "guide"), [], outcome, (["end_turn"], {}, ["error"])),
    case("a Confirm on a call that a hook has cancelled", confirm_after_cancel, [], lambda t: (outcome(t), texts(t)),
         ((["end_turn"], {}, ["error"]), ["not now"])),
    case("a Guide without end", guides_for_ever, [], lambda t: (t.stops[0].split(":")[0], "10 times" in t.stops[0]),
         ("GuideLimitError", True)),
    case("a handler that returns None", with_handlers("none"), [], lambda t: (messages_only(t)[0], valid(t)),
         (["TypeError"], [])),
    case("a handler that returns something else", with_handlers("text"), [], lambda t: (messages_only(t)[0], valid(t)),
         (["TypeError"], [])),
    case("except Exception around a hook's interrupt", swallowing, [], outcome, (["interrupt"], {}, [])),
    case("a bare except around a hook's interrupt", swallowing_bare, [["n"]], outcome,
         (["interrupt", "end_turn"], {}, ["error"])),
    case("a bare except around a tool's interrupt", swallowing_tool, [["fine"]],
         lambda t: (t.stops, texts(t)), (["interrupt", "end_turn"], ["fine"])),
    *(case(f"a {where} that raises on resume", raising(where), [["y"]],
           lambda t: (messages_only(t)[0], [status for status, _ in messages_only(t)[1]], texts(t)[1], valid(t)),
           (["interrupt", "ValueError"], ["error", "success"], "2", []))
      for where in ("hook", "handler", "evaluate")),
    case("an After callback that raises", raising("after"), [["y"]],
         lambda t: (messages_only(t), valid(t)),
         ((["interrupt", "ValueError"], [("success", "1"), ("success", "2")]), [])),
    *(case(f"{event} cancels with {value!r}", cancelling(event, value), [],
           lambda t: (t.stops, ran(t), valid(t)), (["end_turn"], {}, []))
      for event in ("BeforeInvocation", "BeforeModelCall", "BeforeTools", "BeforeToolCall") for value in ("", True)),
    case("a denied invocation", denied, [], lambda t: (t.stops, ran(t), valid(t)),
         (["end_turn", "end_turn"], {"use-1 act(1)": 1}, []), ("go", "go")),
    case("cancelled between question and answer", cancelled_while_asked, [["y", "y"]],
         lambda t: (t.stops, ran(t), valid(t)), (["interrupt", "cancelled"], {}, [])),
    case("structured output survives the pause",
         lambda w: agent(w, [[use(1)], "well", calls(("Report", {"title": "t"}))], hooks=[asks(w, only=[1])],
                         structured_output_model=Report), [["y"]], lambda t: (t.stops, ran(t), t.outputs, valid(t)),
         (["interrupt", "tool_use"], {"use-1 act(1)": 1},
          [{"title": "t", "pages": 1, "due": None, "kind": "short"}], [])),
    case("how long a tool took", timed, [], lambda t: (t.state["took use-1"], t.state["took use-2"]),
         ("float", "NoneType")),
    case("a hook that calls a tool directly", calls_directly, [],
         lambda t: (messages_only(t)[0], "@step" in t.stops[0], ran(t), valid(t)),
         (["PolicyViolationError"], True, {}, [])),
    case("one after the other: the calls behind a question wait",
         one_by_one(lambda w: agent(w, says([use(1), use(2), use(3)]), hooks=[asks(w, only=[2])])), [["n"]],
         lambda t: (t.asked, ran(t)), ([[["ok?", None]]], {"use-1 act(1)": 1, "use-3 act(3)": 1})),
    case("one after the other: each question in its turn",
         one_by_one(lambda w: agent(w, TWO, hooks=[asks(w)])), [["n"], ["y"]],
         lambda t: ([len(item) for item in t.asked], ran(t)), ([1, 1], {"use-2 act(2)": 1})),
    case("one after the other: nothing runs behind an error",
         one_by_one(lambda w: agent(w, TWO, hooks=[w.hooks(AfterToolCall=lambda e: 1 / 0)])), [],
         lambda t: (messages_only(t)[0], [status for status, _ in messages_only(t)[1]], valid(t)),
         (["ZeroDivisionError"], ["success", "error"], [])),
]  # fmt: skip
