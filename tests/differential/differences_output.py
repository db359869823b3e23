"""Deliberate differences about structured output, and about calls that do not run."""

from typing import Any

from tests.differential.asking import gate
from tests.differential.difference import Difference, notes
from tests.differential.hooks import hooked
from tests.differential.running import Scenario
from tests.differential.sdk import World
from tests.differential.structured import ACT, FULL, GOOD, Report

from countersign.models import calls

_SHORT = ["Report", {"title": "t", "pages": 1, "due": None, "kind": "short"}]
_LONG = ["Report", {"title": "t", "pages": 2, "due": "2030-01-02", "kind": "long"}]


def _asks_about_act(event: Any) -> None:
    if event.tool_use["name"] == "act":
        gate(event)


def _asking(script: Any, **options: Any) -> Any:
    return lambda world: world.agent(script, hooks=[world.hooks(BeforeToolCall=_asks_about_act)], **options)


def _retried(world: World, event: Any) -> None:
    event.retry = not event.agent.state.get("retried")
    event.agent.state.set("retried", True)


FOUND = (
    Difference(
        "structured-output-is-still-wanted",
        "`structured_output_model` of a call is gone on resume, unless passed again",
        "the turn keeps it", "a turn may wait for days",
        Scenario("output of a call, asked in between", _asking([calls(ACT), "done", calls(GOOD)]), [["y"]],
                 call={"structured_output_model": Report}),
        lambda trace: (trace.stops[-1], trace.outputs), ("end_turn", []), ("tool_use", [_SHORT]),
    ),
    Difference(
        "structured-output-beside-a-question", "what the model handed over beside a call that waits comes with the "
        "interrupt, and is forgotten on resume: the model has to do it again",
        "it ends the turn once the call has its result", "a pause changes nothing",
        Scenario("output, and asked beside it",
                 _asking([calls(ACT, GOOD), "well", calls(FULL)], structured_output_model=Report), [["y"]]),
        lambda trace: trace.outputs, [_SHORT, _LONG], [_SHORT],
    ),
    Difference(
        "only-what-ran-is-retried", "`AfterToolCallEvent.retry` runs a call again whose input did not fit",
        "a call that has not run is not run again; the model is told what is wrong", "the same input fits no better",
        hooked("bad, retried", [calls(("act", {"x": "many"})), "done"], {"AfterToolCall": _retried}),
        lambda trace: len(notes(trace, "AfterToolCall")), 2, 1, ("log", "messages", "seen"),
    ),
)  # fmt: skip
