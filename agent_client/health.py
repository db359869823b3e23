"""What a diagnosis consists of, and the judgements on what was found. Pure: facts in, checks out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from countersign.agent_client.builds import LostBuild
from countersign.agent_client.moments import span
from countersign.agent_client.shell import how_to_run_tools, how_to_start, word
from countersign.agent_client.workers import POLL_LASTS, Poller

Level = Literal["ok", "warning", "failure"]

SHORT_RETENTION = timedelta(hours=24)


@dataclass(frozen=True)
class Check:
    """One thing that was looked at.

    Attributes:
        name: What.
        level: How it stands.
        found: What was found, in words.
        advice: What to do about it; "" if nothing.
        code: Set where programs must tell a failure from others: "no-connection".
    """

    name: str
    level: Level
    found: str
    advice: str = ""
    code: str = ""


@dataclass(frozen=True)
class Setting:
    """A setting and who gave it.

    Attributes:
        name: Like "address".
        value: What holds; secrets are not in here.
        source: Like "--address", "TEMPORAL_ADDRESS", "profile dev" or "default".
    """

    name: str
    value: str
    source: str


def settings_check(settings: Sequence[Setting]) -> Check:
    """Where the connection's settings come from."""
    return Check("settings", "ok", "; ".join(f"{item.name} {item.value} ({item.source})" for item in settings))


def namespace_check(namespace: str, retention: timedelta) -> Check:
    """A namespace that is there, and how long it keeps ended sessions."""
    found = f"{namespace!r}, keeps ended sessions for {span(retention)}"
    if retention >= SHORT_RETENTION:
        return Check("namespace", "ok", found)
    return Check(
        "namespace",
        "warning",
        found,
        f"ended sessions vanish soon: temporal operator namespace update --retention 72h -n {word(namespace)}",
    )


def attributes_check(namespace: str, wanted: Mapping[str, str], present: Mapping[str, str]) -> Check:
    """The search attributes.

    Args:
        namespace: Where they should be.
        wanted: Their types by name, as `temporal operator search-attribute create --type` takes them.
        present: Those that the namespace has.
    """
    wrong = [
        f"{name} is {present[name]}, not {kind}" for name, kind in wanted.items() if present.get(name, kind) != kind
    ]
    missing = [name for name in wanted if name not in present]
    if not wrong and not missing:
        return Check("search attributes", "ok", f"all {len(wanted)} registered")
    found = "; ".join(wrong + ([f"missing: {', '.join(missing)}"] if missing else []))
    words = [f"--name {name} --type {wanted[name]}" for name in missing]
    create = f"temporal operator search-attribute create -n {word(namespace)} {' '.join(words)}" if missing else ""
    advice = "; ".join(filter(None, ["sessions run without them, but can't be searched by them", create]))
    return Check("search attributes", "warning", found, advice)


def pollers_check(kind: str, queue: str, pollers: Sequence[Poller], now: datetime) -> Check:
    """Whether somebody takes the tasks of a queue.

    Args:
        kind: "workflows" or "activities".
        queue: The task queue.
        pollers: Who asked for its tasks lately (the server forgets them after five minutes).
        now: The present moment.
    """
    name = f"workers for {kind}"
    if not pollers:
        return Check(name, "failure", f"none on task queue {queue!r}", how_to_start(queue))
    latest = max(pollers, key=lambda poller: poller.last_seen)
    age = max(now - latest.last_seen, timedelta(0))
    found = f"{len(pollers)} seen lately on task queue {queue!r}, the last one {span(age)} ago ({latest.identity})"
    if age > POLL_LASTS:
        return Check(name, "failure", found, f"it has gone, it seems; {how_to_start(queue)}")
    return Check(name, "ok", found)


def calls_check(task_queue: str, tools: Sequence[str], oldest: timedelta, pollers: Sequence[Poller]) -> Check:
    """Calls that wait on a tool's own queue, and whether anybody is there to take them.

    Args:
        task_queue: The tools' queue.
        tools: The tool of each call that waits.
        oldest: For how long the oldest waits.
        pollers: Who asked for that queue's activities lately.
    """
    count = len(tools)
    found = (
        f"{count} call{'s' if count > 1 else ''} ({', '.join(sorted(set(tools)))}) on task queue {task_queue!r}, "
        f"the oldest for {span(oldest)}"
    )
    if pollers:
        return Check("calls that wait", "ok", f"{found}; {len(pollers)} seen polling lately")
    return Check("calls that wait", "failure", f"{found}, and no worker polls it", how_to_run_tools(task_queue))


def waiting_check(queue: str, running: int, waiting: int, answered: bool | None) -> Check:
    """Sessions on the queue, and whether a worker really answers for one of them.

    Args:
        queue: The task queue.
        running: Sessions that have not ended.
        waiting: Those of them with open questions.
        answered: Whether a worker answered a question about one of them; None if none was asked.
    """
    found = f"{running} running on {queue!r}, {waiting} of them with open questions"
    if answered is not False:
        return Check("sessions", "ok", found)
    return Check(
        "sessions",
        "failure",
        f"{found}, and no worker answers for them",
        f"they are safe, their answers are kept, and they go on when a worker runs; {how_to_start(queue)}",
    )


def deployment_check(deployment: str, builds: Sequence[str], current: str) -> Check:
    """Whether the polling builds of a versioned deployment get new sessions.

    Args:
        deployment: Name of the worker deployment.
        builds: Build ids that poll.
        current: The current version's build id; "" if there is none.
    """
    polling = ", ".join(builds)
    version = f"--deployment-name {word(deployment)} --build-id {word(builds[-1])}"
    promote = f"temporal worker deployment set-current-version {version}"
    if not current:
        return Check(
            "deployment",
            "failure",
            f"{deployment!r} has no current version (polling: {polling}): nothing starts",
            promote,
        )
    if current not in builds:
        return Check(
            "deployment",
            "failure",
            f"{deployment!r}: build {current!r} is current, but only {polling} poll",
            f"start a worker of build {current}, or: {promote}",
        )
    return Check("deployment", "ok", f"{deployment!r}: build {current!r} is current and polls")


def lost_check(lost: Sequence[LostBuild], namespace: str, queue: str) -> list[Check]:
    """A warning for each build that cycles wait for and nobody serves."""
    return [Check("lost build", "warning", build.words(), build.advice(namespace, queue)) for build in lost]


def overall(checks: Sequence[Check]) -> Level:
    """The worst level."""
    levels = {check.level for check in checks}
    return "failure" if "failure" in levels else "warning" if "warning" in levels else "ok"
