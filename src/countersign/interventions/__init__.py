"""`strands.interventions` by our name: the handler base and the five actions, and what an answer may be judged as."""

from countersign.agent_core.interventions import *  # noqa: F403
