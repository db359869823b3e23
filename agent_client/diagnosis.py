"""What a diagnosis consists of, and the judgements on what was found. Pure: facts in, checks out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from countersign.agent_client.builds import LostBuild
from countersign.agent_client.moments import span
from countersign.agent_client.shell import how_to_promote, how_to_run_tools, how_to_start, temporal_command
from countersign.agent_client.workers import POLL_LASTS, Build, Polled, Poller

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
    longer = temporal_command("operator", "namespace", "update", "--retention", "72h", "-n", namespace)
    return Check("namespace", "warning", found, f"ended sessions vanish soon: {longer}")


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
    words = [part for name in missing for part in ("--name", name, "--type", wanted[name])]
    create = temporal_command("operator", "search-attribute", "create", "-n", namespace, *words) if missing else ""
    advice = "; ".join(filter(None, ["sessions run without them, but can't be searched by them", create]))
    return Check("search attributes", "warning", found, advice)


def pollers_check(kind: str, queue: str, found: Polled, now: datetime) -> Check:
    """Whether somebody takes the tasks of a queue.

    Args:
        kind: "workflows" or "activities".
        queue: The task queue.
        found: Who asked for its tasks lately (the server forgets them after five minutes), and its current build.
        now: The present moment.
    """
    name = f"workers for {kind}"
    start = _start(queue, found.current)
    if not found.pollers:
        return Check(name, "failure", f"none on task queue {queue!r}", start)
    latest = max(found.pollers, key=lambda poller: poller.last_seen)
    age = _age(latest, now)
    seen = f"{len(found.pollers)} seen lately on task queue {queue!r}, the last one {span(age)} ago ({latest.identity})"
    if age > POLL_LASTS:
        return Check(name, "failure", seen, f"it has gone, it seems; {start}")
    return Check(name, "ok", seen)


def _age(poller: Poller, now: datetime) -> timedelta:
    return max(now - poller.last_seen, timedelta(0))


def _start(queue: str, current: Build | None) -> str:
    return how_to_start(queue, current.deployment, current.build_id) if current else how_to_start(queue)


def calls_check(
    task_queue: str, tools: Sequence[str], since: datetime, polled: Polled, pinned_to: Build | None, now: datetime
) -> Check:
    """Calls that wait on a tool's own queue, and whether anybody is there who would get them.

    Args:
        task_queue: The tools' queue.
        tools: The tool of each call that waits.
        since: Since when the oldest waits.
        polled: Who asked for that queue's activities lately, and the build that gets those of no other.
        pinned_to: The build that alone gets these calls; None if that is up to the queue.
        now: The present moment.
    """
    count = len(tools)
    found = (
        f"{count} call{'s' if count > 1 else ''} ({', '.join(sorted(set(tools)))}) on task queue {task_queue!r}, "
        f"the oldest for {span(max(now - since, timedelta(0)))}"
    )
    alive = [one for one in polled.pollers if _age(one, now) <= POLL_LASTS]
    build = pinned_to or polled.current
    takers = alive
    if pinned_to is not None or not polled.ramping:
        takers = [one for one in alive if (Build(one.deployment, one.build_id) if one.build_id else None) == build]
    if takers:
        return Check("calls that wait", "ok", f"{found}; {len(takers)} seen polling lately")
    lacking = f"no worker of build {build.build_id!r} polls it" if build else "no worker polls it"
    if not build and alive:
        lacking = "none of the builds that poll it is current, and no worker without a version polls it"
    start = how_to_run_tools(task_queue, build.deployment, build.build_id) if build else how_to_run_tools(task_queue)
    return Check("calls that wait", "failure", f"{found}, and {lacking}", start)


def waiting_check(queue: str, running: int, waiting: int, answered: bool | None, current: Build | None = None) -> Check:
    """Sessions on the queue, and whether a worker really answers for one of them.

    Args:
        queue: The task queue.
        running: Sessions that have not ended.
        waiting: Those of them with open questions.
        answered: Whether a worker answered a question about one of them; None if none was asked.
        current: The queue's current build, if it has one.
    """
    found = f"{running} running on {queue!r}, {waiting} of them with open questions"
    if answered is not False:
        return Check("sessions", "ok", found)
    return Check(
        "sessions",
        "failure",
        f"{found}, and no worker answers for them",
        f"they are safe, their answers are kept, and they go on when a worker runs; {_start(queue, current)}",
    )


def deployment_checks(namespace: str, queue: str, found: Polled, now: datetime) -> list[Check]:
    """Whether the builds that poll a queue get its work; nothing if nobody is versioned there.

    Args:
        namespace: Of the queue.
        queue: The task queue.
        found: Who asked for its tasks lately, and its current build.
        now: The present moment.
    """
    alive = [one for one in sorted(found.pollers, key=lambda one: one.last_seen) if _age(one, now) <= POLL_LASTS]
    current = found.current
    if current is not None:
        return [_current_check(namespace, queue, current, found.pollers, alive, now)]
    unversioned = any(not one.build_id for one in alive)
    checks = []
    for name in dict.fromkeys(one.deployment for one in alive if one.build_id):
        builds = list(dict.fromkeys(one.build_id for one in alive if one.deployment == name))
        fate = "its builds get nothing, workers without a version get all" if unversioned else "nothing starts"
        what = f"{name!r} has no current version (polling: {', '.join(builds)}): {fate}"
        level: Level = "warning" if unversioned else "failure"
        checks.append(Check("deployment", level, what, how_to_promote(namespace, name, builds[-1])))
    return checks


def _current_check(
    namespace: str, queue: str, current: Build, seen: Sequence[Poller], alive: Sequence[Poller], now: datetime
) -> Check:
    """Whether a worker of the very build that gets a queue's work was seen lately."""
    what = f"{current.deployment!r}: build {current.build_id!r} is current"
    of_it = [one for one in seen if (one.deployment, one.build_id) == (current.deployment, current.build_id)]
    age = min((_age(one, now) for one in of_it), default=None)
    if age is not None and age <= POLL_LASTS:
        return Check("deployment", "ok", f"{what} and polls (last seen {span(age)} ago)")
    last = f"last seen {span(age)} ago" if age is not None else "none was seen lately"
    others = list(dict.fromkeys(one.build_id or "a worker without a version, which gets nothing here" for one in alive))
    polling = f"; polling: {', '.join(others)}" if others else ""
    advice = _start(queue, current)
    if builds := [one.build_id for one in alive if one.deployment == current.deployment]:
        advice += f"; or let another build take over: {how_to_promote(namespace, current.deployment, builds[-1])}"
    return Check("deployment", "failure", f"{what}, and no worker of it polls ({last}{polling})", advice)


def lost_check(lost: Sequence[LostBuild], namespace: str, queue: str) -> list[Check]:
    """A failure for each build that cycles wait for and nobody serves: they would wait for ever."""
    return [Check("lost build", "failure", build.words(), build.advice(namespace, queue)) for build in lost]


def overall(checks: Sequence[Check]) -> Level:
    """The worst level."""
    levels = {check.level for check in checks}
    return "failure" if "failure" in levels else "warning" if "warning" in levels else "ok"
