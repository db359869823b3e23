"""The JSON Schema of everything that crosses the wire, for clients in other languages.

It ships with the package as `countersign/wire.schema.json`. When a shape has grown, make it anew:
`python -m countersign.agent_core.schemas > src/countersign/wire.schema.json`
"""

import json
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.json_schema import models_json_schema

from countersign.agent_core import wire
from countersign.agent_core.json_values import JsonObject, JsonValue


class Start(wire.SessionOptions):
    """The one argument of the workflow `AgentSession`."""

    protocol: Literal[1] = 1
    agent: str = Field(description="a name that a worker serves", min_length=1)
    prompt: str | list[JsonObject] | None = Field(
        default=None, description="text or content blocks; may be left out if the lifetime is open"
    )


class _Responder(BaseModel):
    model_config = ConfigDict(extra="allow", title="Responder")

    id: str


class _Beside(BaseModel):
    """What may stand in an `interruptResponse` or beside it; inside it wins."""

    digest: str | None = Field(default=None, description="of the question, as the person saw it")
    responder: _Responder | None = Field(default=None, description="a claim, recorded as such")
    comment: str | None = None
    at: str | None = Field(default=None, description="when it was said, with its zone; makes an approval lapse sooner")


class _InterruptResponse(_Beside):
    model_config = ConfigDict(title="InterruptResponse")

    interruptId: str = Field(min_length=1)
    response: JsonValue = Field(description="any JSON value; null is an answer, a missing key is not")


class AnswerBlock(_Beside):
    """One answer; the signal `respond` and the update `answer` take one or a list of them."""

    interruptResponse: _InterruptResponse


PUBLIC = (
    Start,
    AnswerBlock,
    wire.SessionOptions,
    wire.SessionResult,
    wire.Question,
    wire.AnswerReceipt,
    wire.AuditEntry,
)
"""What a client sends and gets; the rest of the wire is between the workflows and the activities."""


def wire_schema() -> JsonObject:
    """One schema with a definition for each shape, under its name."""
    _, schema = models_json_schema([(shape, "validation") for shape in PUBLIC], title="Countersign's wire contract")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


if __name__ == "__main__":
    print(json.dumps(wire_schema(), indent=2))
