"""Looks at a server, a namespace and a task queue, for a diagnosis. Changes nothing."""

import asyncio
import platform
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib.metadata import PackageNotFoundError, version

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest, GetSystemInfoRequest
from temporalio.client import Client
from temporalio.envconfig import ClientConfigProfile
from temporalio.service import RPCError, RPCStatusCode

from countersign.activities.search_attributes import ATTRIBUTES, listed, type_name
from countersign.agent_client.asking_sessions import sessions_check
from countersign.agent_client.builds import lost_builds, serves
from countersign.agent_client.connection import DEFAULT_ADDRESS, connect_temporal, settings_fault
from countersign.agent_client.diagnosis import (
    Check,
    Setting,
    attributes_check,
    calls_check,
    deployment_checks,
    lost_check,
    namespace_check,
    pollers_check,
)
from countersign.agent_client.errors import ClientError
from countersign.agent_client.listing import LIVE_STATUSES, listed_sessions
from countersign.agent_client.queues import AGENT_PLACE, queue_of
from countersign.agent_client.shell import temporal_command
from countersign.agent_client.translation import server_trouble
from countersign.agent_client.waiting_calls import WaitingCall, waiting_calls
from countersign.agent_client.workers import Build, polled

_RPC = timedelta(seconds=5)
_PAUSES_S = (0.5, 1.0, 2.0)
"""Before a server that limits requests is asked again."""

_MOST = 500
"""Sessions whose agents are looked at."""


def versions_check() -> Check:
    """What is installed here."""
    named = {
        "countersign": _version("countersign"),
        "temporalio": _version("temporalio"),
        "Python": platform.python_version(),
    }
    return Check("versions", "ok", ", ".join(f"{name} {number}" for name, number in named.items()))


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "(not installed as a package)"


def settings_of(given: Mapping[str, tuple[str | None, str]]) -> list[Setting]:
    """The connection's settings with who gave each, the API key and certificates only as present or not.

    Args:
        given: For "address", "namespace" and "profile": the value, and whether it came from the flag or the
            variable, as the command line was read.

    Raises:
        ClientError: If the profile can't be read.
    """
    profile_name, profile_source = given["profile"]
    try:
        both, file = (ClientConfigProfile.load(profile_name, disable_env=off) for off in (False, True))
    except (RuntimeError, ValueError, OSError) as error:
        raise ClientError(f"Temporal's settings can't be read: {settings_fault(error)}") from None
    where = f"profile {profile_name or 'default'}"
    found = [Setting("profile", profile_name, profile_source)] if profile_name else []
    for name, default in (("address", DEFAULT_ADDRESS), ("namespace", "default")):
        value, source = given[name]
        if value is None:
            value = getattr(both, name)
            source = where if value is not None else "default"
        found.append(Setting(name, value or default, source))
    if both.api_key is not None:
        found.append(Setting("API key", "set", where if both.api_key == file.api_key else "TEMPORAL_API_KEY"))
    if both.tls is not None or both.api_key is not None:
        found.append(Setting("TLS", "on", where if file.tls is not None else "TEMPORAL_TLS"))
    return found


