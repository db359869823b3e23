"""Moments as they stand on the wire: ISO 8601, with a zone."""

from datetime import datetime


def timestamp(moment: datetime) -> str:
    """A moment as it stands on the wire: ISO 8601 in UTC."""
    return moment.isoformat(timespec="milliseconds")


def moment_of(text: object) -> datetime | None:
    """The moment that a text names; None for what is no time with a zone."""
    try:
        moment = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return moment if moment is not None and moment.tzinfo is not None else None
