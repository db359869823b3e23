"""The composition root: settings, agents, one Temporal worker for each task queue. Nobody imports it.

python -m countersign.worker --agents my_package.my_agents
"""

import asyncio
import gc
import logging
import os
import signal
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import NoReturn

from pydantic import ValidationError
from pydantic_settings import SettingsError
from temporalio.client import Client

from countersign.activities.search_attributes import register
from countersign.agent_client.connection import connect_temporal
from countersign.agent_client.payloads import check_store, data_converter
from countersign.agent_client.workers import Build
from countersign.agent_core.deployment import AgentDeployment, load_agents
from countersign.agent_core.errors import CountersignError
from countersign.agent_core.wire import WORKER_READY
from countersign.serving.building import build_workers, crowded
from countersign.serving.builds import watching
from countersign.serving.checks import (
    check_deployment,
    check_namespace,
    not_current,
    overlong,
    unserved_tools,
    unversioned,
)
from countersign.serving.flags import settings_from
from countersign.serving.fleet_metrics import reporting
from countersign.serving.health import Health, listening
from countersign.serving.settings import WorkerSettings, faults
from countersign.serving.shares import Share, shares_of
from countersign.serving.stopping import stop_workers
from countersign.serving.telemetry import Traces, runtime_for
from countersign.workflows.metering import from_zero
from countersign.workflows.sandbox import roots_of

FAILED, USAGE_ERROR, TERMINATED = 1, 2, 143


async def serve(settings: WorkerSettings, deployments: Mapping[str, AgentDeployment]) -> None:
    """Serve agents until SIGTERM or SIGINT, then let running tools finish."""
    traces = Traces(settings)
    async with AsyncExitStack() as around:
        around.push_async_callback(traces.flush)
        health = Health()
        if settings.health_port is not None:
            port = await around.enter_async_context(listening(health, settings.health_host, settings.health_port))
            _say(f"health: http://{settings.health_host}:{port}/livez and /readyz")
        shares = shares_of(settings.task_queue, deployments, tools_only=settings.tools_only)
        runtime = runtime_for(settings)
        client = await connect_temporal(
            settings.address,
            settings.namespace,
            settings.profile,
            data_converter=data_converter(settings, worker=True),
            runtime=runtime,
            interceptors=traces.interceptors,
        )
        await check_namespace(client)
        if settings.deployment is not None:
            await check_deployment(client, settings.deployment, settings.task_queue)
        await check_store(client.data_converter)
        if not settings.tools_only:
            await _register(client)
            if runtime is not None:
                for share in shares:
                    from_zero(runtime.metric_meter, client.namespace, share.task_queue, share.deployments)
                fleet = reporting(client, runtime.metric_meter, shares, settings.fleet_metrics_s)
                await around.enter_async_context(fleet)
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        workers = build_workers(client, settings, shares)
        gc.collect()
        gc.freeze()  # what is loaded by now stays: later collections need not look at it
        for worker in workers:
            await around.enter_async_context(worker)
        health.serving(client, workers)
        stale = await _announce(client, settings, shares)
        if settings.deployment is not None:
            await around.enter_async_context(watching(client, shares, _say, stale))
        await stop.wait()
        health.drain()
        _say(f"stopping; running tools get {settings.graceful_shutdown_s:g} s to finish")
        late = await stop_workers(workers, settings.graceful_shutdown_s)
        if late is not None:
            what = f"these go on after they were cancelled, and what they did is unknown: {', '.join(late)}"
            _say(f"left, although {what if late else 'the shutdown is not over (is the server away?)'}")
            await traces.flush()
            _leave(0)


async def _register(client: Client) -> None:
    missing = await register(client)
    if missing:
        _say(
            f"search attributes missing in namespace {client.namespace}: {', '.join(missing)}; sessions go without them"
        )


async def _announce(client: Client, settings: WorkerSettings, shares: Sequence[Share]) -> Build | None:
    """Say what is served, and what looks as if it would be waited for in vain.

    Returns:
        This process's build, if it is not the current one.
    """
    agents = sorted(name for share in shares for name in share.deployments)
    queues = [share.task_queue for share in shares]
    only = f"; only their tools {', '.join(shares[0].tools())}" if settings.tools_only else ""
    _say(
        f"{WORKER_READY}{', '.join(agents)}{only}; task queue{'s' if len(queues) > 1 else ''} {', '.join(queues)}; "
        f"namespace {client.namespace} at {client.service_client.config.target_host}"
    )
    if (crowd := crowded(settings, shares)) is not None:
        _say(crowd)
    if not settings.tools_only:
        served = {name: deployment for share in shares for name, deployment in share.deployments.items()}
        for text in [*overlong(served), *await unserved_tools(client, shares)]:
            _say(text)
    if settings.deployment is None:
        for text in await unversioned(client, shares):
            _say(text)
        return None
    stale = await not_current(client, settings.deployment, tools_only=settings.tools_only)
    if stale is None:
        return None
    _say(stale)
    return Build(settings.deployment.version.deployment_name, settings.deployment.version.build_id)


def loaded(modules: Sequence[str]) -> dict[str, AgentDeployment]:
    """The agents, by name; before there is an event loop, which slow imports would block and /livez with it.

    Raises:
        CountersignError: Naming the module or agent that can't be served.
    """
    roots_of(modules)  # refuses what can't be policed before any of it is imported
    return load_agents(modules)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    """Run the worker from the command line."""
    # As the first process of a container it would not hear a signal that it has not asked for.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(TERMINATED))
    sys.path.insert(0, os.getcwd())
    try:
        settings = settings_from()
    except (ValidationError, SettingsError) as error:
        _say(f"countersign worker: {faults(error)}. See --help")
        raise SystemExit(USAGE_ERROR) from None
    logging.basicConfig(level=settings.log_level)
    code = 0
    try:
        asyncio.run(serve(settings, loaded(settings.agents)))
    except CountersignError as error:
        _say(f"countersign worker: {error}")
        code = USAGE_ERROR
    except Exception:  # a fatal error of the worker, or a bug: said in full, and left like any other end
        traceback.print_exc()
        code = FAILED
    _leave(code)


def _leave(code: int) -> NoReturn:
    """End the process without waiting for the interpreter.

    Two reasons: a tool that outlived its grace period still runs and would keep the process alive (its call is an
    unknown outcome already), and Temporal's client can abort the process while Python tears down.
    """
    sys.stdout.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
