"""What `Agent()` makes of arguments that may come in several forms."""

from collections.abc import Iterable, Mapping
from typing import Any

from countersign.agent_core.errors import AgentDefinitionError


def listed(what: str, given: Iterable[Any] | None) -> list[Any]:
    """Several things of a kind; None for none of them, as in Strands.

    Raises:
        AgentDefinitionError: For one thing that stands alone.
    """
    if given is None:
        return []
    if isinstance(given, (str, Mapping)) or not isinstance(given, Iterable):
        raise AgentDefinitionError(f"{what} must be a list, not {given!r}; write {what}=[...], for one too")
    return list(given)


def system_text(given: str | Iterable[Mapping[str, Any]] | None) -> str | None:
    """A system prompt as the models of every vendor take it; of text blocks, their texts by lines, as in Strands.

    Raises:
        AgentDefinitionError: For what is neither text nor text blocks.
    """
    if given is None or isinstance(given, str):
        return given
    if not isinstance(given, (list, tuple)):
        raise AgentDefinitionError(f"system_prompt must be text or a list of text blocks, not {given!r}")
    for block in given:
        if not isinstance(block, Mapping) or set(block) != {"text"} or not isinstance(block["text"], str):
            raise AgentDefinitionError(
                f'system_prompt takes text blocks ({{"text": ...}}), and {block!r} is none: leave it out. Where prompts'
                " are cached is an option of the model, for instance cache_config of Strands' BedrockModel"
            )
    return "\n".join(block["text"] for block in given) if given else None
