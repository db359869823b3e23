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
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_settings import CliApp, NoDecode, SettingsConfigDict, SettingsError
from temporalio import workflow
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest, DescribeWorkerDeploymentRequest
from temporalio.client import Client
from temporalio.common import VersioningBehavior, WorkerDeploymentVersion
from temporalio.service import RPCError
from temporalio.worker import Worker, WorkerDeploymentConfig

from countersign.activities.registry import activities_for
from countersign.activities.search_attributes import register
from countersign.agent_client.connection import connect_temporal
from countersign.agent_client.payloads import PayloadSettings, check_store, data_converter
from countersign.agent_client.translation import server_trouble
from countersign.agent_core.deployment import AgentDeployment, load_agents
from countersign.agent_core.errors import CountersignError
from countersign.agent_core.wire import WORKER_READY
from countersign.workflows import host
from countersign.workflows.cycle import AgentCycle
from countersign.workflows.intake import IntakeGuard
from countersign.workflows.sandbox import policed_runner, roots_of
from countersign.workflows.session import AgentSession

USAGE_ERROR = 2


class WorkerSettings(PayloadSettings):
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

    agents: Annotated[list[str], NoDecode] = Field(
        min_length=1,
        description="modules that register agents with @durable, like my_package.my_agents; repeat it, or use commas",
    )
    task_queue: str = Field(default="countersign", min_length=1, description="queue to serve")
    address: str | None = Field(default=None, description="Temporal's host:port; else TEMPORAL_ADDRESS or the profile")
    namespace: str | None = Field(default=None, description="else TEMPORAL_NAMESPACE or the profile")
    profile: str | None = Field(default=None, description="profile in Temporal's settings file")
    max_concurrent_workflow_tasks: int = Field(default=max(4, 2 * (os.cpu_count() or 1)), ge=2)
    max_concurrent_activities: int = Field(default=100, ge=1, description="models and tools that run at once")
    max_cached_workflows: int = Field(default=500, ge=0)
    sticky_timeout_s: float = Field(default=1.5, gt=0, description="wait for a lost worker's cached workflows, seconds")
    graceful_shutdown_s: float = Field(default=20.0, ge=0, description="time for running tools on SIGTERM, seconds")
    deployment_name: str | None = Field(default=None, description="Temporal worker deployment, if builds are versioned")
    build_id: str | None = Field(default=None, description="this build in that deployment")
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        default="WARNING", description="of Python's logging"
    )

    @field_validator("agents", mode="before")
    @classmethod
    def _split(cls, given: Any) -> Any:
        items = [given] if isinstance(given, str) else given
        return [name.strip() for item in items for name in str(item).split(",") if name.strip()]

    @field_validator("log_level", mode="before")
    @classmethod
    def _upper(cls, given: Any) -> Any:
        return given.upper() if isinstance(given, str) else given

    @model_validator(mode="after")
    def _both_or_neither(self) -> "WorkerSettings":
        if (self.deployment_name is None) != (self.build_id is None):
            raise ValueError("--deployment-name and --build-id belong together")
        return self

    @property
    def deployment(self) -> WorkerDeploymentConfig | None:
        """The versioned deployment that this worker belongs to, if any."""
        if self.deployment_name is None or self.build_id is None:
            return None
        return WorkerDeploymentConfig(WorkerDeploymentVersion(self.deployment_name, self.build_id), True)


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
    if settings.deployment is not None:
        _behave(AgentSession, VersioningBehavior.AUTO_UPGRADE)
        _behave(AgentCycle, VersioningBehavior.PINNED)
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
        deployment_config=settings.deployment,
    )


def _behave(kind: type, behavior: VersioningBehavior) -> None:
    """Give a workflow its versioning behaviour.

    Not in the decorator: there, it would wedge every workflow of an unversioned worker. A waiting
    session goes on with the newest build; a cycle, which holds user code, ends on its own.
    """
    definition = workflow._Definition.must_from_class(kind)
    object.__setattr__(definition, "versioning_behavior", behavior)  # frozen, and the SDK has no public way


async def _check_namespace(client: Client) -> None:
    """Fail early and clearly if the namespace is missing or closed to us.

    Raises:
        CountersignError: Naming the address and the namespace.
    """
    request = DescribeNamespaceRequest(namespace=client.namespace)
    try:
        await client.workflow_service.describe_namespace(request, timeout=timedelta(seconds=10))
    except RPCError as error:
        known = server_trouble(error, client.service_client.config.target_host, client.namespace)
        if known is not None:
            raise known from error


async def _say_if_not_current(client: Client, deployment: WorkerDeploymentConfig) -> None:
    """A build that is not current gets no new sessions; that looks like a worker that hangs."""
    name, build = deployment.version.deployment_name, deployment.version.build_id
    request = DescribeWorkerDeploymentRequest(namespace=client.namespace, deployment_name=name)
    try:
        answer = await client.workflow_service.describe_worker_deployment(request, timeout=timedelta(seconds=10))
        current = answer.worker_deployment_info.routing_config.current_deployment_version.build_id
    except RPCError:
        current = ""  # its first worker: the server does not know the deployment yet
    if current != build:
        _say(
            f"build {build} is not the current one of deployment {name} ({current or 'none is'}), so new sessions do "
            f"not start on it; once it polls: temporal worker deployment set-current-version "
            f"--deployment-name {name} --build-id {build}"
        )


async def serve(settings: WorkerSettings) -> None:
    """Serve until SIGTERM or SIGINT, then let running tools finish."""
    roots_of(settings.agents)
    deployments = load_agents(settings.agents)
    converter = data_converter(settings, worker=True)
    client = await connect_temporal(settings.address, settings.namespace, settings.profile, data_converter=converter)
    await _check_namespace(client)
    await check_store(converter)
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
            f"{WORKER_READY}{', '.join(sorted(deployments))}; task queue {settings.task_queue}; "
            f"namespace {client.namespace} at {address}"
        )
        if settings.deployment is not None:
            await _say_if_not_current(client, settings.deployment)
        await stop.wait()
        _say(f"stopping; running tools get {settings.graceful_shutdown_s:g} s to finish")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _fault(found: Any) -> str:
    """One of pydantic's complaints about the settings, by the flag."""
    text = str(found["msg"]).removeprefix("Value error, ")
    return f"--{found['loc'][0].replace('_', '-')}: {text}" if found["loc"] else text


def main() -> None:
    """Run the worker from the command line."""
    sys.path.insert(0, os.getcwd())
    try:
        settings = CliApp.run(WorkerSettings)
    except (ValidationError, SettingsError) as error:
        text = (
            "; ".join(_fault(found) for found in error.errors()) if isinstance(error, ValidationError) else str(error)
        )
        _say(f"countersign worker: {text}. See --help")
        raise SystemExit(USAGE_ERROR) from None
    logging.basicConfig(level=settings.log_level)
    code = 0
    try:
        asyncio.run(serve(settings))
    except CountersignError as error:
        _say(f"countersign worker: {error}")
        code = USAGE_ERROR
    sys.stdout.flush()
    # Two reasons not to wait for the interpreter: a sync tool that outlived its grace period still runs in
    # a thread and would keep the process alive (its call is an unknown outcome already), and Temporal's
    # client can abort the process while Python tears down.
    os._exit(code)


if __name__ == "__main__":
    main()
