"""Hooks: callbacks on the events of the agent loop."""

from countersign.agent_core.hooks.events import (
    AfterInvocationEvent,
    AfterModelCallEvent,
    AfterToolCallEvent,
    AfterToolsEvent,
    AgentInitializedEvent,
    BeforeInvocationEvent,
    BeforeModelCallEvent,
    BeforeToolCallEvent,
    BeforeToolsEvent,
    HookEvent,
    MessageAddedEvent,
    ModelStopResponse,
)
from countersign.agent_core.hooks.registry import HookCallback, HookOrder, HookProvider, HookRegistry

__all__ = [
    "AfterInvocationEvent",
    "AfterModelCallEvent",
    "AfterToolCallEvent",
    "AfterToolsEvent",
    "AgentInitializedEvent",
    "BeforeInvocationEvent",
    "BeforeModelCallEvent",
    "BeforeToolCallEvent",
    "BeforeToolsEvent",
    "HookCallback",
    "HookEvent",
    "HookOrder",
    "HookProvider",
    "HookRegistry",
    "MessageAddedEvent",
    "ModelStopResponse",
]
