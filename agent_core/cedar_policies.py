"""Cedar policies, parsed once, and what they say of a request.

cedarpy is a native library that decides and touches nothing: no clock, no file, no socket. What it
says depends on its arguments alone, so it may be asked inside a cycle.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

from countersign.agent_core.errors import AgentDefinitionError
from countersign.agent_core.extras import how_to_install
from countersign.agent_core.json_values import JsonObject

if TYPE_CHECKING:
    import cedarpy

CONFIRM = "confirm"
"""The annotation that turns a policy's decision into a question to a person."""

_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|;', re.DOTALL)
_BLANK = re.compile(r"(?:\s|//[^\n]*)*")
_ESCAPES = frozenset({"__entity", "__extn", "__expr"})
_LONG = range(-(2**63), 2**63)
_DECIMAL_PLACES, _DECIMAL_LIMIT = 4, Decimal(2**63) / 10**4


@dataclass(frozen=True)
class Ruling:
    """What the policies say of one request.

    Attributes:
        decision: Whether it may happen, may not, or may if a person says so.
        reason: The policies that decided, or what went wrong.
    """

    decision: Literal["permit", "deny", "confirm"]
    reason: str


class Policies:
    """Policies with the entities and the schema that they are held against. See `parsed`."""

    def __init__(self, cedar: ModuleType, rules: dict[str, JsonObject], entities: str, schema: Any) -> None:
        self._cedar, self._schema = cedar, schema
        self._asks = {name: rule["annotations"][CONFIRM] for name, rule in rules.items() if _confirms(rule)}
        lifted = {name for name in self._asks if rules[name]["effect"] == "forbid"}
        self._all = self._set(rules)
        self._strict = self._set({name: rule for name, rule in rules.items() if name not in lifted})
        self._lifted = lifted
        self._actions = {name: list(_actions(rule["action"])) for name, rule in rules.items()}
        try:
            self._entities = cedar.Entities.from_json_str(entities, schema)
        except ValueError as error:
            raise AgentDefinitionError(
                f'entities: {error}; each is {{"uid": {{"type": ..., "id": ...}}, "attrs": {{}}, "parents": []}}'
            ) from error

    def check_actions(self, tools: Iterable[str]) -> None:
        """Refuse policies about tools that do not exist: a forbid among them would forbid nothing.

        Args:
            tools: Names of those that do; groups of actions that the entities define count too.

        Raises:
            AgentDefinitionError: Naming the policies.
        """
        groups = (item["uid"].get("__entity", item["uid"]) for item in json.loads(str(self._entities)))
        known = {("Action", tool) for tool in tools} | {(uid["type"], uid["id"]) for uid in groups}
        for name, actions in self._actions.items():
            for kind, action in set(actions) - known:
                raise AgentDefinitionError(f'policies: {name} is about {kind}::"{action}", which is none of the tools')

    def rule(self, request: JsonObject) -> Ruling:
        """Decide a request.

        Args:
            request: `principal`, `action` and `resource` as `{"type", "id"}`, and `context`.

        Returns:
            A ruling; "deny" if any policy that applies can't be evaluated.
        """
        allowed, why, errors = self._ask(request, self._all)
        if errors:
            # Cedar skips a policy that fails, a forbid too; whoever wrote it meant it to count.
            return Ruling("deny", f"Cedar could not evaluate the call: {'; '.join(errors)}")
        if not allowed and why and self._lifted.issuperset(why):
            allowed, permits, _ = self._ask(request, self._strict)
            why = [*why, *permits] if allowed else []
        if not allowed:
            named = f"Access denied by Cedar policy: {', '.join(why)}"
            return Ruling("deny", named if why else "Access denied: no Cedar policy permits it")
        asking = [f"{name}: {self._asks[name]}" if self._asks[name] else name for name in why if name in self._asks]
        return Ruling("confirm", "; ".join(asking)) if asking else Ruling("permit", ", ".join(why))

    def _ask(self, request: JsonObject, policies: "cedarpy.PolicySet") -> tuple[bool, list[str], list[str]]:
        """Whether a request is allowed, by which policies, and what failed; sorted, since Cedar has no order."""
        try:
            result = self._cedar.is_authorized(request, policies, self._entities, self._schema)
        except Exception as error:  # whatever it is: a request that can't be judged is denied
            return False, [], [str(error)]
        errors = sorted(map(str, result.diagnostics.errors))
        if result.decision == self._cedar.Decision.NoDecision:
            errors = errors or ["no decision"]
        return result.allowed, sorted(result.diagnostics.reasons), errors

    def _set(self, rules: dict[str, JsonObject]) -> "cedarpy.PolicySet":
        found: cedarpy.PolicySet = self._cedar.PolicySet.from_json_str(
            json.dumps({"staticPolicies": rules, "templates": {}, "templateLinks": []})
        )
        return found


