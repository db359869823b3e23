"""`strands.interrupt` by our name."""

from countersign.agent_core.interrupts import Interrupt, InterruptException

__all__ = ["Interrupt", "InterruptException"]
