"""What a worker looks at before and while it begins to serve, so that a mistake is said and not waited for."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import WorkerDeploymentConfig

from countersign.agent_client.builds import current_build
from countersign.agent_client.shell import how_to_promote, how_to_run_tools
from countersign.agent_client.translation import server_trouble
from countersign.agent_client.workers import polled, pollers
from countersign.agent_core.deployment import AgentDeployment
from countersign.agent_core.shell import word
from countersign.agent_core.wire import CYCLE_OVERRUN_S
from countersign.serving.shares import Share, tools_by_queue
from countersign.workflows.cycle_effects import TOOL_QUEUE_TIMEOUT, TOOL_TIMEOUT

_RPC = timedelta(seconds=10)


async def check_namespace(client: Client) -> None:
    """Fail early and clearly if the namespace is missing or closed to us.

    Raises:
        CountersignError: Naming the address and the namespace.
    """
    request = DescribeNamespaceRequest(namespace=client.namespace)
    try:
        await client.workflow_service.describe_namespace(request, timeout=_RPC)
    except RPCError as error:
        known = server_trouble(error, client.service_client.config.target_host, client.namespace)
        if known is not None:
            raise known from error


async def not_current(client: Client, deployment: WorkerDeploymentConfig, *, tools_only: bool = False) -> str | None:
    """That a build is not the current one, and how to make it that; None if it is.

    A build that is not current gets no new sessions, and of tools only what its own cycles call; that looks like a
    worker that hangs.
    """
    name, build = deployment.version.deployment_name, deployment.version.build_id
    try:
        current = await current_build(client, name)
    except RPCError as error:
        if error.status != RPCStatusCode.NOT_FOUND:
            return None  # the server does not say; `countersign doctor` will
        current = ""  # its first worker: the server does not know the deployment yet
    if current == build:
        return None
    what = f"build {build} is not the current one of deployment {name} ({current or 'none is'}), so"
    if tools_only:
        return f"{what} only calls of that build's own cycles come to it"
    return f"{what} new sessions do not start on it; once it polls: {how_to_promote(client.namespace, name, build)}"


async def unversioned(client: Client, shares: Sequence[Share]) -> list[str]:
    """For each queue whose work goes to a build of a deployment: that a worker without a version gets none of it."""
    found = []
    for share in shares:
        try:
            current = (await polled(client, share.task_queue)).current
        except RPCError:
            continue  # the server does not say; `countersign doctor` will
        if current is not None:
            found.append(
                f"task queue {share.task_queue!r} belongs to deployment {current.deployment!r}, whose build "
                f"{current.build_id!r} is current: this worker has no version and gets no work there; start it with "
                f"--deployment-name {word(current.deployment)} --build-id BUILD, and make that build current"
            )
    return found


async def unserved_tools(client: Client, shares: Sequence[Share]) -> list[str]:
    """For each queue of tools that this process does not serve and nobody polls: which tools wait for it."""
    deployments = {name: one for share in shares for name, one in share.deployments.items()}
    mine = {share.task_queue for share in shares}
    found = []
    for queue, tools in tools_by_queue(deployments).items():
        try:
            if queue in mine or await pollers(client, queue, "activity"):
                continue
        except RPCError:
            continue  # the server does not say; whoever calls the tool will see
        found.append(
            f"no worker polls task queue {queue!r} yet, where {', '.join(tools)} runs; {how_to_run_tools(queue)}"
        )
    return found


def overlong(deployments: Mapping[str, AgentDeployment]) -> list[str]:
    """For each tool that may wait and run for longer than a cycle lasts: that its call is then cut off."""
    cycle_h = CYCLE_OVERRUN_S / 3600
    found = []
    for name, deployment in sorted(deployments.items()):
        for tool in deployment.template.tool_registry:
            waits = (tool.queue_timeout or TOOL_QUEUE_TIMEOUT) if tool.queue else timedelta(0)
            longest_s = ((tool.timeout or TOOL_TIMEOUT) + waits).total_seconds()
            if longest_s >= CYCLE_OVERRUN_S:
                found.append(
                    f"tool {tool.tool_name!r} of agent {name!r} may take {longest_s / 3600:g} h, and a cycle counts as "
                    f"stuck after {cycle_h:g} h: its call would be cut off and asked about. Start its sessions with a "
                    "longer cycle_overrun (on the wire cycle_overrun_s)"
                )
    return found
