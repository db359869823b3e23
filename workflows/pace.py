"""How long the effects of one workflow worked, by the clocks of where they ran: time in queues does not count.

By the workflow's own clock, a busy worker would give each cycle a workflow of its own, and so make itself busier.
"""

from datetime import timedelta

LONGEST_STRETCH = 30
"""A workflow in which queues cost the time takes no further cycle after so many times `handover_after_s`."""


class Pace:
    """The work of the cycles that share one workflow."""

    def __init__(self) -> None:
        self._worked_s: float | None = 0.0

    def add(self, duration_s: float | None) -> None:
        """Count an effect.

        Args:
            duration_s: How long it worked; None if that is unknown, as in histories from before it was told.
        """
        if self._worked_s is not None:
            self._worked_s = None if duration_s is None else self._worked_s + duration_s

    def allows_another(self, handover_after: timedelta, lasted: timedelta) -> bool:
        """True if one more cycle may share the workflow.

        Args:
            handover_after: The session's setting.
            lasted: How long the workflow has lasted by its own clock; it alone counts if an effect's time is unknown.
        """
        if self._worked_s is None:
            return lasted < handover_after
        return timedelta(seconds=self._worked_s) < handover_after and lasted < handover_after * LONGEST_STRETCH
