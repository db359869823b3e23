"""Names of models: "openai:gpt-5" and the like become models of `strands-agents`.

Addresses and keys come from the environment variables that each vendor's own SDK reads.
"""

import importlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from countersign.activities.providers.secrets import without_secrets
from countersign.agent_core.errors import AgentDefinitionError
from countersign.agent_core.extras import how_to_install

SILENCE_S = 300.0
"""A vendor that sends nothing for so long is given up; Temporal then tries again."""

CONNECT_S = 10.0
DEFAULT_MAX_TOKENS = 8_192
"""Anthropic's API wants a cap on the answer; a function can make a model with another."""


@dataclass(frozen=True)
class Provider:
    """A vendor of models.

    Attributes:
        module: Where Strands keeps its model.
        model_class: The class's name there.
        arguments: Makes the arguments of that class, besides the model's id, from the environment.
        extra: The extra of this package that brings the vendor's SDK.
        keys: Environment variables of which one must be set; empty if there are other ways in.
        address: Environment variable with the address of a server of one's own, which may need no key.
        model_argument: How the class calls the model's id.
    """

    module: str
    model_class: str
    arguments: Callable[[], dict[str, Any]] = dict
    extra: str = ""
    keys: tuple[str, ...] = ()
    address: str = ""
    model_argument: str = "model_id"


def _patience() -> Any:
    import httpx

    return httpx.Timeout(SILENCE_S, connect=CONNECT_S)


def _openai() -> dict[str, Any]:
    given: dict[str, Any] = {"timeout": _patience()}
    if not os.environ.get("OPENAI_API_KEY"):
        given["api_key"] = "none"  # a server of one's own asks for none, but the SDK insists on one
    return {"client_args": given}


def _anthropic() -> dict[str, Any]:
    given: dict[str, Any] = {"timeout": _patience()}
    if not os.environ.get("ANTHROPIC_API_KEY") and not os.environ.get("ANTHROPIC_AUTH_TOKEN"):
        given["api_key"] = "none"
    return {"client_args": given, "max_tokens": DEFAULT_MAX_TOKENS}


def _gemini() -> dict[str, Any]:
    return {"client_args": {"api_key": os.environ.get("GEMINI_API_KEY") or os.environ.get("GOOGLE_API_KEY")}}


def _bedrock() -> dict[str, Any]:
    from botocore.config import Config

    return {"boto_client_config": Config(read_timeout=SILENCE_S, connect_timeout=CONNECT_S)}


PROVIDERS: dict[str, Provider] = {
    "openai": Provider("openai", "OpenAIModel", _openai, "openai", keys=("OPENAI_API_KEY",), address="OPENAI_BASE_URL"),
    "openai-responses": Provider(
        "openai_responses", "OpenAIResponsesModel", _openai, "openai", ("OPENAI_API_KEY",), "OPENAI_BASE_URL"
    ),
    "anthropic": Provider(
        "anthropic",
        "AnthropicModel",
        _anthropic,
        "anthropic",
        keys=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
        address="ANTHROPIC_BASE_URL",
    ),
    "bedrock": Provider("bedrock", "BedrockModel", _bedrock, "strands"),
    "gemini": Provider("gemini", "GeminiModel", _gemini, "gemini", keys=("GEMINI_API_KEY", "GOOGLE_API_KEY")),
    "ollama": Provider("ollama", "OllamaModel", lambda: {"host": os.environ.get("OLLAMA_HOST")}, "ollama"),
    "litellm": Provider("litellm", "LiteLLMModel", extra="litellm"),
    "mistral": Provider("mistral", "MistralModel", extra="mistral", keys=("MISTRAL_API_KEY",)),
    "llamaapi": Provider("llamaapi", "LlamaAPIModel", extra="llamaapi", keys=("LLAMA_API_KEY",)),
    "writer": Provider("writer", "WriterModel", extra="writer", keys=("WRITER_API_KEY",)),
}
"""By the word before the colon. SageMaker has no one id for a model: a function makes its model. llama.cpp speaks
OpenAI's protocol: with its own class a cut stream could pass for a finished one."""


def named_model(name: str) -> Any:
    """A model of Strands by its name.

    Args:
        name: "<provider>:<model id>", for instance "openai:gpt-5". Without a known provider, what
            looks like an id or ARN of Amazon Bedrock is one, as in Strands.

    Raises:
        AgentDefinitionError: For an unknown provider, a missing package, or a missing key.
    """
    word, colon, model_id = name.partition(":")
    provider = PROVIDERS.get(word)
    if provider is None and ("." in word or word == "arn"):
        provider, word, model_id = PROVIDERS["bedrock"], "bedrock", name
    if provider is None:
        shown, known = without_secrets(name), ", ".join(PROVIDERS)
        raise AgentDefinitionError(
            f"model {shown!r}: no provider {without_secrets(word)!r}. Use <provider>:<model id> with one of: {known}"
            if colon
            else f"model {shown!r} names no provider. Use <provider>:<model id>, for instance openai:{shown}"
        )
    if not model_id:
        raise AgentDefinitionError(f"model {name!r} has no model id; use for instance {word}:<model id>")
    _check_key(name, provider)
    try:
        module = importlib.import_module(f"strands.models.{provider.module}")
        return getattr(module, provider.model_class)(**provider.arguments(), **{provider.model_argument: model_id})
    except ImportError as error:
        raise AgentDefinitionError(
            f"model {name!r} needs a package that is not installed ({error}); {how_to_install(provider.extra)}"
        ) from error
    except Exception as error:
        raise AgentDefinitionError(f"model {name!r} can't be made: {type(error).__name__}: {error}") from error


def _check_key(name: str, provider: Provider) -> None:
    """Fail when the worker starts and not in the first session."""
    for key in (*provider.keys, provider.address):
        if os.environ.get(key, "") != os.environ.get(key, "").strip():
            raise AgentDefinitionError(
                f"model {name!r}: {key} begins or ends with a space or a line break; take it off"
            )
    if not provider.keys or any(os.environ.get(key) for key in provider.keys):
        return
    if provider.address and os.environ.get(provider.address):
        return
    own = f", or {provider.address} for a server that needs no key" if provider.address else ""
    raise AgentDefinitionError(f"model {name!r} needs a key: set {' or '.join(provider.keys)}{own}")
