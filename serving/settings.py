"""The settings of a worker process: flags and COUNTERSIGN_* variables, checked before anything connects."""

import os
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_settings import NoDecode, SettingsConfigDict, SettingsError
from temporalio.common import VersioningBehavior, WorkerDeploymentVersion
from temporalio.worker import WorkerDeploymentConfig

from countersign.agent_client.payloads import PayloadSettings
from countersign.agent_client.queues import AGENT_PLACE
from countersign.agent_core.wire import DEADLINE_S

LONGEST_S = 604_800.0
"""Of whatever takes time: a week."""

LONGEST_DEADLINE_S = 315_360_000.0
"""Of a question: ten years."""

MOST_AT_ONCE = 1_000_000
"""Of whatever is counted."""


MOST_TASKS_UNASKED = 16
"""Workflow tasks at once, unless somebody says how many: a machine's CPUs are seldom all for one process."""


def default_workflow_tasks() -> int:
    """Two for each CPU that this process may use, as far as the system says."""
    affinity = getattr(os, "sched_getaffinity", None)  # Linux has it
    cpus = len(affinity(0)) if affinity is not None else os.cpu_count() or 1
    return min(MOST_TASKS_UNASKED, max(4, 2 * cpus))


class WorkerSettings(PayloadSettings):
    """Serves agents: runs their sessions, models and tools for a Temporal server.

    Every flag can also be an environment variable: --task-queue is COUNTERSIGN_TASK_QUEUE. What
    no flag says of the connection (address, namespace, TLS, API key) comes from Temporal's own
    settings: TEMPORAL_* variables and profiles in its configuration file.
    """

    model_config = SettingsConfigDict(
        env_prefix="COUNTERSIGN_",
        cli_kebab_case=True,
        cli_implicit_flags=True,
        cli_prog_name="python -m countersign.worker",
        cli_avoid_json=True,
        cli_hide_none_type=True,
    )

    agents: Annotated[list[str], NoDecode] = Field(
        min_length=1,
        description="modules that register agents with @durable, like my_package.my_agents; repeat it, or use commas",
    )
    task_queue: str = Field(
        default="countersign", min_length=1, description="queue to serve; {agent} in it stands for each agent's name"
    )
    queue_per_agent: bool = Field(default=False, description='the same as --task-queue "<task queue>-{agent}"')
    tools_only: bool = Field(
        default=False, description="run only the tools of @tool(queue=<task queue>): no agents, no models"
    )
    address: str | None = Field(default=None, description="Temporal's host:port; else TEMPORAL_ADDRESS or the profile")
    namespace: str | None = Field(default=None, description="else TEMPORAL_NAMESPACE or the profile")
    profile: str | None = Field(default=None, description="profile in Temporal's settings file")
    default_deadline_s: float = Field(
        default=DEADLINE_S,
        gt=0,
        le=LONGEST_DEADLINE_S,
        description="how long a question waits if its session's start does not say",
    )
    max_concurrent_workflow_tasks: int = Field(
        default=default_workflow_tasks(),
        ge=2,
        le=MOST_AT_ONCE,
        description="steps of sessions and cycles at once; queues share them",
    )
    max_concurrent_activities: int = Field(
        default=100, ge=1, le=MOST_AT_ONCE, description="models and tools that run at once, for each queue"
    )
    max_activities_per_second: float | None = Field(
        default=None,
        gt=0,
        allow_inf_nan=False,
        description="models and tools that this worker begins per second, for each queue",
    )
    max_task_queue_activities_per_second: float | None = Field(
        default=None,
        gt=0,
        allow_inf_nan=False,
        description="models and tools that all workers of a queue begin per second together",
    )
    max_cached_workflows: int = Field(
        default=500, ge=0, le=MOST_AT_ONCE, description="sessions and cycles in memory; queues share them"
    )
    sticky_timeout_s: float = Field(
        default=1.5, gt=0, le=LONGEST_S, description="how long sessions of a lost worker wait for it"
    )
    graceful_shutdown_s: float = Field(default=20.0, ge=0, le=LONGEST_S, description="for running tools, on SIGTERM")
    deployment_name: str | None = Field(default=None, description="Temporal worker deployment, if builds are versioned")
    build_id: str | None = Field(default=None, description="this build in that deployment")
    health_port: int | None = Field(default=None, ge=0, le=65_535, description="HTTP port of /livez and /readyz")
    health_host: str = Field(default="127.0.0.1", min_length=1, description="where it listens; 0.0.0.0 in a container")
    metrics_address: str | None = Field(default=None, description="host:port where Prometheus may fetch /metrics")
    metrics_otlp_url: str | None = Field(
        default=None, description="send metrics there instead, like http://localhost:4317"
    )
    fleet_metrics_s: float = Field(
        default=30.0, gt=0, le=LONGEST_S, description="between two counts of what waits, on average"
    )
    traces: bool = Field(default=False, description="send traces as OTEL_* variables say; needs the extra otel")
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        default="WARNING", description="of Python's logging"
    )

    @field_validator("agents", mode="before")
    @classmethod
    def _split(cls, given: Any) -> Any:
        items = [given] if isinstance(given, str) else given
        return [name.strip() for item in items for name in str(item).split(",") if name.strip()]

    @field_validator(
        "address", "namespace", "profile", "max_activities_per_second", "max_task_queue_activities_per_second",
        "deployment_name", "build_id", "health_port", "metrics_address", "metrics_otlp_url", mode="before",
    )  # fmt: skip
    @classmethod
    def _unset(cls, given: Any) -> Any:
        """An empty variable is not set, as charts write it. Not that of the keys: without them nothing is hidden."""
        return None if given == "" else given

    @field_validator("log_level", mode="before")
    @classmethod
    def _upper(cls, given: Any) -> Any:
        return given.upper() if isinstance(given, str) else given

    @model_validator(mode="after")
    def _fits_together(self) -> "WorkerSettings":
        if (self.deployment_name is None) != (self.build_id is None):
            raise ValueError("--deployment-name and --build-id belong together")
        if self.queue_per_agent and AGENT_PLACE not in self.task_queue:
            self.task_queue = f"{self.task_queue}-{AGENT_PLACE}"
        if self.tools_only and AGENT_PLACE in self.task_queue:
            raise ValueError("--tools-only serves one queue, that of @tool(queue=...); name it with --task-queue")
        if self.metrics_address is not None and self.metrics_otlp_url is not None:
            raise ValueError("--metrics-address and --metrics-otlp-url exclude each other; leave one out")
        if self.metrics_address is not None and not self.metrics_address.rpartition(":")[2].isdigit():
            raise ValueError(f"--metrics-address is {self.metrics_address!r}; give host:port, like 127.0.0.1:9464")
        return self

    @property
    def deployment(self) -> WorkerDeploymentConfig | None:
        """The versioned deployment that this worker belongs to, if any.

        A waiting session goes on with the newest build; a cycle says otherwise of itself (`PinnedCycle`).
        """
        if self.deployment_name is None or self.build_id is None:
            return None
        version = WorkerDeploymentVersion(self.deployment_name, self.build_id)
        return WorkerDeploymentConfig(version, True, VersioningBehavior.AUTO_UPGRADE)


def faults(error: ValidationError | SettingsError) -> str:
    """What is wrong with settings, by the flag, in one line."""
    if isinstance(error, SettingsError):
        return str(error)
    return "; ".join(_fault(found) for found in error.errors())


def _fault(found: Any) -> str:
    text = str(found["msg"]).removeprefix("Value error, ")
    return f"--{found['loc'][0].replace('_', '-')}: {text}" if found["loc"] else text
