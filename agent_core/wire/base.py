"""What all wire shapes have in common, and the shapes that several rooms share."""

from pydantic import BaseModel, ConfigDict, Field


class Wire(BaseModel):
    """Base of all wire shapes: unknown fields are ignored, so that both sides can grow."""

    model_config = ConfigDict(extra="ignore")


class Limits(Wire):
    """Caps on one invocation; checked before each model call. None means no cap."""

    turns: int | None = Field(default=None, ge=1, description="cycles")
    total_tokens: int | None = Field(default=None, ge=1)
    output_tokens: int | None = Field(default=None, ge=1)


class ErrorInfo(Wire):
    """An error as it travels: its type's name, its text, and what raised it."""

    type: str
    message: str
    origin: str = ""
