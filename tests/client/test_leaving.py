"""How the command and a start end when something fails: what a script can rely on."""

import asyncio
import json
import signal
import subprocess
import sys
import uuid
from types import SimpleNamespace

import pytest
from temporalio.service import RPCError
from tests.client.fake_temporal import FakeTemporal, rpc_error

from countersign.client import AgentClient, ClientError

COMMAND = [sys.executable, "-c", "from countersign.agent_client.cli import main; main()"]


def test_output_that_can_not_be_written_is_no_success():
    """A full disk is said in one line."""
    with open("/dev/full", "w") as full:
        done = subprocess.run([*COMMAND, "--version"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "error: the output can't be written: No space left on device\n"


@pytest.mark.parametrize(
    ("words", "closed", "code"),
    [(["--version"], ">&-", 0), (["show", "s", "--address", "127.0.0.1:1"], "2>&-", 3)],
)
def test_a_stream_that_is_closed_changes_no_exit_code(words, closed, code):
    """Who closes it does not want to read it."""
    shell = ["sh", "-c", f'exec "$@" {closed}', "sh", *COMMAND, *words]
    done = subprocess.run(shell, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (code, "")


class Unwell(FakeTemporal):
    """A server that answers a start like this."""

    def __init__(self, error: RPCError) -> None:
        super().__init__()
        self._error = error

    async def start_workflow(self, *_: object, **given: str) -> None:
        """Fails."""
        self.sent.append(given["id"])
        raise self._error


@pytest.mark.parametrize("status", ["UNAVAILABLE", "DEADLINE_EXCEEDED", "INVALID_ARGUMENT"])
async def test_a_start_that_is_not_confirmed_names_the_id(status):
    """The session may run: it can be looked at, or started again under the same id."""
    temporal = Unwell(rpc_error(status))
    with pytest.raises(ClientError) as raised:
        await AgentClient(temporal, task_queue="q").start("janitor", "clean up")
    assert [raised.value.session_id] == temporal.sent
    assert (temporal.sent[0] in str(raised.value)) == (status != "INVALID_ARGUMENT")


async def test_ctrl_c_after_a_start_says_which_session_there_is(unserved):
    """To programs, too: one that starts again would double the work."""
    name = f"left-{uuid.uuid4().hex[:8]}"
    address = unserved.temporal.service_client.config.target_host
    words = ["start", "asker", "x", "--session-id", name, "--wait", "--json", "--address", address]
    process = await asyncio.to_thread(
        subprocess.Popen, [*COMMAND, *words, "--task-queue", unserved.task_queue], stderr=subprocess.PIPE, text=True
    )
    session = unserved.session(name)
    async with asyncio.timeout(30):
        while not await there(session):
            await asyncio.sleep(0.1)
    process.send_signal(signal.SIGINT)
    said = (await asyncio.to_thread(process.communicate, timeout=30))[1]
    assert process.returncode == 130
    assert said.rstrip().endswith(f"started {name}")
    await session.terminate("test")


async def there(session):
    """Whether the server knows a session."""
    try:
        await session.summary()
    except ClientError:
        return False
    return True


async def test_an_error_after_a_start_names_the_session(monkeypatch, unserved, shell):
    """Also one that says nothing of a session, like that of a server that went away."""

    async def away(*_: object) -> None:
        raise ClientError("the server went away")

    monkeypatch.setattr("countersign.agent_client.first_cycle.trouble_at_start", away)
    got = await shell("start", "asker", "x", "--json", "--task-queue", unserved.task_queue, code=1)
    told = SimpleNamespace(**json.loads(got.stderr)["error"])
    assert told.message == "the server went away"
    await unserved.session(told.session_id).terminate("test")
