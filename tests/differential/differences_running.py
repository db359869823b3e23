"""Deliberate differences in what runs, with what input, and what the conversation keeps of it."""

from typing import Any

from pydantic import BaseModel
from tests.differential.asking import gate, script
from tests.differential.difference import Difference, notes, results, texts
from tests.differential.handlers import pipeline
from tests.differential.hooks import ONE, hooked
from tests.differential.running import Scenario
from tests.differential.sdk import World

from countersign.models import calls


class Place(BaseModel):
    """A parameter of its own class."""

    street: str


def _in_place(world: World, event: Any) -> None:
    event.tool_use["input"]["x"] += 10
    event.interrupt("q")


def _shows_input(world: World, event: Any) -> None:
    world.note(event, f"sees {event.tool_use['input']}")


def _with_default(world: World) -> Any:
    @world.sdk.tool
    def act(x: int = 5) -> int:
        """Act."""
        return x

    hooks = [world.hooks(BeforeToolCall=lambda event: _shows_input(world, event))]
    return world.agent([calls(("act", {})), "done"], hooks=hooks, tools=[act])


def _with_an_object(world: World) -> Any:
    @world.sdk.tool
    def act(at: Place) -> str:
        """Act."""
        return f"{type(at).__name__} {at}"

    return world.agent([calls(("act", {"at": {"street": "Elm"}})), "done"], tools=[act])


def _late_first(world: World, event: Any) -> None:
    if event.tool_use["input"]["x"] == 1:
        gate(event)


def _goes_on(world: World, event: Any) -> None:
    if len(event.agent.messages) < 5:
        event.resume = "more"


def _counts_results(world: World, event: Any) -> None:
    world.note(event, f"{len(event.message['content'])} results")


def _second_waits(world: World) -> Any:
    hooks = world.hooks(BeforeToolCall=lambda e: _late_first(world, e), AfterTools=lambda e: _counts_results(world, e))
    return world.agent(script(2), hooks=[hooks])


def _guides(times: int) -> Any:
    def build(world: World) -> Any:
        def body(event: Any) -> Any:
            done = event.agent.state.get("guided") or 0
            event.agent.state.set("guided", done + 1)
            return world.sdk.Guide(feedback="again") if done < times else world.sdk.Proceed()

        return world.agent(["rough"] * 20, handlers=[world.handler("h", after_model_call=body)])

    return build


def _announced(world: World) -> Any:
    handler = world.handler("h", before_model_call=lambda event: world.sdk.Guide(feedback="be brief"))
    hooks = world.hooks(MessageAdded=lambda event: world.note(event, f"added {event.message['content']}"))
    return world.agent(["done"], handlers=[handler], hooks=[hooks])


def _result_seen(world: World, event: Any) -> None:
    world.note(event, f"ended with {event.result and event.result.stop_reason}")


def _foreign(world: World) -> Any:
    foreign = world.act(name="foreign")
    return world.agent(ONE, hooks=[world.hooks(BeforeToolCall=lambda event: setattr(event, "selected_tool", foreign))])


def _told(world: World) -> Any:
    def hook(event: Any) -> None:
        world.note(event, f"told {event.invocation_state.get('user')}")
        gate(event)

    return world.agent(ONE, hooks=[world.hooks(BeforeToolCall=hook)])


def _takes_calls_out(world: World, event: Any) -> None:
    if event.stop_response.stop_reason == "tool_use":
        event.stop_response.message["content"][:] = [{"text": "rather not"}]


def _twin_tools(world: World) -> Any:
    try:
        world.agent(ONE, tools=[world.act(), world.act()])
    except Exception as error:
        return world.agent([f"{type(error).__name__}: {error}"])
    return world.agent(["built"])


def _bad_list(world: World) -> Any:
    try:
        world.sdk.HumanInTheLoop(allowed_tools="act")
    except Exception as error:
        return world.agent([f"{type(error).__name__}: {error}"])


def _first_input(trace: Any) -> Any:
    return trace.messages[1]["content"][0]["toolUse"]["input"]


