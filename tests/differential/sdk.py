"""The public names that both sides share, and what a scenario gets to build its agent with.

Nothing here or in the scenarios imports `strands`: the same modules are served by a worker.
"""

import copy
import importlib
import inspect
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

EVENTS = (
    "BeforeInvocationEvent", "BeforeModelCallEvent", "AfterModelCallEvent", "BeforeToolsEvent",
    "BeforeToolCallEvent", "AfterToolCallEvent", "AfterToolsEvent", "AfterInvocationEvent",
)  # fmt: skip

TRACE_KEY = "trace"
"""Where notes stand in `agent.state` if they can't stand in a list of this process."""


def names_of(root: str) -> SimpleNamespace:
    """The names that scenarios use, from the package `root`: "strands" or "countersign"."""
    found = SimpleNamespace(root=root)
    homes = {
        "": ("Agent", "tool"),
        "types.tools": ("ToolContext",),
        "agent.conversation_manager": ("SlidingWindowConversationManager",),
        "tools.executors": ("SequentialToolExecutor",),
        "hooks": (*EVENTS, "MessageAddedEvent", "HookProvider", "HookRegistry"),
        "interventions": ("InterventionHandler", "Proceed", "Deny", "Guide", "Confirm", "Transform"),
        "vended_interventions.hitl": ("HumanInTheLoop",),
        "vended_interventions.hitl.classifier": ("ClassifierResult",),
    }
    for home, names in homes.items():
        module = importlib.import_module(f"{root}.{home}".rstrip("."))
        for name in names:
            setattr(found, name, getattr(module, name))
    return found


class World:
    """What a scenario builds its agent with.

    Args:
        root: Whose names it uses.
        model: Makes a model from a script.
        log: Where notes go; None for `agent.state` (durably a list would be lost with each cycle).
        **options: More arguments of this side's `Agent`.

    Attributes:
        sdk: The names.
        log: What hooks, handlers and tools did: (tool use id or "", text).
    """

    def __init__(
        self, root: str, model: Callable[[Any], Any], log: list[tuple[str, str]] | None, **options: Any
    ) -> None:
        self.sdk = names_of(root)
        self.log = log
        self._model, self._options = model, options

    def note(self, event: Any, text: str) -> None:
        """Write down what happens at an event."""
        entry = (getattr(event, "tool_use", {}).get("toolUseId", ""), text)
        if self.log is not None:
            self.log.append(entry)
        else:
            event.agent.state.set(TRACE_KEY, [*(event.agent.state.get(TRACE_KEY) or []), list(entry)])

    def act(self, body: Callable[[Any, int], Any] | None = None, name: str = "act") -> Any:
        """The async tool `act`: writes down that it runs, and returns `x` or what `body` returns."""
        context_type: Any = self.sdk.ToolContext

        @self.sdk.tool(context=True, name=name)
        async def act(tool_context: context_type, x: int) -> Any:
            """Act.

            Args:
                x: What with.
            """
            if self.log is not None:
                self.log.append((tool_context.tool_use["toolUseId"], f"{name}({x})"))
            found = x if body is None else body(tool_context, x)
            return await found if inspect.isawaitable(found) else found

        return act

    def hooks(self, order: float = 0, **callbacks: Callable[..., Any]) -> Any:
        """A provider with one callback for each event, given by its name without "Event"."""
        sdk = self.sdk

        class Hooks(sdk.HookProvider):  # type: ignore[misc, name-defined]  # either side's
            def register_hooks(self, registry: Any, **kwargs: Any) -> None:
                for name, callback in callbacks.items():
                    registry.add_callback(getattr(sdk, f"{name}Event"), callback, order=order)

        return Hooks()

    def handler(self, name: str, on_error: str = "throw", **methods: Callable[..., Any]) -> Any:
        """A handler with these lifecycle methods; each gets the event."""
        members: dict[str, Any] = {"name": name, "on_error": on_error}
        for method, function in methods.items():
            members[method] = lambda handler, event, function=function, **kwargs: function(event)
        return type(f"Handler_{name}", (self.sdk.InterventionHandler,), members)()

    def observer(self, *without: str) -> Any:
        """Notes every event of the loop but these."""
        return self.hooks(
            **{
                name.removesuffix("Event"): lambda event, name=name: self.note(event, _seen_at(name, event))
                for name in EVENTS
                if name not in without
            }
        )

    def agent(
        self,
        script: Any,
        *,
        hooks: Sequence[Any] = (),
        handlers: Sequence[Any] = (),
        tools: Sequence[Any] | None = None,
        observed: bool = True,
        **options: Any,
    ) -> Any:
        """An agent with a scripted model."""
        return self.sdk.Agent(
            model=self._model(script),
            tools=[self.act()] if tools is None else list(tools),
            hooks=[*([self.observer()] if observed else []), *hooks],
            interventions=list(handlers),
            callback_handler=None,
            **self._options,
            **options,
        )


def _seen_at(name: str, event: Any) -> str:
    short = name.removesuffix("Event")
    if name == "BeforeToolCallEvent":
        return f"{short} {event.tool_use['name']} {event.tool_use['input']}"
    if name == "AfterToolCallEvent":
        return f"{short} {event.result['status']} {event.result['content']} cancel={event.cancel_message!r}"
    if name == "AfterModelCallEvent":
        answered = event.stop_response and (event.stop_response.stop_reason, event.stop_response.message["content"])
        return f"{short} {answered} {type(event.exception).__name__}"
    return short


def plain(messages: Sequence[Any]) -> list[Any]:
    """Messages without what only one side keeps beside them (usage, tracking ids)."""
    return copy.deepcopy([{"role": message["role"], "content": message["content"]} for message in messages])
