"""Scenarios: direct calls, `agent.tool.act(x=1)`, made by the program itself."""

from collections.abc import Callable, Iterator
from typing import Any

from tests.differential.running import Does, Scenario
from tests.differential.sdk import World

from countersign.models import calls

ONE = [calls(("act", {"x": 7})), "done", "done", "done"]


def direct(**arguments: Any) -> Does:
    """A direct call of `act`."""
    return Does(lambda agent: _shown(agent.tool.act(**arguments)))


def _status(**arguments: Any) -> Does:
    return Does(lambda agent: agent.tool.act(**arguments)["status"])


def _shown(result: Any) -> str:
    return f"{result['status']} {result['content']}"


def _case(name: str, prompts: tuple[Any, ...] = (direct(x=1), "go"), known: tuple[str, ...] = (),
          build: Callable[[World], dict[str, Any]] = lambda world: {}, replies: Any = ()) -> Scenario:  # fmt: skip
    return Scenario(f"direct: {name}", lambda world: _agent(world, **build(world)), replies, prompts, known=known)


def _agent(world: World, hooks: Any = (), **options: Any) -> Any:
    """Without a look at batches: here a direct call is one, there it is not (listed in `differences_directing`)."""
    seen = world.observer("BeforeToolsEvent", "AfterToolsEvent")
    return world.agent(ONE, observed=False, hooks=[seen, *hooks], **options)


def calls_and_records() -> Iterator[Scenario]:
    """What a call returns and what the conversation gets of it."""
    yield _case("a call, then a prompt")
    yield _case("between two prompts", ("go", direct(x=1), direct(x=2), "go"))
    yield _case("not recorded", (direct(x=1, record_direct_tool_call=False), "go"))
    yield _case("with words before it", (direct(x=1, user_message_override="By hand."), "go"))
    yield _case("never recorded", build=lambda world: {"record_direct_tool_call": False})
    yield _case("recorded all the same", (direct(x=1, record_direct_tool_call=True), "go"),
                build=lambda world: {"record_direct_tool_call": False})  # fmt: skip
    yield _case("an argument too many", (direct(x=1, y="more"), "go"), ("hooks-see-the-validated-input",))
    yield _case("an argument that is text", (direct(x="1"), "go"), ("hooks-see-the-validated-input",))
    yield _case("a wrong argument", (_status(x="one"), "go"), ("words-about-a-bad-input",))
    yield _case("no argument", (_status(), "go"), ("words-about-a-bad-input",))
    yield _case("an unknown tool", (Does(lambda agent: agent.tool.nothing()), "go"))
    yield _case("hyphens in a name", (Does(lambda agent: _shown(agent.tool.my_act(x=1))), "go"),
                build=lambda world: {"tools": [world.act(name="my-act"), world.act()]})  # fmt: skip

    def fails(context: Any, x: int) -> Any:
        raise RuntimeError("broken")

    yield _case("a tool that fails", build=lambda world: {"tools": [world.act(fails)]})

    def reads(context: Any, x: int) -> Any:
        return context.invocation_state.get("user")

    yield _case("a tool that reads what came with the call", (direct(x=1, user="ana"), "go"),
                ("hooks-see-the-validated-input",), build=lambda world: {"tools": [world.act(reads)]})  # fmt: skip

    def writes(context: Any, x: int) -> str:
        context.agent.state.set("written", x)
        return "wrote"

    yield _case("a tool that writes to the state", build=lambda world: {"tools": [world.act(writes)]})

    def windowed(world: World) -> dict[str, Any]:
        return {"conversation_manager": world.sdk.SlidingWindowConversationManager(window_size=5)}

    yield _case("a conversation of a few messages", (direct(x=1), direct(x=2), "go", direct(x=3)), build=windowed)

    def adds(world: World) -> dict[str, Any]:
        return {"hooks": [world.hooks(MessageAdded=lambda e: world.note(e, f"added {e.message['role']}"))]}

    yield _case("messages are announced", build=adds)


def hooks_and_handlers() -> Iterator[Scenario]:
    """Those of the call fire; what they refuse does not run."""

    def hooked(event: str, hook: Callable[[Any], Any]) -> Callable[[World], dict[str, Any]]:
        return lambda world: {"hooks": [world.hooks(**{event: hook})]}

    def cancels(value: Any) -> Callable[[Any], None]:
        return lambda event: setattr(event, "cancel_tool", value)

    def once(event: Any) -> None:
        event.retry = not event.agent.state.get("retried")
        event.agent.state.set("retried", True)

    yield _case("a hook cancels", (direct(x=1), "go"), build=hooked("BeforeToolCall", cancels("not now")))
    yield _case("a hook cancels by True", (direct(x=1), "go"), build=hooked("BeforeToolCall", cancels(True)))
    yield _case("a hook replaces the result",
                build=hooked("AfterToolCall", lambda e: e.result.update(content=[{"text": "other"}])))  # fmt: skip
    yield _case("a hook wants another try", build=hooked("AfterToolCall", once))
    yield _case("a hook fails before", (direct(x=1), "go"), ("error-in-before_tool_call",),
                build=hooked("BeforeToolCall", lambda e: 1 / 0))  # fmt: skip
    for kind in ("Proceed", "Deny", "Guide", "Transform", "Confirm"):
        known = ("the-models-message-is-kept",) if kind == "Transform" else ()
        yield _case(f"a handler returns {kind}", (direct(x=1), "go"), known, _handled(kind))


def _handled(kind: str) -> Callable[[World], dict[str, Any]]:
    return lambda world: {"handlers": [world.handler("h", before_tool_call=_action(world, kind))]}


def _action(world: World, kind: str) -> Callable[[Any], Any]:
    made = {
        "Proceed": world.sdk.Proceed,
        "Deny": lambda: world.sdk.Deny(reason="no"),
        "Guide": lambda: world.sdk.Guide(feedback="otherwise"),
        "Transform": lambda: world.sdk.Transform(apply=lambda event: event.tool_use["input"].update(x=9)),
        "Confirm": lambda: world.sdk.Confirm(prompt="ok?", response="y"),
        "Ask": lambda: world.sdk.Confirm(prompt="ok?"),
    }
    return lambda event: made[kind]()


def _at_the_terminal(answer: str) -> Callable[[World], dict[str, Any]]:
    return lambda world: {"handlers": [world.sdk.HumanInTheLoop(ask=lambda prompt: answer)]}


def questions() -> Iterator[Scenario]:
    """There is nobody to ask, and while somebody is asked nothing is called."""

    def asks(event: Any) -> None:
        if event.tool_use["input"]["x"] == 1 and event.interrupt("ok?") != "y":
            event.cancel_tool = "denied"

    def asks_always(event: Any) -> None:
        event.interrupt("ok?")

    def body(context: Any, x: int) -> Any:
        return context.interrupt("ok?") if x == 1 else x

    yield _case("a hook asks", build=lambda world: {"hooks": [world.hooks(BeforeToolCall=asks)]})
    yield _case("a tool asks", build=lambda world: {"tools": [world.act(body)]})
    yield _case("a Confirm without an answer", (direct(x=1),), build=_handled("Ask"))
    for answer in ("y", "n"):
        yield _case(f"a person at the terminal says {answer}", (direct(x=1),), build=_at_the_terminal(answer))
    yield _case("while a question is open", ("go", direct(x=1)),
                build=lambda world: {"hooks": [world.hooks(BeforeToolCall=asks_always)]})  # fmt: skip


ALL = [*calls_and_records(), *hooks_and_handlers(), *questions()]
