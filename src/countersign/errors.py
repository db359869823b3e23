"""All errors, in one place."""

from countersign.agent_core.errors import *  # noqa: F403
