"""`agent.cancel()`: a wish to stop, set from anywhere, heeded by the cycle where it is safe.

The core polls it; nothing here waits. A hook that cancels on a worker does so deterministically: the agent is built
anew for each cycle, and a cycle that is cancelled ends its turn.
"""

import threading


class Cancellation:
    """Whether an invocation should stop, and what it says then.

    Attributes:
        signal: Set by `cancel()`; cleared when the invocation is over.
        external: The caller's own event, watched beside it; never set or cleared here.
        after_tools: True to stop only once the tools that were asked for have run.
        message: The words that the turn ends with; None for the usual ones.
    """

    def __init__(self) -> None:
        self.signal = threading.Event()
        self.external: threading.Event | None = None
        self.after_tools = False
        self.message: str | None = None

    def ask(self, message: str | None, after_current_tools: bool) -> None:
        """See `Agent.cancel`."""
        if message is not None:
            self.message = message
        if after_current_tools:
            self.after_tools = True
        else:
            self.signal.set()

    @property
    def now(self) -> bool:
        """True if the invocation should stop at the next safe place."""
        return self.signal.is_set() or (self.external is not None and self.external.is_set())

    @property
    def soon(self) -> bool:
        """True if it should stop once the tools have run."""
        return self.now or self.after_tools

    def words(self, usual: str) -> str:
        """What the turn ends with."""
        return self.message if self.message is not None else usual

    def begin(self, external: threading.Event | None) -> None:
        """An invocation begins; a `cancel()` that came before it counts for it."""
        self.external = external
        self.after_tools = False
        if not self.now:
            self.message = None

    def end(self) -> None:
        """The invocation is over."""
        self.signal.clear()
        self.external, self.after_tools, self.message = None, False, None
