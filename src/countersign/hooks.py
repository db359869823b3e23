"""`strands.hooks` by our name: providers, the registry and all events."""

from countersign.agent_core.hooks import *  # noqa: F403
