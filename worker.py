"""The composition root: settings, agents, one Temporal worker. Nobody imports it.

python worker.py --agents my_package.my_agents
"""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Mapping
from datetime import timedelta

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, CliApp, SettingsConfigDict, SettingsError
from temporalio.client import Client
from temporalio.worker import Worker

from countersign.activities.registry import activities_for
from countersign.activities.search_attributes import register
from countersign.agent_client.connection import connect_temporal
from countersign.agent_core.deployment import AgentDeployment, load_agents
from countersign.agent_core.errors import CountersignError
from countersign.workflows import host
from countersign.workflows.cycle import AgentCycle
from countersign.workflows.intake import IntakeGuard
from countersign.workflows.sandbox import policed_runner, roots_of
from countersign.workflows.session import AgentSession

USAGE_ERROR = 2


class WorkerSettings(BaseSettings):
    """Serves agents: runs their sessions, models and tools for a Temporal server.

    Every flag can also be an environment variable, for instance COUNTERSIGN_TASK_QUEUE. The
    connection (address, namespace, TLS, API key) comes from Temporal's own settings: TEMPORAL_*
    variables and profiles in its configuration file.
    """

    model_config = SettingsConfigDict(
        env_prefix="COUNTERSIGN_",
        cli_kebab_case=True,
        cli_implicit_flags=True,
        cli_prog_name="worker.py",
        cli_avoid_json=True,
    )

    agents: list[str] = Field(
        description="modules that register agents with @durable, like my_package.my_agents; repeat it for more",
    )
    task_queue: str = Field(default="countersign", description="queue to serve")
    address: str | None = Field(default=None, description="Temporal's host:port; else TEMPORAL_ADDRESS or the profile")
    namespace: str | None = Field(default=None, description="else TEMPORAL_NAMESPACE or the profile")
    profile: str | None = Field(default=None, description="profile in Temporal's settings file")
    max_concurrent_workflow_tasks: int = Field(default=max(4, 2 * (os.cpu_count() or 1)), ge=2)
    max_concurrent_activities: int = Field(default=100, ge=1, description="models and tools that run at once")
    max_cached_workflows: int = Field(default=500, ge=0)
    sticky_timeout_s: float = Field(default=1.5, gt=0, description="wait for a lost worker's cached workflows, seconds")
    graceful_shutdown_s: float = Field(default=20.0, ge=0, description="time for running tools on SIGTERM, seconds")
    log_level: str = Field(default="WARNING", description="DEBUG, INFO, WARNING or ERROR")

    @field_validator("agents")
    @classmethod
    def _split(cls, given: list[str]) -> list[str]:
        return [name for item in given for name in item.split(",") if name]


def build_worker(client: Client, settings: WorkerSettings, deployments: Mapping[str, AgentDeployment]) -> Worker:
    """Put a worker together; it does not poll yet.

    Args:
        client: A connected client.
        settings: The worker's settings.
        deployments: The agents, loaded from `settings.agents`.

    Raises:
        CountersignError: If policy code can't be policed.
    """
    host.install(settings.task_queue, deployments)
    return Worker(
        client,
        task_queue=settings.task_queue,
        workflows=[AgentSession, AgentCycle],
        activities=activities_for(deployments),
        workflow_runner=policed_runner(settings.agents),
        interceptors=[IntakeGuard()],
        max_concurrent_workflow_tasks=settings.max_concurrent_workflow_tasks,
        max_concurrent_activities=settings.max_concurrent_activities,
        max_cached_workflows=settings.max_cached_workflows,
        sticky_queue_schedule_to_start_timeout=timedelta(seconds=settings.sticky_timeout_s),
        graceful_shutdown_timeout=timedelta(seconds=settings.graceful_shutdown_s),
    )


async def serve(settings: WorkerSettings) -> None:
    """Serve until SIGTERM or SIGINT, then let running tools finish."""
    roots_of(settings.agents)
    deployments = load_agents(settings.agents)
    client = await connect_temporal(settings.address, settings.namespace, settings.profile)
    missing = await register(client)
    if missing:
        _say(
            f"search attributes missing in namespace {client.namespace}: {', '.join(missing)}; sessions go without them"
        )
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with build_worker(client, settings, deployments):
        address = client.service_client.config.target_host
        _say(
            f"countersign worker ready: agents {', '.join(sorted(deployments))}; task queue {settings.task_queue}; "
            f"namespace {client.namespace} at {address}"
        )
        await stop.wait()
        _say(f"stopping; running tools get {settings.graceful_shutdown_s:g} s to finish")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    """Run the worker from the command line."""
    sys.path.insert(0, os.getcwd())
    try:
        settings = CliApp.run(WorkerSettings)
    except (ValidationError, SettingsError) as error:
        faults = error.errors() if isinstance(error, ValidationError) else []
        text = "; ".join(f"--{'.'.join(map(str, f['loc'])).replace('_', '-')}: {f['msg']}" for f in faults) or str(
            error
        )
        _say(f"worker.py: {text}. See worker.py --help")
        raise SystemExit(USAGE_ERROR) from None
    logging.basicConfig(level=settings.log_level.upper())
    try:
        asyncio.run(serve(settings))
    except CountersignError as error:
        _say(f"worker.py: {error}")
        raise SystemExit(USAGE_ERROR) from None
    sys.stdout.flush()
    # A sync tool that outlived its grace period still runs in a thread, which would keep the process
    # alive; its call is an unknown outcome already.
    os._exit(0)


if __name__ == "__main__":
    main()
