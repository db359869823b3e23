"""Switches off the retries of vendors' SDKs: Temporal owns retries, and two owners multiply.

Also makes a model of Strands say when its stream was cut, where it would pass for finished.
"""

from typing import Any

from countersign.agent_core.errors import ModelUnavailableError


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


def noticing_cuts(model: Any) -> None:
    """Make a model on OpenAI's chat protocol fail if its stream ended without a finish reason.

    Strands (1.62) takes such a stream for a finished answer, so that half a message, without the
    calls that would have followed, would pass for the whole.

    Args:
        model: A model of Strands; changed in place.
    """
    if not any(kind.__name__ == "OpenAIModel" for kind in type(model).__mro__) or not model.config.get("stream", True):
        return
    format_chunk = model.format_chunk

    def checked(event: dict[str, Any], **kwargs: Any) -> Any:
        # The protocol's own words are "stop", "tool_calls", …; this one is Strands' for "none came".
        if event.get("chunk_type") == "message_stop" and event.get("data") == "end_turn":
            raise ModelUnavailableError("the model's stream was cut off before its end")
        return format_chunk(event, **kwargs)

    model.format_chunk = checked
