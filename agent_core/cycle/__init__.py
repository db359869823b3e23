"""One agent-loop cycle as a coroutine over the `Effects` port: model, hooks, questions, tools.

`run` drives it; `model_phase` and `tool_phase` are its halves; `calls` takes each call of a
`batch` to its result; `decider` says for one call whether it runs, is refused or asks;
`callbacks` is the only place that calls user code.
"""

from countersign.agent_core.cycle.run import CycleEnd, run_cycle

__all__ = ["CycleEnd", "run_cycle"]
