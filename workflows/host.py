"""What the cycles of this worker process can serve: the agents that were loaded at its start, and its default deadline.

Temporal creates workflow objects itself, so they can't be handed anything; they look here. Set
once by whoever composes the worker, before it polls.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from countersign.agent_core.deployment import AgentDeployment
from countersign.agent_core.wire import DEADLINE_S


@dataclass(frozen=True)
class _Served:
    deployments: dict[str, AgentDeployment]
    default_deadline_s: float = DEADLINE_S


_served: dict[str | None, _Served] = {}


def install(
    task_queue: str | None, deployments: Mapping[str, AgentDeployment], default_deadline_s: float = DEADLINE_S
) -> None:
    """Serve these agents on a task queue.

    Args:
        task_queue: The queue that the worker polls; None for every queue that has no agents of its
            own, which a replay needs: Temporal gives it a queue name of its own.
        deployments: Agents by name; they take the place of what the queue served before.
        default_deadline_s: How long a question waits if its session's start does not say.
    """
    _served[task_queue] = _Served(dict(deployments), default_deadline_s)


def deployments(task_queue: str) -> Mapping[str, AgentDeployment]:
    """The agents that this process serves on a task queue, by name."""
    return _of(task_queue).deployments


def default_deadline_s(task_queue: str) -> float:
    """How long a question of a task queue's sessions waits if their start did not say, in seconds."""
    return _of(task_queue).default_deadline_s


def _of(task_queue: str) -> _Served:
    found = _served.get(task_queue)
    return found if found and found.deployments else _served.get(None, _Served({}))
