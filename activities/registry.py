"""All activities of one worker."""

from collections.abc import Callable, Mapping
from typing import Any

from countersign.activities.history import HistoryActivities
from countersign.activities.model import ModelActivities
from countersign.activities.search_attributes import SearchAttributeActivities
from countersign.activities.step import StepActivities
from countersign.activities.tool import ToolActivities
from countersign.agent_core.deployment import AgentDeployment


def activities_for(deployments: Mapping[str, AgentDeployment]) -> list[Callable[..., Any]]:
    """The activities that serve these agents; one type per tool, named after it."""
    return [
        ModelActivities(deployments).call_model,
        StepActivities(deployments).run_step,
        HistoryActivities().read_cycle,
        SearchAttributeActivities().existing,
        *ToolActivities(deployments).all(),
    ]