FOUND = (
    Difference(
        "the-models-message-is-kept", "an input changed in place rewrites the model's message, and again on resume",
        "hooks start from the model's message on every pass; what ran is in the audit", "Run what was signed",
        hooked("changed in place", ONE, {"BeforeToolCall": _in_place}, replies=[["y"]]),
        lambda trace: (_first_input(trace), results(trace)[0][1]), ({"x": 21}, "21"), ({"x": 1}, "11"),
    ),
    Difference(
        "hooks-see-the-validated-input", "hooks see the input as the model wrote it",
        "validated, typed, with defaults filled in", "Run what was signed",
        Scenario("a default", _with_default), lambda trace: notes(trace, "sees"), ["sees {}"], ["sees {'x': 5}"],
        ("log",),
    ),
    Difference(
        "a-body-gets-what-it-asks-for", "a parameter annotated with a pydantic class is a dict in the tool's body",
        "an object of that class", "the annotation is true",
        Scenario("an object", _with_an_object),
        lambda trace: results(trace)[0][1], "dict {'street': 'Elm'}", "Place street='Elm'",
    ),
    Difference(
        "words-about-a-bad-input", "pydantic's report with its links", "one line: which field and why",
        "the model reads it",
        hooked("wrong type", [calls(("act", {"x": "many"})), "done"], {}),
        lambda trace: "errors.pydantic.dev" in results(trace)[0][1], True, False, ("log", "messages", "seen"),
    ),
    Difference(
        "an-empty-text-cancels", '`cancel = ""` cancels nothing, `end_turn = ""` and `[]` end nothing',
        "they do, with the default words",
        "Presence, not truth",
        hooked("empty text", ONE, {"BeforeToolCall": lambda world, event: setattr(event, "cancel_tool", "")}),
        results, [("success", "1")], [("error", "tool cancelled by user")],
    ),
    Difference(
        "results-stand-in-call-order", "results stand in the order in which they were ready",
        "in the order of the calls", "History stays valid",
        Scenario("the first waits", _second_waits, [["y"]], raw=True),
        lambda trace: [text for _, text in results(trace)], ["2", "1"], ["1", "2"],
    ),
    Difference(
        "after-tools-sees-this-cycle", "on resume AfterToolsEvent carries the results of the cycle before too",
        "only what this cycle produced", "interrupts document",
        Scenario("the first waits, counted", _second_waits, [["y"]]), lambda trace: notes(trace, "1 r", "2 r"),
        ["1 results", "2 results"], ["1 results", "1 results"], ("log",),
    ),
    Difference(
        "denied-prompt-is-kept", "a denied invocation drops the prompt",
        "the prompt stays before the refusal", "History stays valid",
        pipeline(["deny"], "before_invocation"), texts, ["DENIED: a says no"], ["go", "DENIED: a says no"],
        ("messages",),
    ),
    Difference(
        "denied-invocation-has-a-result", "AfterInvocationEvent.result is None when an invocation was cancelled",
        "the result that the caller gets", "History stays valid",
        hooked("cancelled", ["done"], {"BeforeInvocation": lambda world, event: setattr(event, "cancel", True),
                                       "AfterInvocation": _result_seen}),
        lambda trace: notes(trace, "ended"), ["ended with None"], ["ended with end_turn"],
    ),
    Difference(
        "guidance-is-announced", "the feedback of a Guide is added without a MessageAddedEvent",
        "it is an ordinary added message", "History stays valid",
        Scenario("guided", _announced), lambda trace: len(notes(trace, "added")), 2, 3, ("log",),
    ),
    Difference(
        "guides-are-capped", "a Guide after each answer loops without end",
        "ten a turn, then `GuideLimitError`", "a turn ends",
        Scenario("guided twelve times", _guides(12)), lambda trace: trace.stops[0].split(":")[0],
        "end_turn", "GuideLimitError",
    ),
    Difference(
        "only-its-own-tools", "a hook may select a tool that the agent does not have",
        "such a call gets an error result", "Run what was signed",
        Scenario("a foreign tool", _foreign), lambda trace: results(trace)[0][0], "success", "error",
    ),
    Difference(
        "a-result-has-a-status", "a tool may return a result of any status",
        "success or error; any other dict is JSON text for the model", "it fits the shape that vendors take",
        Scenario("fine", lambda world: world.agent(ONE, tools=[world.act(lambda c, x: {
            "status": "fine", "content": [{"text": "a"}]})])), results, [("fine", "a")],
        [("success", '{"status": "fine", "content": [{"text": "a"}]}')], ("log", "messages", "seen"),
    ),
    Difference(
        "errors-of-definitions", "a handler or a hook that can't be used is a ValueError",
        "`AgentDefinitionError`, a ValueError where two names collide; it names the value", "errors name the value",
        Scenario("a name for a list", _bad_list), texts,
        ["go", "ValueError: allowed_tools must be a list of tool names, not a single string"],
        ["go", "AgentDefinitionError: allowed_tools must be a list of tool names, not 'act'"],
    ),
    Difference(
        "a-name-that-is-none", "a call whose name is none (`no such name!`) fires no hook and has an error of its own",
        "it is a call of an unknown tool like any other", "Ask only about what can run",
        Scenario("no name", lambda world: world.agent([calls(("no such name!", {})), "done"])),
        lambda trace: (results(trace)[0][1], len(notes(trace, "BeforeToolCall"))),
        ("Error: tool_name=<no such name!> | invalid tool name pattern", 0), ("Unknown tool: no such name!", 1),
        ("log", "messages", "seen"),
    ),
    Difference(
        "invocation-state-is-kept", "what a caller passes with the prompt is gone on resume, unless passed again",
        "the turn keeps it", "a turn may wait for days",
        Scenario("told, then asked", _told, [["y"]], call={"invocation_state": {"user": "ana"}}),
        lambda trace: notes(trace, "told"), ["told ana", "told None"], ["told ana", "told ana"],
    ),
    Difference(
        "a-prompt-has-content", "no prompt, an empty one, or a list of whole messages goes on with the conversation",
        "`AnswerRefused`: a prompt is text or content blocks; a conversation goes into `Agent(messages=...)`",
        "what is queued for a session says what it is for",
        Scenario("no prompt", lambda world: world.agent(
            ["fine"], messages=[{"role": "user", "content": [{"text": "hi"}]}]), prompts=(None,)),
        lambda trace: trace.stops[0], "end_turn", "AnswerRefused: the prompt is empty; send text or content blocks",
    ),
    Difference(
        "limits-in-our-words", "a wrong limit is a TypeError", "in other words, that name the limits there are",
        "errors name the value",
        Scenario("a typo", lambda world: world.agent(["fine"]), call={"limits": {"steps": 1}}),
        lambda trace: trace.stops[0],
        "TypeError: limits keys ['steps'] are not recognized caps, expected one of 'turns', 'output_tokens', "
        "'total_tokens'", "TypeError: there is no limit 'steps'; the limits are turns, total_tokens, output_tokens",
        ("stops",),
    ),
    Difference(
        "a-limit-ends-the-turn", "a hook that goes on by `event.resume` goes on after a limit too, for ever",
        "the turn is over", "a limit is the last word",
        hooked("goes on", ["a", "b"], {"AfterInvocation": _goes_on}, call={"limits": {"turns": 1}}),
        texts, ["go", "a", "more", "more", "more"], ["go", "a", "more"],
    ),
    Difference(
        "a-result-keeps-its-calls-id", "a hook that changes a toolUseId leaves a result that no call asked for",
        "the result has the id of its call", "History stays valid",
        hooked("another id", ONE, {"BeforeToolCall": lambda world, event: setattr(
            event, "tool_use", {**event.tool_use, "toolUseId": "other"})}),
        lambda trace: trace.messages[2]["content"][0]["toolResult"]["toolUseId"], "other", "call-0-0",
    ),
    Difference(
        "the-message-says-what-runs", "calls that a hook takes out of the model's answer leave a message of no results",
        "what the message asks for after the hooks runs, and nothing else; without calls the turn ends",
        "History stays valid",
        hooked("taken out", ONE, {"AfterModelCall": _takes_calls_out}),
        lambda trace: [len(message["content"]) for message in trace.messages], [1, 1, 0, 1], [1, 1],
    ),
    Difference(
        "two-tools-of-one-name", "of two tools of one name the last one counts",
        "`AgentDefinitionError`", "errors name the value",
        Scenario("two tools", _twin_tools), texts, ["go", "built"],
        ["go", "AgentDefinitionError: two tools are named 'act'; give one another name with @tool(name=...)"],
    ),
)  # fmt: skip
