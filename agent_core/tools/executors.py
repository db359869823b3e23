"""How the calls of one message run: side by side, or one after the other. `Agent(tool_executor=...)` takes one."""

from countersign.agent_core.errors import AgentDefinitionError


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


def checked_executor(given: ToolExecutor | None, agent: str) -> ToolExecutor:
    """The executor that an agent was given, or else the ordinary one.

    Raises:
        AgentDefinitionError: If it is none.
    """
    if given is None:
        return ConcurrentToolExecutor()
    if not isinstance(given, ToolExecutor):
        raise AgentDefinitionError(
            f"agent {agent!r}: tool_executor must be a SequentialToolExecutor() or a ConcurrentToolExecutor() of "
            f"countersign.tools.executors, not {given!r}"
        )
    return given
