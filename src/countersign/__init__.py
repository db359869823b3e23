"""Countersign: AI agents whose dangerous calls wait for a person's signature.

The public names are those of the Strands Agents SDK: replace `strands` by `countersign`.
"""

import importlib
from typing import TYPE_CHECKING, Any

from countersign.agent_core.model_making import use_maker

if TYPE_CHECKING:
    from countersign.agent_core.agent import Agent
    from countersign.agent_core.durable import durable
    from countersign.agent_core.interrupts import Interrupt
    from countersign.agent_core.interventions import InterventionHandler
    from countersign.agent_core.models import Model
    from countersign.agent_core.result import AgentResult
    from countersign.agent_core.scripted import ScriptedModel
    from countersign.agent_core.steps import step
    from countersign.agent_core.tools import ToolContext, tool

__version__ = "0.1.0"

__all__ = [
    "Agent",
    "AgentResult",
    "Interrupt",
    "InterventionHandler",
    "ScriptedModel",
    "ToolContext",
    "durable",
    "step",
    "tool",
]

_HOMES = {
    "Agent": "agent",
    "AgentResult": "result",
    "Interrupt": "interrupts",
    "InterventionHandler": "interventions",
    "ScriptedModel": "scripted",
    "ToolContext": "tools",
    "durable": "durable",
    "step": "steps",
    "tool": "tools",
}
"""Where each name lives in agent_core; loaded at first use, so that the command's help comes at once."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"{__name__}.agent_core.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _model_from(source: object) -> "Model":
    """The core knows no vendor; here it is told who does."""
    from countersign.activities.providers import model_from  # noqa: PLC0415 (not before a model is made)

    return model_from(source)


use_maker(_model_from)