@lru_cache(maxsize=64)
def parsed(policies: str, entities: str, schema: str | None) -> Policies:
    """Parse and check policies; once in a process, since an agent's factory runs for every cycle.

    Args:
        policies: Cedar text.
        entities: Their entities; a JSON list.
        schema: Cedar text, or JSON; None for no schema.

    Raises:
        AgentDefinitionError: If one of them can't be used, with the line; or cedarpy is missing.
    """
    cedar = _cedarpy()
    try:
        form = "from_json_str" if schema is not None and schema.lstrip().startswith("{") else "from_str"
        known = None if schema is None else getattr(cedar.Schema, form)(schema)
    except ValueError as error:
        raise AgentDefinitionError(f"schema: {error}") from error
    rules = _rules(cedar, policies)
    if known is not None:
        _check_against(cedar, policies, known)
    return Policies(cedar, rules, entities, known)


def _cedarpy() -> ModuleType:
    try:
        import cedarpy  # noqa: PLC0415 (an extra: only who uses it needs it)
    except ImportError as error:
        raise AgentDefinitionError(
            f"CedarAuthorization needs the package 'cedarpy'; {how_to_install('cedar')}"
        ) from error
    return cedarpy


def _rules(cedar: ModuleType, policies: str) -> dict[str, JsonObject]:
    """Each policy as JSON, by its `@id` or by its number and line."""
    statements = list(_statements(policies))
    try:
        document = json.loads(cedar.policies_to_json_str(policies))
    except ValueError as error:
        raise AgentDefinitionError(f"policies: {_fault(cedar, statements) or error}") from error
    if document["templates"]:
        raise AgentDefinitionError("policies: a template (?principal, ?resource) permits nothing; write it out")
    if not document["staticPolicies"]:
        raise AgentDefinitionError("policies: there is no policy in it, so every call would be denied")
    rules: dict[str, JsonObject] = {}
    for number, rule in document["staticPolicies"].items():
        line = dict(enumerate(line for line, _ in statements)).get(int(number.removeprefix("policy")))
        name = (rule.get("annotations") or {}).get("id") or f"{number} (line {line})"
        if name in rules:
            raise AgentDefinitionError(f'policies: two have the @id("{name}"); a decision would not tell which')
        rules[name] = rule
    return rules


def _statements(policies: str) -> Iterable[tuple[int, str]]:
    """The policies of a text, each with the line it begins in. A `;` in a text or a comment ends none."""
    begin = 0
    ends = [found.end() for found in _TOKEN.finditer(policies) if found[0] == ";"]
    for end in [*ends, len(policies)]:
        blank = _BLANK.match(policies, begin, end)
        first = blank.end() if blank else begin
        if first < end:
            yield policies.count("\n", 0, first) + 1, policies[first:end]
        begin = end


def _fault(cedar: ModuleType, statements: list[tuple[int, str]]) -> str | None:
    """What is wrong with the first policy that can't be parsed by itself."""
    for line, text in statements:
        try:
            cedar.policies_to_json_str(text)
        except ValueError as error:
            return f"the policy that begins in line {line} can't be parsed: {error}: {text.strip():.80}"
    return None


def _check_against(cedar: ModuleType, policies: str, schema: Any) -> None:
    """Raise AgentDefinitionError for policies that don't fit the schema, each with its line."""
    lines = {f"policy{number}": line for number, (line, _) in enumerate(_statements(policies))}
    faults = cedar.validate_policies(policies, schema).errors
    if faults:
        text = "; ".join(f"line {lines.get(fault.policy_id)}: {fault.error}" for fault in faults)
        raise AgentDefinitionError(f"policies don't fit the schema: {text}")


def _actions(scope: JsonObject) -> Iterable[tuple[str, str]]:
    """Types and ids of the actions that a policy's head names."""
    named = [*scope.get("entities", []), *([scope["entity"]] if "entity" in scope else [])]
    return ((uid["type"], uid["id"]) for uid in named)


def _confirms(rule: JsonObject) -> bool:
    return CONFIRM in (rule.get("annotations") or {})


def as_cedar(value: Any, path: str = "input") -> Any:
    """A JSON value in Cedar's JSON.

    Cedar has no null and no float: a null field is left out, a number is a `Long` or a `decimal`, and
    a number that neither can hold is its text, which no comparison of numbers takes.

    Raises:
        ValueError: If it would be read as an entity or a function call, or has null in a list.
    """
    if isinstance(value, dict):
        reserved = _ESCAPES & value.keys()
        if reserved:
            raise ValueError(f"{path} has the key {min(reserved)!r}, which Cedar would not read as data")
        return {key: as_cedar(item, f"{path}.{key}") for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [as_cedar(item, f"{path}[{index}]") for index, item in enumerate(value)]
    if value is None:
        raise ValueError(f"{path} is null, which Cedar does not have")
    if isinstance(value, float):
        exact = Decimal(repr(value))
        places = -int(exact.as_tuple().exponent)
        if places > _DECIMAL_PLACES or abs(exact) >= _DECIMAL_LIMIT:
            return repr(value)
        return {"__extn": {"fn": "decimal", "arg": f"{exact:.{max(places, 1)}f}"}}
    if isinstance(value, int) and not isinstance(value, bool) and value not in _LONG:
        return str(value)
    return value
