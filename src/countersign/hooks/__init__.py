"""`strands.hooks` by our name: providers, the registry and all events."""

from countersign.agent_core.hooks import *  # noqa: F403  # the names of its __all__
