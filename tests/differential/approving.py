"""Scenarios: `HumanInTheLoop` with all its arguments, and what a Confirm may carry."""

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

from tests.differential.running import Scenario
from tests.differential.sdk import World

from countersign.models import calls

ANSWERS = ("y", "YES", True, "n", "no", False, "t", "TRUST", "", 1, ["y"])
ALLOWED = (None, [], ["act"], ["other"], ["*"], ["*", "!act"], ["act", "!act"], ["!act"], ["*", "!other"])
TURN = [calls(("act", {"x": 1}), ("other", {"x": 2})), "done"]


def hitl(name: str, arguments: dict[str, Any] | Callable[[World], dict[str, Any]], replies: Any = (), turns: int = 1,
         known: tuple[str, ...] = ()) -> Scenario:  # fmt: skip
    """An agent with two tools behind a `HumanInTheLoop` with these arguments."""

    def build(world: World) -> Any:
        handler = world.sdk.HumanInTheLoop(**(arguments(world) if callable(arguments) else arguments))
        return world.agent(TURN * turns, handlers=[handler], tools=[world.act(), world.act(name="other")])

    return Scenario(f"hitl {name}", build, replies, ("go",) * turns, known=known)


def allowed() -> Iterator[Scenario]:
    """Names, "*" and "!name"."""
    for names, answer in product(ALLOWED, "yn"):
        yield hitl(f"allows {names}, hears {answer}", {"allowed_tools": names}, [[answer] * 2])


def trusted() -> Iterator[Scenario]:
    """Trust, enabled or not, over two turns."""
    for answer, enabled in product(ANSWERS, (True, False)):
        yield hitl(f"trust {enabled}, hears {answer!r}", {"enable_trust": enabled},
                   [["n", answer], ["n", "n"]], 2)  # fmt: skip
    for answer in ("t", "y", "n", "always"):
        yield hitl(f"negated tools are not trusted, hears {answer}",
                   {"enable_trust": True, "allowed_tools": ["!other"]}, [["n", answer], ["n", "n"]], 2,
                   )  # fmt: skip
        yield hitl(f"own words of trust, hears {answer}",
                   {"enable_trust": True, "evaluate_trust": lambda said: said == "always"},
                   [["n", answer], ["n", "n"]], 2)  # fmt: skip


def judged() -> Iterator[Scenario]:
    """An `evaluate` of one's own, an `ask` inline, and a classifier."""
    for answer in ("y", "confirm", "CONFIRM", "n", 7):
        yield hitl(f"evaluate of one's own, hears {answer!r}",
                   {"evaluate": lambda said: isinstance(said, str) and said.lower() == "confirm"},
                   [[answer] * 2])  # fmt: skip
    for answer, enabled in product(("y", "n", True, False, "t", ""), (True, False)):
        yield hitl(f"asks inline, trust {enabled}, hears {answer!r}",
                   {"ask": _says(answer), "enable_trust": enabled}, turns=2)  # fmt: skip

        async def ask(prompt: str, answer: Any = answer) -> Any:
            return answer

        yield hitl(f"asks inline and async, trust {enabled}, hears {answer!r}",
                   {"ask": ask, "enable_trust": enabled}, turns=2)  # fmt: skip
    for reason, answer in product((None, "it is risky"), "yn"):
        yield hitl(f"classifier with reason {reason}, hears {answer}", _risky(reason), [[answer]],
            known=("a-classifier-is-heard-once",) if reason and answer == "n" else (),
        )  # fmt: skip


def confirms() -> Iterator[Scenario]:
    """A Confirm with a known answer, with a judge of its own, and with one that fails."""
    for answer in ("y", "Yes", True, "n", "", False, 0, [], {}):
        yield confirm(f"knows the answer {answer!r}", {"response": answer})
    for answer, verdict in product(("y", "n", 5), (True, False)):
        yield confirm(f"judges {answer!r} as {verdict}", {"evaluate": _says(verdict)}, [[answer]],
                      known=("a-no-is-a-no",) if answer == "n" and verdict else ())  # fmt: skip
    for policy, known in (("throw", ("error-in-before_tool_call",)), ("proceed", ()), ("deny", ())):
        yield confirm(f"whose judge fails, on_error={policy}",
                      {"evaluate": _broken}, [["y"]], policy, known)  # fmt: skip


def confirm(name: str, arguments: dict[str, Any], replies: Any = (), policy: str = "throw",
            known: tuple[str, ...] = ()) -> Scenario:  # fmt: skip
    """One call, and one handler that returns this Confirm."""

    def build(world: World) -> Any:
        handler = world.handler("h", policy, before_tool_call=lambda event: world.sdk.Confirm(prompt="?", **arguments))
        return world.agent([calls(("act", {"x": 1})), "done"], handlers=[handler])

    return Scenario(f"confirm {name}", build, replies, known=known)


def _says(answer: Any) -> Callable[[Any], Any]:
    return lambda given: answer


def _risky(reason: str | None) -> Callable[[World], dict[str, Any]]:
    """A classifier that finds `act` risky."""

    def arguments(world: World) -> dict[str, Any]:
        def classify(event: Any) -> Any:
            risky = event.tool_use["name"] == "act"
            return world.sdk.ClassifierResult(requires_human_in_the_loop=risky, reason=reason)

        return {"classifier": classify}

    return arguments


def _broken(said: Any) -> bool:
    raise ValueError("can't judge")


ALL = [*allowed(), *trusted(), *judged(), *confirms()]
