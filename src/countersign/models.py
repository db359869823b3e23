"""Models: the port that every model implements, and the scripted one."""

from countersign.agent_core.models import Model, StreamEvent
from countersign.agent_core.scripted import Scene, ScriptedModel, Turn, calls

__all__ = ["Model", "Scene", "ScriptedModel", "StreamEvent", "Turn", "calls"]
