"""`CedarAuthorization`: Cedar policies decide which tool calls may run, for whom, and with which input."""

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, get_args

from countersign.agent_core.cedar_policies import Policies, Ruling, as_cedar, parsed
from countersign.agent_core.effects import current_effects
from countersign.agent_core.errors import AgentDefinitionError
from countersign.agent_core.hooks.events import BeforeToolCallEvent
from countersign.agent_core.interventions.actions import Confirm, Deny, Proceed
from countersign.agent_core.interventions.handler import InterventionHandler, OnError
from countersign.agent_core.json_values import JsonObject

TypeAndId: TypeAlias = dict[str, str]
"""A Cedar entity: `{"type": "User", "id": "alice"}`."""

PrincipalResolver: TypeAlias = Callable[[JsonObject], TypeAndId | Awaitable[TypeAndId | None] | None]
"""From the invocation state to whoever acts; None denies. May be a step."""

ResourceResolver: TypeAlias = Callable[[JsonObject], TypeAndId | Awaitable[TypeAndId | None] | None]
"""From `{"tool_name", "tool_input", "invocation_state"}` to what is acted on; None denies. May be a step."""

ContextEnricher: TypeAlias = Callable[[JsonObject], JsonObject | Awaitable[JsonObject]]
"""From the same to further fields of `context.session`. May be a step."""

PRINCIPAL_KEY = "principal"
"""Key of the invocation state that holds the principal if nothing else says who acts."""

_RESOURCE = {"type": "Resource", "id": "agent"}


@dataclass(frozen=True)
class _Setup:
    """What the factory says. In one object, so that it is not taken for something that the handler remembers:
    a session that has waited is judged by the policies of today.
    """

    policies: Policies
    principal: PrincipalResolver
    resource: ResourceResolver
    enrich: ContextEnricher
    on_error: OnError


