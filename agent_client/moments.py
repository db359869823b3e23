"""Times as a person reads them: a moment with its distance, a duration in one unit. Pure."""

from datetime import UTC, datetime, timedelta

from countersign.agent_core.moments import moment_of
from countersign.agent_core.visible import visible


def moment(at: str | None, now: datetime) -> str:
    """A wire timestamp with its distance: "2026-01-02 03:04:05 UTC (3 h ago)"."""
    when = moment_of(at)
    if when is None:
        return visible(at or "unknown")
    return f"{when.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC ({distance(when, now)})"


def distance(when: datetime, now: datetime) -> str:
    """How far a moment is away: "in 5 min", "3 h ago"."""
    return f"in {span(when - now)}" if when > now else f"{span(now - when)} ago"


def span(duration: timedelta) -> str:
    """A duration in its largest unit that gives two or more: "3 days", "40 s"."""
    seconds = duration.total_seconds()
    for size_s, unit in ((86_400, "days"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size_s:
            return f"{seconds / size_s:.0f} {unit}"
    return f"{seconds:.0f} s"
