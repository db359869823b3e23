"""From a function's signature and docstring to a JSON schema and a validator.

Built lazily and once per function, because building a pydantic model takes a millisecond that
importing an agent module should not.
"""

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.fields import FieldInfo
from typing_extensions import TypedDict

from countersign.agent_core.errors import AgentDefinitionError, ToolInputError
from countersign.agent_core.json_values import JsonObject, canonical_json, check_json
from countersign.agent_core.tools.fidelity import alike, in_order, is_hidden, made, made_defaults, secret_field
from countersign.agent_core.tools.parameters import refuse_nameless


class ToolSpec(TypedDict):
    """What the model is told about a tool."""

    name: str
    description: str
    inputSchema: dict[str, JsonObject]


@dataclass(frozen=True)
class CompiledTool:
    """A tool's spec and validator.

    Attributes:
        spec: What the model is told.
        model: The pydantic model of its input; a field per parameter.
    """

    spec: ToolSpec
    model: type[BaseModel]

    def canonical_input(self, raw: Any) -> JsonObject:
        """The input as it will run: validated, defaults filled in, as plain JSON.

        Raises:
            ToolInputError: If the input does not fit, naming each misfit.
        """
        value = self._validate(raw)
        canonical = self._dumped(value)
        if not alike(value, self.validated(canonical)):
            raise ToolInputError(
                f"the input of {self.spec['name']} can't be signed: {canonical_json(canonical):.500} is not what would "
                "run. Make its serializers write the very value, and take no type that hides it"
            )
        return canonical

    def arguments(self, canonical: JsonObject) -> dict[str, Any]:
        """Keyword arguments for the function, as the annotated types.

        Raises:
            ToolInputError: If the input does not fit, or would run as another one than it shows.
        """
        value = self.validated(canonical)
        return {name: getattr(value, name) for name in type(value).model_fields}

    def validated(self, canonical: JsonObject) -> BaseModel:
        """The values that run for a canonical input, which must show every one of them.

        Raises:
            ToolInputError: If it does not fit, or reads as another input than it shows: a validator or
                an alias that turns its own output into something else.
        """
        again = self._dumped(self._validate(canonical))
        if canonical_json(plain_numbers(again)) != canonical_json(plain_numbers(canonical)):
            raise ToolInputError(
                f"the input of {self.spec['name']} can't be signed: validated again it would be "
                f"{canonical_json(again):.500} instead of {canonical_json(canonical):.500}. "
                "Make its validators give back what they are given if that is valid"
            )
        return self._validate(canonical)  # once more: writing the values down may have used up an iterator

    def _dumped(self, value: BaseModel) -> JsonObject:
        try:
            dumped: JsonObject = in_order(value, value.model_dump(mode="json", by_alias=True))
            check_json(dumped, "input")
        except Exception as error:
            raise ToolInputError(f"the input of {self.spec['name']} can't be written as JSON: {error}") from error
        return dumped

    def _validate(self, raw: Any) -> BaseModel:
        name = self.spec["name"]
        if not isinstance(raw, dict):
            raise ToolInputError(f"the input of {name} must be an object, not {type(raw).__name__}: {raw!r:.200}")
        try:
            check_json(raw, "input")
            return self.model.model_validate(raw)
        except TypeError as error:
            raise ToolInputError(f"the input of {name} is not JSON: {error}") from error
        except ValidationError as error:
            faults = "; ".join(
                f"{'.'.join(str(part) for part in fault['loc']) or 'input'}: {fault['msg']}" for fault in error.errors()
            )
            raise ToolInputError(f"the input of {name} does not fit its schema: {faults}") from error