class CedarAuthorization(InterventionHandler):
    """Decide each tool call by Cedar policies, before it runs.

    The request: the principal; `Action::"<tool name>"`; the resource; and the context
    `{"input": <tool input>, "session": {"hour_utc": Long, "call_count": Long, ...}}`, where the count is
    that of the permitted calls of this tool in the session, this one included.

    A call runs if a policy permits it and none forbids it. `@confirm("why")` on a policy asks a person:
    on a forbid, instead of denying what something else permits; on a permit, before it counts. Whatever
    can't be decided is denied: no principal, a policy that fails, a value that Cedar can't hold.

    Args:
        policies: Cedar text. Load a file with `load_text`.
        tools: The agent's tools, or their names; then a policy about another tool is refused.
        entities: Cedar entities, for groups and attributes; a list or its JSON text.
        schema: Cedar schema, as text or JSON; then policies, entities and requests are held against it.
        principal: Who acts, if it is always the same.
        principal_resolver: Finds who acts; `invocation_state["principal"]` if neither is given.
        resource_resolver: Finds what is acted on; `Resource::"agent"` if None.
        context_enricher: Adds fields to `context.session`.
        on_error: What an error in a resolver or the enricher means.

    Raises:
        AgentDefinitionError: For an argument that can't be used, with the policy's line; or if
            cedarpy is missing.
    """

    name = "cedar-authorization"

    def __init__(
        self,
        *,
        policies: str,
        tools: Sequence[Any] | None = None,
        entities: Sequence[JsonObject] | str | None = None,
        schema: JsonObject | str | None = None,
        principal: TypeAndId | None = None,
        principal_resolver: PrincipalResolver | None = None,
        resource_resolver: ResourceResolver | None = None,
        context_enricher: ContextEnricher | None = None,
        on_error: OnError = "deny",
    ) -> None:
        if principal is not None and principal_resolver is not None:
            raise AgentDefinitionError("give either principal or principal_resolver, not both")
        if principal is not None and not is_entity(principal):
            raise AgentDefinitionError(f'principal must be {{"type": "User", "id": "alice"}}, not {principal!r}')
        if on_error not in get_args(OnError):
            raise AgentDefinitionError(f"on_error must be one of {get_args(OnError)}, not {on_error!r}")
        for what, text in (("policies", policies), ("entities", entities), ("schema", schema)):
            _refuse_path(what, text)
        known = parsed(
            policies,
            entities if isinstance(entities, str) else json.dumps(list(entities or [])),
            schema if schema is None or isinstance(schema, str) else json.dumps(schema),
        )
        if tools is not None:
            known.check_actions(_tool_name(item) for item in tools)
        self._setup = _Setup(
            policies=known,
            principal=principal_resolver or (lambda state: principal or state.get(PRINCIPAL_KEY)),
            resource=resource_resolver or (lambda call: _RESOURCE),
            enrich=context_enricher or (lambda call: {}),
            on_error=on_error,
        )
        self.permitted: dict[str, int] = {}

    @property
    def on_error(self) -> OnError:
        """See `InterventionHandler.on_error`."""
        return self._setup.on_error

    async def before_tool_call(self, event: BeforeToolCallEvent, **kwargs: Any) -> Proceed | Deny | Confirm:
        """Proceed, deny or ask, as the policies say."""
        principal = await _resolved(self._setup.principal(event.invocation_state))
        if not is_entity(principal):
            return Deny(reason="Access denied: nobody said who acts (no principal in the invocation state)")
        # A hook may have put another tool behind the call: both names must be permitted.
        tool = event.tool_use["name"]
        names = {tool, event.selected_tool.tool_name if event.selected_tool is not None else tool}
        rulings = [await self._rule(event, name, principal) for name in sorted(names)]
        for ruling in rulings:
            if ruling.decision == "deny":
                return Deny(reason=ruling.reason)
        for name in names:
            self.permitted[name] = self.permitted.get(name, 0) + 1
        asking = "; ".join(ruling.reason for ruling in rulings if ruling.decision == "confirm")
        if not asking:
            return Proceed(reason=", ".join(ruling.reason for ruling in rulings))
        shown = json.dumps(event.tool_use["input"], ensure_ascii=False)
        return Confirm(prompt=f'Tool "{tool}" requires human approval ({asking}). Input: {shown}')

    async def _rule(self, event: BeforeToolCallEvent, tool: str, principal: TypeAndId) -> Ruling:
        value = event.tool_use["input"]
        call = {"tool_name": tool, "tool_input": value, "invocation_state": event.invocation_state}
        resource = await _resolved(self._setup.resource(call))
        if not is_entity(resource):
            return Ruling("deny", f"Access denied: nothing says what the call of {tool!r} acts on")
        effects = current_effects.get()
        session = {
            **(await _resolved(self._setup.enrich(call))),
            **({} if effects is None else {"hour_utc": effects.now().hour}),
            "call_count": self.permitted.get(tool, 0) + 1,
        }
        try:
            context = {"input": as_cedar(value), "session": as_cedar(session, "session")}
        except ValueError as error:
            return Ruling("deny", f"Access denied: {error}")
        return self._setup.policies.rule(
            {
                "principal": {key: principal[key] for key in ("type", "id")},
                "action": {"type": "Action", "id": tool},
                "resource": {key: resource[key] for key in ("type", "id")},
                "context": context,
            }
        )


def is_entity(value: Any) -> bool:
    """True for `{"type": ..., "id": ...}` with text in both."""
    return isinstance(value, dict) and all(isinstance(value.get(key), str) and value[key] for key in ("type", "id"))


def _tool_name(item: Any) -> str:
    """The name of a tool, of a definition with "name", or the name itself."""
    name = item.get("name") if isinstance(item, dict) else getattr(item, "tool_name", item)
    if not isinstance(name, str):
        raise AgentDefinitionError(f"tools must be tools or their names, not {item!r}")
    return name


def _refuse_path(what: str, given: Any) -> None:
    """A handler reads no file: its factory runs in every cycle, where a changed file would change the replay."""
    if isinstance(given, str) and "\n" not in given and given.endswith((".cedar", ".json", ".cedarschema")):
        raise AgentDefinitionError(f"{what} takes the text, not a path: {what}=load_text({given!r})")
    if what == "policies" and not isinstance(given, str):
        raise AgentDefinitionError(f"policies must be Cedar text, not {given!r}")


async def _resolved(found: Any) -> Any:
    return await found if isinstance(found, Awaitable) else found
