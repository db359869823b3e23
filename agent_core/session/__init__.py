"""The session as a pure state machine: what a prompt, an answer, a deadline or a cycle's end does to it.

`state` is the one object that is carried. `turns` (cycles, and how turns end) and `machine` (what people send)
change it, with `answering` (what an answer does to questions) and `recovery` (what a failed cycle had done);
`views` says how it looks from outside.
"""

from countersign.agent_core.session.machine import Session
from countersign.agent_core.session.state import SessionState

__all__ = ["Session", "SessionState"]
