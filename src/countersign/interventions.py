"""`strands.interventions` by our name: the handler base and the five actions."""

from countersign.agent_core.interventions import *  # noqa: F403
