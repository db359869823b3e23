"""What the cycles of this worker process can serve: the agents that were loaded at its start.

Temporal creates workflow objects itself, so they can't be handed anything; they look here. Set
once by whoever composes the worker, before it polls.
"""

from collections.abc import Mapping

from countersign.agent_core.deployment import AgentDeployment

_deployments: dict[str | None, dict[str, AgentDeployment]] = {}


def install(task_queue: str | None, deployments: Mapping[str, AgentDeployment]) -> None:
    """Serve these agents on a task queue.

    Args:
        task_queue: The queue that the worker polls; None for every queue that has no agents of its
            own, which a replay needs: Temporal gives it a queue name of its own.
        deployments: Agents by name; they take the place of what the queue served before.
    """
    _deployments[task_queue] = dict(deployments)


def deployments(task_queue: str) -> Mapping[str, AgentDeployment]:
    """The agents that this process serves on a task queue, by name."""
    return _deployments.get(task_queue) or _deployments.get(None, {})