def compile_tool(
    function: Callable[..., Any],
    *,
    name: str,
    description: str | None,
    input_schema: JsonObject | None,
    skip: frozenset[str],
) -> CompiledTool:
    """Build a tool's spec and validator from its function.

    Args:
        function: The undecorated function.
        name: The tool's name.
        description: What the model reads; the docstring without its Args section if None.
        input_schema: A JSON schema to show instead of the derived one; validation stays the same.
        skip: Parameters that the framework fills in.

    Raises:
        AgentDefinitionError: If the signature can't be turned into a schema.
    """
    text = inspect.getdoc(function) or ""
    fields = _fields(function, name, _argument_docs(text), skip)
    try:
        model = create_model(
            f"{name}_input", __config__=ConfigDict(arbitrary_types_allowed=False, validate_default=True), **fields
        )
        factories = list(made_defaults(model.__pydantic_core_schema__))
        before = made(factories)
        schema = model.model_json_schema()  # takes long enough for a clock to go on
    except Exception as error:
        raise AgentDefinitionError(
            f"tool {name}: no JSON schema can be made of its parameters: {error}. Annotate them with JSON types, "
            "pydantic models or dataclasses"
        ) from error
    _check_shown(name, model, schema)
    for path, value in made(factories).items():
        if path in before and not alike(before[path], value):
            raise AgentDefinitionError(
                f"tool {name}: the default of {path.removeprefix(f'{model.__name__}.')} is another one each time it is "
                "made, so no approval could hold; give it a fixed default, for instance None, and fill it in inside "
                "the tool's body"
            )
    schema.pop("title", None)
    for part in schema.get("properties", {}).values():
        part.pop("title", None)
    spec: ToolSpec = {
        "name": name,
        "description": description or _without_arguments(text) or name,
        "inputSchema": {"json": input_schema or schema},
    }
    return CompiledTool(spec, model)


def plain_numbers(value: Any) -> Any:
    """A value in which 30.0 is 30, for channels that make one of the other."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: plain_numbers(part) for name, part in value.items()}
    return [plain_numbers(part) for part in value] if isinstance(value, list) else value


def _check_shown(name: str, model: type[BaseModel], schema: JsonObject) -> None:
    """Refuse a tool whose input holds what nobody would be shown."""
    if is_hidden(model.__pydantic_core_schema__):
        raise AgentDefinitionError(
            f"tool {name}: a field of its input has exclude=True, so a value would run that nobody is shown; "
            "take that out"
        )
    secret = secret_field(schema)
    if secret is not None:
        raise AgentDefinitionError(
            f"tool {name}: {secret} is a secret (SecretStr, SecretBytes or writeOnly), which is written as stars, so "
            "the stars would run; take a plain type if people and the history may see it, or the secret's name, and "
            "look it up inside the tool's body"
        )


def _fields(function: Callable[..., Any], name: str, docs: dict[str, str], skip: frozenset[str]) -> dict[str, Any]:
    try:
        hints = get_type_hints(function, include_extras=True)
    except Exception as error:
        raise AgentDefinitionError(f"tool {name}: its annotations can't be resolved: {error}") from error
    fields: dict[str, Any] = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in skip:
            continue
        refuse_nameless(parameter, name, parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY)
        annotation = hints.get(parameter.name, Any)
        description = docs.get(parameter.name)
        if get_origin(annotation) is Annotated:
            described = [part for part in get_args(annotation)[1:] if isinstance(part, str)]
            description = described[0] if described else description
        default: Any = ... if parameter.default is parameter.empty else parameter.default
        if default is None:
            annotation = annotation | None  # `x: str = None` means that, and what was filled in must be valid again
        if isinstance(default, FieldInfo):
            fields[parameter.name] = (annotation, default)
        else:
            fields[parameter.name] = (
                annotation,
                Field(default, description=description or f"Parameter {parameter.name}"),
            )
    return fields


_SECTION = re.compile(r"^(Args|Arguments|Parameters|Returns|Yields|Raises|Examples?|Notes?):\s*$", re.IGNORECASE)
_ARGUMENT = re.compile(r"^(?P<indent>\s+)\*{0,2}(?P<name>\w+)\s*(?:\([^)]*\))?:\s*(?P<text>.*)$")


def _argument_docs(text: str) -> dict[str, str]:
    """Descriptions of the parameters from a Google-style Args section."""
    docs: dict[str, str] = {}
    inside, indent, current = False, "", ""
    for line in text.splitlines():
        section = _SECTION.match(line.strip()) if not line.startswith((" ", "\t")) else None
        if section:
            inside = section.group(1).lower() in ("args", "arguments", "parameters")
            continue
        if not inside or not line.strip():
            continue
        entry = _ARGUMENT.match(line)
        if entry and (not indent or entry["indent"] == indent):
            indent, current = entry["indent"], entry["name"]
            docs[current] = entry["text"].strip()
        elif current:
            docs[current] = f"{docs[current]} {line.strip()}".strip()
    return docs


def _without_arguments(text: str) -> str:
    """A docstring without its Args section: those descriptions stand in the schema."""
    kept: list[str] = []
    inside = False
    for line in text.splitlines():
        section = _SECTION.match(line.strip()) if not line.startswith((" ", "\t")) else None
        if section:
            inside = section.group(1).lower() in ("args", "arguments", "parameters")
        if not inside:
            kept.append(line)
    return "\n".join(kept).strip()
