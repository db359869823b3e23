"""The floor: a bare Temporal workflow that does an agent's two activities a cycle and nothing else.

It keeps no conversation and has no hooks; it asks by waiting for a signal. It runs in Temporal's sandbox, like any
workflow.

python -m benchmarks.floor --address HOST:PORT
"""

from datetime import timedelta

from temporalio import activity, workflow

with workflow.unsafe.imports_passed_through():
    from benchmarks.marks import mark
    from benchmarks.serving import serve
    from benchmarks.work import next_call

TASK_QUEUE = "bench-floor"
TIMEOUT = timedelta(seconds=30)


@activity.defn
async def model(said: str, done: int) -> str | None:
    """Stand for a model call: the tool to call, or None at the end."""
    return next_call(said, done)


@activity.defn
async def count(number: int) -> int:
    """Stand for a tool call."""
    return number + 1


@activity.defn
async def guarded(number: int) -> int:
    """Stand for a tool call that a person approved."""
    mark()
    return number + 1


@workflow.defn
class Floor:
    """As many cycles of two activities as it is told, and one more model call, as at the end of a turn."""

    def __init__(self) -> None:
        self._asks = False
        self._approved = False

    @workflow.signal
    def approve(self) -> None:
        """Go on."""
        self._approved = True

    @workflow.query
    def asks(self) -> bool:
        """True while it waits for an approval."""
        return self._asks and not self._approved

    @workflow.run
    async def run(self, said: str) -> int:
        """Do what the prompt says; returns the number of cycles."""
        done = 0
        while True:
            tool = await workflow.execute_activity(model, args=[said, done], start_to_close_timeout=TIMEOUT)
            if tool is None:
                return done
            if tool == "guarded":
                self._asks = True
                await workflow.wait_condition(lambda: self._approved)
            await workflow.execute_activity(tool, done, start_to_close_timeout=TIMEOUT)
            done += 1


@workflow.defn
class Hops:
    """What else a session waits for on the server: new runs of a workflow, and timers."""

    @workflow.run
    async def run(self, runs: int, timers: int) -> None:
        """Sleep so many times for 20 ms; then continue as new until so many runs are over."""
        for _ in range(timers):
            await workflow.sleep(timedelta(milliseconds=20))
        if runs > 1:
            workflow.continue_as_new(args=[runs - 1, 0])


if __name__ == "__main__":
    serve(TASK_QUEUE, [Floor, Hops], [model, count, guarded])
