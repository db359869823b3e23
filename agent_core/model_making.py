"""What an agent may be given as its model, and who makes a model of it.

An agent can name its model or give a function that makes it, so that a factory which runs for every
cycle builds no client and reads no key. The core knows only `Model`; how the others become one is
told by whoever puts the program together (`use_maker`): vendor SDKs are far from here.
"""

from collections.abc import AsyncIterable, Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from countersign.agent_core.errors import AgentDefinitionError

if TYPE_CHECKING:
    from countersign.agent_core.models import Model


class Streams(Protocol):
    """A `Model` of ours or one of Strands, known by its `stream`."""

    @property
    def stream(self) -> Callable[..., AsyncIterable[Any]]:
        """Answers a conversation as a stream of events."""


ModelSource: TypeAlias = str | Callable[[], object] | Streams
"""A name such as "openai:gpt-5"; a function without arguments that returns a model or a name; a `Model`, or
a model of Strands."""


def _nobody(source: object) -> "Model":
    raise AgentDefinitionError(f"nobody said how to make a model of {source!r}; import countersign, or call use_maker")


_makers: "list[Callable[[object], Model]]" = [_nobody]


def use_maker(maker: "Callable[[object], Model]") -> None:
    """Say how a model is made of what an agent was given. The last one counts.

    Args:
        maker: Called once for each agent, outside of workflows; raises AgentDefinitionError for
            what it can't make a model of.
    """
    _makers[:] = [maker]


def make_model(source: object) -> "Model":
    """The model that a source stands for.

    Raises:
        AgentDefinitionError: If it stands for none, with the next step.
    """
    return _makers[0](source)


class LateModel:
    """A model that is made when it is first needed; durably that is in a step.

    Args:
        source: The model; the fallback if None.
        missing: What is said if there is neither: whose model it is, and where it is given.
    """

    def __init__(self, source: ModelSource | None, missing: str) -> None:
        self._source, self._missing = source, missing
        self._made: Model | None = None

    def get(self, fallback: ModelSource | None) -> "Model":
        """The model.

        Args:
            fallback: The agent's own.

        Raises:
            AgentDefinitionError: If there is none.
        """
        if self._made is None:
            source = self._source if self._source is not None else fallback
            if source is None:
                raise AgentDefinitionError(self._missing)
            self._made = make_model(source)
        return self._made


def is_source(value: object) -> bool:
    """True for what may stand for a model; whether it does shows when the model is made."""
    return bool(value) if isinstance(value, str) else callable(getattr(value, "stream", None)) or callable(value)
