"""Which agents and tools a worker process serves on which task queue. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from countersign.agent_client.queues import AGENT_PLACE, queue_of
from countersign.agent_core.deployment import AgentDeployment
from countersign.agent_core.errors import AgentDefinitionError


@dataclass(frozen=True)
class Share:
    """What is served on one task queue.

    Attributes:
        task_queue: Its name.
        deployments: Agents by name.
        tools_only: True if only tools that name this queue are run there.
    """

    task_queue: str
    deployments: Mapping[str, AgentDeployment]
    tools_only: bool = False

    def tools(self) -> list[str]:
        """Names of the tools that name this queue."""
        return tools_by_queue(self.deployments).get(self.task_queue, [])


def tools_by_queue(deployments: Mapping[str, AgentDeployment]) -> dict[str, list[str]]:
    """The tools that name a task queue, by its name."""
    found: dict[str, set[str]] = {}
    for deployment in deployments.values():
        for tool in deployment.template.tool_registry:
            if tool.queue is not None:
                found.setdefault(tool.queue, set()).add(tool.tool_name)
    return {queue: sorted(names) for queue, names in sorted(found.items())}


def shares_of(task_queue: str, deployments: Mapping[str, AgentDeployment], *, tools_only: bool = False) -> list[Share]:
    """What this process serves, queue by queue.

    Args:
        task_queue: As it is set; with `{agent}` in it, each agent has a queue of its own.
        deployments: The agents, by name.
        tools_only: True to run only tools that name this queue.

    Raises:
        AgentDefinitionError: If tools only are wanted and none names the queue.
    """
    if tools_only:
        share = Share(task_queue, deployments, tools_only=True)
        if not share.tools():
            known = ", ".join(tools_by_queue(deployments)) or "none"
            raise AgentDefinitionError(
                f"no tool of {', '.join(sorted(deployments))} has the queue {task_queue!r} (queues of tools: {known}); "
                f"set --task-queue, or decorate a tool with @tool(queue={task_queue!r})"
            )
        return [share]
    if AGENT_PLACE not in task_queue:
        return [Share(task_queue, deployments)]
    return [Share(queue_of(task_queue, name), {name: one}) for name, one in sorted(deployments.items())]
