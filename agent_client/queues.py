"""Which task queue an agent is served on: one for all, or one made with its name. Pure."""

AGENT_PLACE = "{agent}"
"""Stands for the agent's name in the name of a task queue."""


def queue_of(task_queue: str, agent: str) -> str:
    """The task queue of one agent.

    Args:
        task_queue: As it is set, on workers and clients alike: "countersign", or "countersign-{agent}".
        agent: The agent's name.
    """
    return task_queue.replace(AGENT_PLACE, agent)
