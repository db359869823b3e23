"""Scenarios: the handlers of the interventions document, as they stand there."""

import re
from collections.abc import Callable, Sequence
from typing import Any

from tests.differential.running import Scenario
from tests.differential.sdk import World

from countersign.models import calls


def tools(world: World) -> list[Any]:
    """The tools that the document speaks of."""

    @world.sdk.tool
    async def search(query: str) -> str:
        """Search."""
        return f"found {query}"

    @world.sdk.tool
    async def delete_file(path: str) -> str:
        """Delete a file."""
        return f"deleted {path}"

    @world.sdk.tool
    async def query_database(database: str) -> str:
        """Query."""
        return f"asked {database}"

    @world.sdk.tool
    async def send_email(body: str, subject: str = "") -> str:
        """Send."""
        return f"sent {subject!r}: {body}"

    return [search, delete_file, query_database, send_email]


USES = calls(
    ("search", {"query": "a"}),
    ("delete_file", {"path": "b"}),
    ("query_database", {"database": "prod-1"}),
    ("query_database", {"database": "test-1"}),
    ("send_email", {"body": "my number is 123-45-6789", "subject": ""}),
    ("send_email", {"body": "hello", "subject": "hi"}),
)


def example(name: str, handlers: Callable[[World], Sequence[Any]], replies: Any = (), **more: Any) -> Scenario:
    """An agent with these handlers that is asked to do everything at once."""

    def build(world: World) -> Any:
        return world.agent([USES, "done"], handlers=handlers(world), tools=tools(world))

    return Scenario(f"document: {name}", build, replies, **more)


def _tool_guard(world: World) -> list[Any]:
    class ToolGuard(world.sdk.InterventionHandler):  # type: ignore[misc, name-defined]  # either side's
        name = "tool-guard"

        def __init__(self, blocked_tools: list[str]) -> None:
            self.blocked_tools = blocked_tools

        def before_tool_call(self, event: Any) -> Any:
            if event.tool_use["name"] in self.blocked_tools:
                name = event.tool_use["name"]
                return world.sdk.Deny(reason=f"Tool '{name}' is not allowed")
            return world.sdk.Proceed()

    return [ToolGuard(blocked_tools=["delete_file"])]


def _environment_guard(world: World) -> list[Any]:
    def guard(event: Any) -> Any:
        if "prod" in event.tool_use.get("input", {}).get("database", ""):
            return world.sdk.Deny(reason="Production database access is not allowed")
        return world.sdk.Proceed()

    return [world.handler("environment-guard", before_tool_call=guard)]


def _email_validator(world: World) -> list[Any]:
    def validate(event: Any) -> Any:
        if event.tool_use["name"] == "send_email" and not event.tool_use.get("input", {}).get("subject"):
            return world.sdk.Guide(feedback="All emails must include a subject line.")
        return world.sdk.Proceed()

    return [world.handler("email-validator", before_tool_call=validate)]


def _delete_approval(world: World) -> list[Any]:
    def approve(event: Any) -> Any:
        if event.tool_use["name"] == "delete_file":
            return world.sdk.Confirm(prompt=f'Approve deleting "{event.tool_use["input"]["path"]}"?')
        return world.sdk.Proceed()

    return [world.handler("delete-approval", before_tool_call=approve)]


def _pii_redactor(world: World) -> list[Any]:
    def redact(event: Any) -> None:
        value = event.tool_use.get("input", {})
        value["body"] = re.sub(r"\b\d{3}-\d{2}-\d{4}\b", "[REDACTED]", value.get("body", ""))

    def handle(event: Any) -> Any:
        if event.tool_use["name"] == "send_email":
            return world.sdk.Transform(apply=redact)
        return world.sdk.Proceed()

    return [world.handler("pii-redactor", before_tool_call=handle)]


def _rate_limiter(world: World) -> list[Any]:
    class RateLimiter(world.sdk.InterventionHandler):  # type: ignore[misc, name-defined]  # either side's
        name = "rate-limiter"

        def __init__(self) -> None:
            self.call_count = 0

        def before_tool_call(self, event: Any) -> Any:
            self.call_count += 1
            if self.call_count > 4:
                return world.sdk.Deny(reason="Rate limit exceeded")
            return world.sdk.Proceed()

    return [RateLimiter(), *_email_validator(world)]


def _with_policy(policy: str) -> Callable[[World], list[Any]]:
    """A handler that fails, with its policy as a property."""

    def handlers(world: World) -> list[Any]:
        class Failing(world.sdk.InterventionHandler):  # type: ignore[misc, name-defined]  # either side's
            name = "failing"

            @property
            def on_error(self) -> str:
                return policy

            async def before_tool_call(self, event: Any) -> Any:
                if event.tool_use["name"] == "delete_file":
                    raise ConnectionError("service down")
                return world.sdk.Proceed()

        return [Failing()]

    return handlers


def _auto_approve(world: World) -> list[Any]:
    def approve(event: Any) -> Any:
        if event.tool_use["name"] == "search":
            return world.sdk.Confirm(prompt="Allow search?", response="yes")
        return world.sdk.Proceed()

    return [world.handler("auto-approve", before_tool_call=approve)]


def _several(world: World) -> list[Any]:
    return [*_tool_guard(world), *_environment_guard(world), *_email_validator(world), *_auto_approve(world)]


ALL = [
    example("tool guard", _tool_guard),
    example("environment guard", _environment_guard),
    example("email validator", _email_validator),
    example("delete approval, yes", _delete_approval, [["yes"]]),
    example("delete approval, no", _delete_approval, [["no"]]),
    example("redactor", _pii_redactor, known=("the-models-message-is-kept",)),
    example("rate limiter", _rate_limiter),
    example("best effort", _with_policy("proceed")),
    example("strict", _with_policy("deny")),
    example("critical", _with_policy("throw"), known=("finished-results-stay",)),
    example("auto approve", _auto_approve),
    example("all together", _several),
]
