"""`strands.hooks.registry` by our name."""

from countersign.agent_core.hooks import HookCallback, HookEvent, HookOrder, HookProvider, HookRegistry

__all__ = ["HookCallback", "HookEvent", "HookOrder", "HookProvider", "HookRegistry"]
