"""The worker's command line: its flags in groups, with examples. What they mean stands in `settings.py`."""

from argparse import ArgumentParser
from collections.abc import Sequence
from inspect import cleandoc
from typing import Any

from pydantic_settings import CliApp, CliSettingsSource

from countersign.serving.settings import WorkerSettings

COMMAND = "python -m countersign.worker"

GROUPS: dict[str, dict[str, str]] = {
    "what is served": {
        "agents": "MODULE[,MODULE]",
        "task_queue": "QUEUE",
        "queue_per_agent": "",
        "tools_only": "",
        "default_deadline_s": "SECONDS",
    },
    "the connection; else as Temporal's own settings say": {
        "address": "HOST:PORT",
        "namespace": "NAME",
        "profile": "NAME",
    },
    "how much at once": {
        "max_concurrent_activities": "N",
        "max_activities_per_second": "RATE",
        "max_task_queue_activities_per_second": "RATE",
        "max_concurrent_workflow_tasks": "N",
        "max_cached_workflows": "N",
    },
    "stopping and taking over": {
        "graceful_shutdown_s": "SECONDS",
        "sticky_timeout_s": "SECONDS",
    },
    "versioned builds": {
        "deployment_name": "NAME",
        "build_id": "ID",
    },
    "what can be seen of it": {
        "health_port": "PORT",
        "health_host": "HOST",
        "metrics_address": "HOST:PORT",
        "metrics_otlp_url": "URL",
        "fleet_metrics_s": "SECONDS",
        "traces": "",
        "log_level": "DEBUG|INFO|WARNING|ERROR",
    },
    "large values and encryption; the same for clients": {
        "storage": "URL[,URL]",
        "storage_shared_from_kb": "KB",
        "storage_cache_mb": "MB",
        "encryption_keys": "FILE",
    },
}
"""The help's groups in their order; in each the settings, with what stands for the value ("" for a switch)."""

EXAMPLES = f"""\
examples:
  the agents of a module, with a server on this machine
    {COMMAND} --agents my_agents

  in production: a build of a deployment, with probes and metrics (docs/deploying.md, docs/fleet.md)
    {COMMAND} --agents my_agents --address temporal.example.com:7233 --namespace agents \\
      --deployment-name agents --build-id 2026-11-30 --health-port 8080 --metrics-address 127.0.0.1:9464

  the same by the environment
    COUNTERSIGN_AGENTS=my_agents COUNTERSIGN_HEALTH_PORT=8080 TEMPORAL_NAMESPACE=agents {COMMAND}

  only the tools of @tool(queue="payments"), where their credentials are
    {COMMAND} --agents my_agents --tools-only --task-queue payments
"""

_PLACES = {name: (title, metavar) for title, group in GROUPS.items() for name, metavar in group.items()}
_UNSAID = (" (default: None)", " (default: False)")


def settings_from(arguments: Sequence[str] | None = None) -> WorkerSettings:
    """The settings as flags and environment say.

    Args:
        arguments: The flags; those of the process if left out.

    Raises:
        ValidationError, SettingsError: If they don't fit.
        SystemExit: If a flag is unknown, or help was asked for.
    """
    groups: dict[str, Any] = {}

    def add_argument(parser: ArgumentParser, *names: str, **how: Any) -> Any:
        if not groups:
            parser.usage, parser.epilog = f"{COMMAND} --agents MODULE [flags]", EXAMPLES
            parser.description = cleandoc(WorkerSettings.__doc__ or "")
            groups.update({title: parser.add_argument_group(title) for title in GROUPS})
        title, metavar = _PLACES.get(how.get("dest", ""), ("", ""))
        if metavar and how.get("metavar"):  # a switch has none
            how["metavar"] = metavar
        for text in _UNSAID:
            how["help"] = how["help"].removesuffix(text)
        return groups.get(title, parser).add_argument(*names, **how)

    source = CliSettingsSource[Any](WorkerSettings, add_argument_method=add_argument)
    return CliApp.run(WorkerSettings, None if arguments is None else list(arguments), cli_settings_source=source)
