"""A stand-in for Temporal's client that plays a script of outcomes for updates."""

import asyncio
from types import SimpleNamespace

from temporalio.client import WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode


def lost_update(kind="AcceptedUpdateCompletedWorkflow"):
    """The run ended while the update was in it."""
    return WorkflowUpdateFailedError(ApplicationError("run ended", type=kind))


def refused_update(code):
    """The session refused the update."""
    return WorkflowUpdateFailedError(ApplicationError("no", type=code))


def rpc_error(status, words="said the server"):
    """A gRPC error of that status."""
    return RPCError(words, RPCStatusCode[status], b"")


class FakeTemporal:
    """Plays outcomes one after the other: a value to return, an error to raise, or None to hang for ever.

    Attributes:
        sent: (update, argument, id) of each request.
        reached: Set by the first request.
    """

    namespace = "default"
    service_client = SimpleNamespace(config=SimpleNamespace(target_host="fake:7233"))

    def __init__(self, *outcomes, described=None):
        self._outcomes = list(outcomes)
        self._described = described
        self.sent = []
        self.reached = asyncio.Event()

    def get_workflow_handle(self, session_id):
        """Handles of all sessions are one."""
        return self

    async def start_update(self, name, argument, *, wait_for_stage, id):
        """Takes the next outcome of the script."""
        self.sent.append((name, argument, id))
        self.reached.set()
        outcome = self._outcomes.pop(0)
        if outcome is None:
            await asyncio.Event().wait()
        if isinstance(outcome, Exception):
            raise outcome

        async def result():
            return outcome

        return SimpleNamespace(result=result)

    async def describe(self):
        """How the session stands."""
        if isinstance(self._described, Exception):
            raise self._described
        return self._described
