"""Inputs of a tool of which only a JSON schema is known: validated, defaults filled in at every depth."""

import copy
from typing import Any

from countersign.agent_core.errors import AgentDefinitionError, ToolInputError
from countersign.agent_core.json_values import JsonObject, check_json
from countersign.agent_core.tools.schema import ToolSpec

_DEEPEST = 50
"""Schemas may refer to themselves."""


class SchemaInputs:
    """See the module.

    Args:
        tool: The tool's name.
        description: What the model is told of it.
        schema: A JSON schema of an object.

    Attributes:
        spec: What the model is told.

    Raises:
        AgentDefinitionError: If it is not a valid schema.
    """

    def __init__(self, tool: str, description: str, schema: JsonObject) -> None:
        import jsonschema  # noqa: PLC0415 (comes with Strands, and is not there without)

        self.spec: ToolSpec = {"name": tool, "description": description, "inputSchema": {"json": schema}}
        self._tool, self._schema = tool, schema
        kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
        try:
            kind.check_schema(schema)
        except jsonschema.SchemaError as error:
            raise AgentDefinitionError(f"tool {tool}: its schema is not valid: {error.message}") from error
        self._validator: Any = kind(schema)
        try:
            self._validator.is_valid({})
        except Exception as error:  # a reference that leads nowhere, or round in a circle
            raise AgentDefinitionError(f"tool {tool}: its schema can't be used: {error}") from error

    def canonical_input(self, raw: Any) -> JsonObject:
        """The input with defaults filled in; no value is turned into another type.

        Raises:
            ToolInputError: If it does not fit, naming each misfit.
        """
        if not isinstance(raw, dict):
            raise ToolInputError(f"the input of {self._tool} must be an object, not {type(raw).__name__}: {raw!r:.200}")
        try:
            check_json(raw, "input")
        except TypeError as error:
            raise ToolInputError(f"the input of {self._tool} is not JSON: {error}") from error
        filled: JsonObject = self._filled(copy.deepcopy(raw), self._schema, 0)
        faults = "; ".join(f"{fault.json_path}: {fault.message}" for fault in self._validator.iter_errors(filled))
        if faults:
            raise ToolInputError(f"the input of {self._tool} does not fit its schema: {faults}")
        unknown = sorted(set(filled) - set(self._schema.get("properties", {})))
        if unknown and "additionalProperties" not in self._schema and "patternProperties" not in self._schema:
            raise ToolInputError(f"the input of {self._tool} has no parameter {', '.join(unknown)}")
        return filled

    def _filled(self, value: Any, schema: Any, depth: int) -> Any:
        """A value with its schema's defaults, in place."""
        schema = self._resolved(schema)
        if not isinstance(schema, dict) or depth > _DEEPEST:
            return value
        for part in schema.get("allOf", []):
            self._filled(value, part, depth + 1)
        for kind in ("anyOf", "oneOf"):
            fitting = [part for part in schema.get(kind, []) if self._fits(value, part)]
            if fitting:
                self._filled(value, fitting[0], depth + 1)
        if isinstance(value, dict):
            for name, part in schema.get("properties", {}).items():
                shape = self._resolved(part)
                default = shape.get("default") if isinstance(shape, dict) else None
                if value.get(name) is None and default is not None:
                    value[name] = copy.deepcopy(default)
                elif name in value and value[name] is None and isinstance(shape, dict) and "default" in shape:
                    del value[name]  # null as "left out": the schema says "string" of it, and its tool refuses the null
                if name in value:
                    value[name] = self._filled(value[name], part, depth + 1)
        elif isinstance(value, list):
            for item in value:
                self._filled(item, schema.get("items"), depth + 1)
        return value

    def _fits(self, value: Any, schema: Any) -> bool:
        return bool(self._validator.evolve(schema=schema).is_valid(value))

    def _resolved(self, schema: Any) -> Any:
        """A schema behind its references within the document; the default beside one counts."""
        for _ in range(_DEEPEST):
            reference = schema.get("$ref") if isinstance(schema, dict) else None
            if not isinstance(reference, str) or not reference.startswith("#/"):
                return schema
            found: Any = self._schema
            for step in reference[2:].split("/"):
                found = found.get(step) if isinstance(found, dict) else None
            beside = {name: part for name, part in schema.items() if name != "$ref"}
            schema = {**found, **beside} if isinstance(found, dict) else beside
        return schema