async def examine(
    address: str | None, namespace: str | None, profile: str | None, queue: str, agents: Sequence[str] = ()
) -> list[Check]:
    """Everything about the server, the namespace and the queue; it stops where nothing can be asked any more.

    Args:
        address: Of the server; else from Temporal's settings.
        namespace: Else from Temporal's settings.
        profile: Of Temporal's settings file.
        queue: The task queue; with `{agent}` in it, that of each agent.
        agents: Their names; those that have sessions are looked at, too.
    """
    try:
        client = await connect_temporal(address, namespace, profile)
        info = await client.workflow_service.get_system_info(GetSystemInfoRequest(), timeout=_RPC)
    except (ClientError, RPCError) as error:
        advice = "start a server (countersign dev --agents MODULE brings one), or correct the address"
        return [Check("server", "failure", str(error), advice, code="no-connection")]
    target = client.service_client.config.target_host
    checks = [Check("server", "ok", f"Temporal {info.server_version} at {target}")]
    try:
        described = await client.workflow_service.describe_namespace(
            DescribeNamespaceRequest(namespace=client.namespace), timeout=_RPC
        )
    except RPCError as error:
        known = server_trouble(error, target, client.namespace)
        create = temporal_command("operator", "namespace", "create", "-n", client.namespace)
        advice = f"make it ({create}), or name another with --namespace"
        return [*checks, Check("namespace", "failure", str(known or error), advice)]
    retention = described.config.workflow_execution_retention_ttl.ToTimedelta()
    checks.append(namespace_check(client.namespace, retention))
    checks.append(await _attributes(client))
    if AGENT_PLACE not in queue:
        return checks + await _queue(client, queue)
    living = [one.agent async for one in listed_sessions(client, None, LIVE_STATUSES, limit=_MOST)]
    names = sorted({*agents, *filter(None, living)})
    if not names:
        found = f"{queue!r} stands for a queue per agent, and no agent is known here"
        checks.append(Check("task queue", "warning", found, "name the agents' modules with --agents MODULE"))
    # Side by side: a session whose worker is gone takes seconds to be given up.
    of_queues = await asyncio.gather(*(_queue(client, queue_of(queue, name)) for name in names))
    return checks + [check for found in of_queues for check in found]


async def _attributes(client: Client) -> Check:
    try:
        present = await listed(client)
    except RPCError as error:
        return Check(
            "search attributes",
            "warning",
            f"the server does not list them ({error.message})",
            "sessions may run without them; whoever runs the server can check",
        )
    wanted = {name: type_name(kind) for name, kind in ATTRIBUTES.items()}
    there = {name: type_name(kind) for name, kind in present.items()}
    return attributes_check(client.namespace, wanted, there)


async def _queue(client: Client, queue: str) -> list[Check]:
    try:
        return await _patiently(partial(_looked_at, client, queue))
    except RPCError as error:
        advice = "check what this client may do in the namespace"
        if error.status == RPCStatusCode.RESOURCE_EXHAUSTED:
            advice = "the server limits requests: ask again in a minute"
        return [Check("task queue", "failure", f"{queue!r} can't be examined: {error.message}", advice)]


async def _patiently(look: Callable[[], Awaitable[list[Check]]]) -> list[Check]:
    """Look, again after a pause if the server limits requests, as it does right after a build became current."""
    for pause_s in _PAUSES_S:
        try:
            return await look()
        except RPCError as error:
            if error.status != RPCStatusCode.RESOURCE_EXHAUSTED:
                raise
        await asyncio.sleep(pause_s)
    return await look()


async def _looked_at(client: Client, queue: str) -> list[Check]:
    """The checks of a queue.

    Raises:
        RPCError: If the server does not say something.
    """
    now = datetime.now(UTC)
    for_workflows, for_activities = await polled(client, queue), await polled(client, queue, "activity")
    checks = [pollers_check("workflows", queue, for_workflows, now)]
    checks.append(pollers_check("activities", queue, for_activities, now))
    checks += deployment_checks(client.namespace, queue, for_workflows, now)
    checks += lost_check(await lost_builds(client, queue), client.namespace, queue)
    return [*checks, await sessions_check(client, queue, for_workflows.current), *await _calls(client, queue, now)]


async def _calls(client: Client, queue: str, now: datetime) -> list[Check]:
    """For each queue on which calls of this one's agents wait, and each build there: whether anybody would get them."""
    groups: dict[tuple[str, Build | None], list[WaitingCall]] = {}
    for call in await waiting_calls(client, queue):
        groups.setdefault((call.task_queue, call.build), []).append(call)
    checks = []
    for (name, build), calls in groups.items():
        pinned_to = build if build is not None and await serves(client, build, name) else None
        tools = [call.tool for call in calls]
        polling = await polled(client, name, "activity")
        checks.append(calls_check(name, tools, calls[0].since, polling, pinned_to, now))
    return checks
