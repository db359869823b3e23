"""Countersign: AI agents whose dangerous calls wait for a person's signature.

The public names are those of the Strands Agents SDK: replace `strands` by `countersign`.
"""

from countersign.agent_core.agent import Agent
from countersign.agent_core.durable import durable
from countersign.agent_core.interrupts import Interrupt
from countersign.agent_core.interventions import InterventionHandler
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
