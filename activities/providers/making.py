"""Makes a model of what an agent was given: a model, a name, a function, a model of Strands."""

from countersign.activities.providers.naming import named_model
from countersign.agent_core.errors import AgentDefinitionError, CountersignError
from countersign.agent_core.models import Model

_MOST_FUNCTIONS = 5
"""A function may return a name or another function; a circle must end."""


def model_from(source: object) -> Model:
    """The model that a source stands for.

    Args:
        source: See `agent_core.model_making.ModelSource`.

    Raises:
        AgentDefinitionError: If it stands for none: an unknown name, a missing package or key, a
            function that raised.
    """
    for _ in range(_MOST_FUNCTIONS):
        if isinstance(source, Model):
            return source
        if isinstance(source, str):
            source = named_model(source)
        if callable(getattr(source, "stream", None)) and not isinstance(source, type):
            from countersign.activities.providers.strands_model import StrandsModel

            return StrandsModel(source)
        if not callable(source):
            break
        source = _called(source)
    raise AgentDefinitionError(
        f"{source!r} is not a model; give a name like 'openai:gpt-5', a model, or a function that returns one"
    )


def _called(function: object) -> object:
    assert callable(function)
    try:
        return function()
    except CountersignError:
        raise
    except Exception as error:
        name = getattr(function, "__qualname__", repr(function))
        raise AgentDefinitionError(
            f"the function {name} that makes the model raised {type(error).__name__}: {error}"
        ) from error
