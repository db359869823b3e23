"""How long the effects of one workflow worked, by the clocks of where they ran: time in queues does not count.

By the workflow's own clock, a busy worker would give each cycle a workflow of its own, and so make itself busier
(docs/decisions/0009). All that is read here stands in the history, so a replay decides the same.
"""

import math

LONGEST_STRETCH = 30
"""A workflow in which queues cost the time takes no further cycle after so many times `handover_after_s`."""


class Pace:
    """The work of the cycles that share one workflow.

    Where not every effect has told how long it worked, the workflow's own clock decides alone.
    """

    def __init__(self) -> None:
        self._worked_s = 0.0
        self._told = False
        self._unknown = False

    def add(self, duration_s: float | None) -> None:
        """Count an effect that was timed where it ran.

        Args:
            duration_s: How long it worked; None if that is unknown, as in histories from before it was told. What no
                clock says (negative, not a number, infinite) is unknown as well: it comes from another worker.
        """
        if duration_s is None or not math.isfinite(duration_s) or duration_s < 0:
            self._unknown = True
        else:
            self._told = True
            self._worked_s += duration_s

    def add_step(self, lasted_s: float) -> None:
        """Count a step: it returns a value and no duration, so this is the workflow's time, queues included."""
        self._worked_s += lasted_s

    def allows_another(self, handover_after_s: float, lasted_s: float) -> bool:
        """True if one more cycle may share the workflow.

        Args:
            handover_after_s: The session's setting; a client may set any number from 0.
            lasted_s: How long the workflow has lasted by its own clock.
        """
        if self._unknown or not self._told:
            return lasted_s < handover_after_s
        return self._worked_s < handover_after_s and lasted_s < handover_after_s * LONGEST_STRETCH
