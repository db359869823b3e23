"""How the calls of one message run: side by side, or one after the other. `Agent(tool_executor=...)` takes one."""


class ToolExecutor:
    """Says in which order the calls of one message are decided and run.

    Attributes:
        one_by_one: True to decide, run and conclude each call before the next one is looked at.
    """

    one_by_one: bool = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class ConcurrentToolExecutor(ToolExecutor):
    """All calls are decided in order, then those that may run do so side by side. The default."""


class SequentialToolExecutor(ToolExecutor):
    """One call after the other: its hooks, its run, its After hooks, then the next one.

    A call that asks a person holds the calls behind it: their hooks are not called before it has its result. After an
    error of a hook the calls behind it don't run.
    """

    one_by_one = True
