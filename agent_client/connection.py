"""Connecting to a Temporal server from the settings that Temporal's own tools use."""

import contextlib
import os
import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from temporalio.client import Client, Interceptor
from temporalio.converter import DataConverter
from temporalio.envconfig import ClientConfigProfile
from temporalio.runtime import Runtime
from temporalio.service import RPCError

from countersign.agent_client import payloads
from countersign.agent_client.errors import ConnectionFailedError
from countersign.agent_client.shell import DEFAULT_TASK_QUEUE
from countersign.agent_client.translation import server_trouble

DEFAULT_ADDRESS = "localhost:7233"
CONNECT_TIMEOUT = timedelta(seconds=10)


def connection_settings(address: str | None, namespace: str | None, profile: str | None) -> dict[str, Any]:
    """Arguments for `Client.connect`: what is given here, else TEMPORAL_* variables, else the profile's file.

    Raises:
        ConnectionFailedError: If the profile or its file can't be read.
    """
    try:
        settings: dict[str, Any] = dict(ClientConfigProfile.load(profile).to_client_connect_config())
    except (RuntimeError, ValueError, OSError) as error:
        where = f"profile {profile!r}" if profile else "the default profile"
        raise ConnectionFailedError(
            f"{where} of Temporal's settings can't be read ({settings_fault(error)}); "
            "check --profile or TEMPORAL_CONFIG_FILE"
        ) from None
    if address:
        settings["target_host"] = address
    if namespace:
        settings["namespace"] = namespace
    settings.setdefault("target_host", DEFAULT_ADDRESS)
    return settings


def way_there(address: str | None, namespace: str | None, profile: str | None) -> list[str]:
    """Flags with which another command connects to the same place; none that it would do without, and no secret.

    Args:
        address: What this one was given, by a flag or by a variable.
        namespace: The same.
        profile: The same.
    """
    flags = ["--profile", profile] if profile and os.environ.get("TEMPORAL_PROFILE") != profile else []
    settings: dict[str, Any] = {}
    with contextlib.suppress(ConnectionFailedError):
        settings = connection_settings(None, None, profile)
    if address and _host(address) != _host(settings.get("target_host", "")):
        flags += ["--address", address]
    if namespace and namespace != settings.get("namespace", "default"):
        flags += ["--namespace", namespace]
    return flags


def _host(address: str) -> str:
    return address.replace("127.0.0.1", "localhost")


def settings_fault(error: Exception) -> str:
    """Why Temporal's settings can't be read, without the line that is to blame: an API key may stand there."""
    text = str(error)
    if "TOML" not in text:
        return text
    place = re.search(r"line \d+, column \d+", text)
    return f"the file is not valid TOML, or has a value of a wrong type: {place[0] if place else 'no line is named'}"


async def connect_temporal(
    address: str | None = None,
    namespace: str | None = None,
    profile: str | None = None,
    *,
    data_converter: DataConverter | None = None,
    runtime: Runtime | None = None,
    interceptors: Sequence[Interceptor] = (),
) -> Client:
    """A connected Temporal client.

    Args:
        address: "host:port"; else TEMPORAL_ADDRESS, the profile, or localhost:7233.
        namespace: Else TEMPORAL_NAMESPACE, the profile, or "default".
        profile: Name of a profile in Temporal's settings file; else TEMPORAL_PROFILE or "default".
        data_converter: How values travel; from the settings of `agent_client.payloads` if None.
        runtime: With metrics; the process's default one if None.
        interceptors: Of the client and the workers made with it, for instance for traces.

    Raises:
        ConnectionFailedError: If the server can't be reached, with its address.
        AccessDeniedError: If it refuses the credentials.
        PayloadSettingsError: If the settings of storage or encryption can't be used.
    """
    converter = payloads.data_converter() if data_converter is None else data_converter
    settings = connection_settings(address, namespace, profile)
    try:
        return await Client.connect(
            **settings,
            data_converter=converter,
            connect_timeout=CONNECT_TIMEOUT,
            runtime=runtime,
            interceptors=interceptors,
        )
    except RPCError as error:
        known = server_trouble(error, settings["target_host"], settings.get("namespace", "default"))
        raise known or ConnectionFailedError(_unreachable(settings, error)) from error
    except (RuntimeError, ValueError) as error:
        raise ConnectionFailedError(_unreachable(settings, error)) from error


def usual_task_queue() -> str:
    """Where sessions are started by those who name no queue: COUNTERSIGN_TASK_QUEUE, as for workers."""
    return os.environ.get("COUNTERSIGN_TASK_QUEUE") or DEFAULT_TASK_QUEUE


def _unreachable(settings: dict[str, Any], error: Exception) -> str:
    told = re.search(r'(?:message|error): "([^"]+)"', str(error))  # the innermost words of a chain of Rust errors
    cause = told[1] if told else (str(error) or type(error).__name__).splitlines()[0]
    return (
        f"can't connect to the Temporal server at {settings['target_host']} ({cause}); "
        "check that it runs there, or set --address or TEMPORAL_ADDRESS"
    )
