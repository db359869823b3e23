"""Switches off the retries of vendors' SDKs: Temporal owns retries, and two owners multiply.

Also makes a model of Strands say when its stream was cut, where it would pass for finished.
"""

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Any

from countersign.agent_core.errors import ModelUnavailableError

CUT = "the model's stream was cut off before its end"


def without_retries(model: Any) -> None:
    """Switch off the SDK's retries of a model of Strands, whoever made it.

    Args:
        model: The model; changed in place.
    """
    kinds = {kind.__name__ for kind in type(model).__mro__}
    client = getattr(model, "client", None)
    arguments = getattr(model, "client_args", None)
    if isinstance(arguments, dict) and kinds & {"OpenAIModel", "OpenAIResponsesModel", "LiteLLMModel"}:
        model.client_args = {**arguments, "max_retries": 0}
    for made in (client, getattr(model, "_custom_client", None)):
        if isinstance(getattr(made, "max_retries", None), int):  # openai, anthropic, writer, llama
            setattr(made, "max_retries", 0)  # noqa: B010 (of a client whose type is not known here)
    events_of: Any = getattr(client, "meta", None)
    events = getattr(events_of, "events", None)
    if events is not None:  # botocore registers its retries under this name, in every mode
        service = events_of.service_model.service_id.hyphenize()
        events.unregister(f"needs-retry.{service}", unique_id=f"retry-config-{service}")


def noticing_cuts(model: Any) -> bool:
    """Make a model of Strands fail if its stream ended without the vendor's word for why.

    Strands (1.62) takes such a stream for a finished answer, so that half a message, without the
    calls that would have followed or with half of their input, would pass for the whole.

    Args:
        model: A model of Strands; changed in place.

    Returns:
        True if its vendor's last event brings the usage, so that a stream without one was cut.
    """
    kinds = {kind.__name__ for kind in type(model).__mro__}
    for name in ("format_chunk", "_format_chunk"):
        if callable(format_chunk := getattr(model, name, None)):
            # "end_turn" is Strands' own word there: OpenAI's protocol says "stop", "tool_calls", …
            nothing: AbstractSet[str | None] = (
                {None, "end_turn"} if kinds & {"OpenAIModel", "LlamaCppModel"} else {None}
            )
            setattr(model, name, _checked(format_chunk, nothing))
    return "OpenAIResponsesModel" in kinds


def _checked(format_chunk: Callable[..., Any], nothing: AbstractSet[str | None]) -> Callable[..., Any]:
    def checked(event: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(event, dict) and event.get("chunk_type") == "message_stop" and event.get("data") in nothing:
            raise ModelUnavailableError(CUT)
        return format_chunk(event, *args, **kwargs)

    return checked
