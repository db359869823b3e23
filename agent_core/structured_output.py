"""Structured output: the tool by which a model hands over its result as an object, and what counts as one.

While a turn runs, an agent of which structured output is wanted has one tool more, named after a pydantic model.
Hooks and handlers see its calls like those of any tool. Nothing runs: the input of a call that is let through is the
result, and ends the turn. A model that ends its turn without it is asked once more, with that tool forced.
"""

import json
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, RootModel, ValidationError

from countersign.agent_core.effects import current_effects
from countersign.agent_core.errors import (
    AgentDefinitionError,
    PolicyViolationError,
    StructuredOutputException,
    ToolInputError,
)
from countersign.agent_core.json_values import JsonObject, check_json
from countersign.agent_core.messages import Message
from countersign.agent_core.tools.base import Tool
from countersign.agent_core.tools.schema import ToolSpec
from countersign.agent_core.wire import ModelCall, ToolCall, ToolOutcome

if TYPE_CHECKING:
    from countersign.agent_core.agent import Agent
    from countersign.agent_core.tools.context import ToolContext

ASKING_PROMPT = "You must format the previous response as structured output."
"""What a model is told that has ended its turn without it; Strands' words."""


class OutputTool(Tool):
    """The tool of one structured output model.

    Args:
        model: The class of the result.
        prompt: What a model is told that has ended its turn without it.

    Raises:
        AgentDefinitionError: If it is no class of pydantic with named fields.
    """

    idempotent = True  # it does nothing but hold a value against its class
    is_async = False

    def __init__(self, model: type[BaseModel], prompt: str | None = None) -> None:
        if not isinstance(model, type) or not issubclass(model, BaseModel) or issubclass(model, RootModel):
            raise AgentDefinitionError(
                f"structured_output_model must be a class derived from pydantic.BaseModel, with fields, not {model!r}"
            )
        self.model, self.prompt = model, prompt or ASKING_PROMPT

    @property
    def tool_name(self) -> str:
        return self.model.__name__

    @property
    def tool_spec(self) -> ToolSpec:
        return self._spec

    @cached_property
    def _spec(self) -> ToolSpec:
        try:
            schema = self.model.model_json_schema()
        except Exception as error:
            raise AgentDefinitionError(
                f"structured_output_model {self.tool_name}: no JSON schema can be made of it: {error}"
            ) from error
        said = schema.pop("description", f"The result, as {self.tool_name}.")
        description = f"Hands over the final result and ends the turn; call it last, and only once. {said}"
        return {"name": self.tool_name, "description": description, "inputSchema": {"json": schema}}

    def adopt(self, built: Tool) -> None:
        if isinstance(built, OutputTool):
            self._spec = built._spec

    def canonical_input(self, raw: Any) -> JsonObject:
        """The input as the model wrote it, if a result can be made of it.

        Raises:
            ToolInputError: If not, naming each misfit.
        """
        self.value(raw)
        return raw  # type: ignore[no-any-return]  # an object, as `value` has found

    def value(self, raw: Any) -> BaseModel:
        """The result that an input stands for.

        Raises:
            ToolInputError: If it does not fit, or can't be written as JSON again.
            PolicyViolationError: If a validator of the class reaches for what only a step may.
        """
        name = self.tool_name
        if not isinstance(raw, dict):
            raise ToolInputError(f"the input of {name} must be an object, not {type(raw).__name__}: {raw!r:.200}")
        try:
            with _watched(f"a validator of {name}"):
                value = self.model(**raw)
                check_json(value.model_dump(mode="json"), name)
        except PolicyViolationError:
            raise
        except ValidationError as error:
            faults = "; ".join(
                f"{'.'.join(str(part) for part in fault['loc']) or 'input'}: {fault['msg']}" for fault in error.errors()
            )
            raise ToolInputError(f"the input of {name} does not fit its schema: {faults}") from error
        except Exception as error:
            raise ToolInputError(f"no {name} can be made of the input: {type(error).__name__}: {error}") from error
        return value

    def in_text(self, message: Message) -> BaseModel:
        """The result that the text of a message is: models that can't be made to call a tool answer so.

        Raises:
            StructuredOutputException: If it is not one JSON object, or does not fit.
        """
        text = "".join(block.get("text", "") for block in message["content"])
        try:
            return self.value(json.loads(text))
        except (json.JSONDecodeError, RecursionError, ToolInputError) as error:
            raise StructuredOutputException(
                f"the model was asked for {self.tool_name} and did not hand it over: it neither called the tool nor "
                f"wrote one JSON object that fits ({error}). Prompt again, or use a model that follows tool_choice"
            ) from error

    def invoke(self, canonical: JsonObject, context: "ToolContext") -> None:
        """Nothing runs; see `outcome`."""

    def outcome(self, call: ToolCall) -> ToolOutcome:
        """How a call ends that is let through."""
        text = f"Successfully validated {self.tool_name} structured output"
        return ToolOutcome(
            kind="result", result={"toolUseId": call.tool_use_id, "status": "success", "content": [{"text": text}]}
        )


def _watched(what: str) -> AbstractContextManager[object]:
    effects = current_effects.get()
    return nullcontext() if effects is None else effects.guard(what)


def output_model(agent: "Agent", call: ModelCall) -> type[BaseModel] | None:
    """The class of what a model call is forced to hand over; None if it is not, or the class is not known here."""
    if call.tool_choice is None or call.output_tool is None:
        return None
    found = agent.tool_registry.get(call.output_tool["name"]) or agent.output_tool
    if isinstance(found, OutputTool) and found.tool_name == call.output_tool["name"]:
        return found.model
    return None


def output_tool(agent: "Agent", model: type[BaseModel] | None, prompt: str | None) -> OutputTool | None:
    """The tool for what a call wants in the place of what its agent wants by itself; None if it wants nothing else.

    Args:
        agent: The agent.
        model: The class of the result; the agent's own if None.
        prompt: What to say to a model that ends its turn without it; the agent's own words if None.

    Raises:
        AgentDefinitionError: If it is unusable, named like a tool of the agent, or as no tool can be.
    """
    if model is None and prompt is not None and agent.output_tool is not None:
        model = agent.output_tool.model
    if model is None:
        return None
    tool = OutputTool(model, prompt or agent.structured_output_prompt)
    if agent.tool_registry.get(tool.tool_name) is not None:
        raise AgentDefinitionError(
            f"agent {agent.name!r}: structured_output_model {tool.tool_name} is named like one of its tools, and a "
            "call of the one could pass for the other; rename one"
        )
    agent.tool_registry.check(tool)
    return tool
