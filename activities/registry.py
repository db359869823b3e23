"""All activities of one worker."""

from collections.abc import Callable, Mapping
from typing import Any

from countersign.activities.history import HistoryActivities
from countersign.activities.model import ModelActivities
from countersign.activities.search_attributes import SearchAttributeActivities
from countersign.activities.segments import Segments
from countersign.activities.step import StepActivities
from countersign.activities.tool import ToolActivities
from countersign.agent_core.deployment import AgentDeployment


def activities_for(
    deployments: Mapping[str, AgentDeployment], task_queue: str, segments: Segments
) -> list[Callable[..., Any]]:
    """The activities that serve these agents; one type per tool, named after it.

    Args:
        deployments: The agents, by name.
        task_queue: The queue that the worker serves: tools with another one are left to its workers.
        segments: What remembers messages in storage, for all queues of a process.
    """
    return [
        ModelActivities(deployments, segments).call_model,
        StepActivities(deployments).run_step,
        HistoryActivities().read_cycle,
        SearchAttributeActivities().existing,
        *ToolActivities(deployments, task_queue).all(),
    ]


def tool_activities_for(deployments: Mapping[str, AgentDeployment], task_queue: str) -> list[Callable[..., Any]]:
    """The activities of a worker that runs nothing but the tools of one task queue: no models, steps or agents."""
    return [*ToolActivities(deployments, task_queue, own_only=True).all()]
