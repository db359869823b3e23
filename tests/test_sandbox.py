"""Policy code can't reach the clock, chance, files, the network or the environment; all else works."""

import dataclasses
import sys
import uuid
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Worker
from temporalio.worker.workflow_sandbox import RestrictedWorkflowAccessError, SandboxRestrictions
from tests.support.probe_workflow import CALLBACK, SandboxProbe

from countersign.agent_core.errors import AgentDefinitionError
from countersign.workflows.library_watch import ForbiddenCall
from countersign.workflows.sandbox import PoliceAsleepError, explain, policed_runner, self_test

pytestmark = pytest.mark.asyncio(loop_scope="module")

FORBIDDEN = [
    ("import time", "time.time()"),
    ("from time import time", "time()"),
    ("import time", "time.time_ns()"),
    ("import time", "time.monotonic()"),
    ("import time", "time.sleep(0)"),
    ("import time", "time.localtime()"),
    ("import time", "time.gmtime()"),
    ("import time", "time.ctime()"),
    ("import time", "time.asctime()"),
    ("import time", "time.strftime('%Y')"),
    ("import time", "time.clock_gettime(time.CLOCK_REALTIME)"),
    ("import datetime", "datetime.datetime.now()"),
    ("from datetime import datetime", "datetime.now()"),
    ("from datetime import datetime", "datetime.utcnow()"),
    ("from datetime import date", "date.today()"),
    ("import random", "random.random()"),
    ("from random import choice", "choice([1, 2])"),
    ("import random", "random.Random().random()"),
    ("import random", "random.Random(None).random()"),
    ("from random import Random", "Random().random()"),
    ("import random", "random.SystemRandom().random()"),
    ("import uuid", "uuid.uuid4()"),
    ("from uuid import uuid4", "uuid4()"),
    ("import uuid", "uuid.uuid1()"),
    ("import uuid", "uuid.getnode()"),
    ("import secrets", "secrets.token_hex(4)"),
    ("from secrets import choice", "choice([1, 2])"),
    ("import os", "os.urandom(1)"),
    ("import os", "os.environ['PATH']"),
    ("import os", "os.environ.get('PATH')"),
    ("import os", "'PATH' in os.environ"),
    ("import os", "list(os.environ)"),
    ("import os", "os.getenv('PATH')"),
    ("from os import getenv", "getenv('PATH')"),
    ("import os", "os.getpid()"),
    ("import os", "os.getcwd()"),
    ("import os", "os.listdir('/')"),
    ("import os", "os.stat('/')"),
    ("import os", "os.path.exists('/')"),
    ("import os.path", "os.path.abspath('x')"),
    ("from os.path import exists", "exists('/')"),
    ("import os.path as p", "p.getmtime('/')"),
    ("", "open('/etc/hostname')"),
    ("import builtins", "builtins.open('/etc/hostname')"),
    ("import io", "io.open('/etc/hostname')"),
    ("import codecs", "codecs.open('/etc/hostname')"),
    ("from pathlib import Path", "Path('/etc/hostname').read_text()"),
    ("from pathlib import Path", "Path('/etc/hostname').open()"),
    ("from pathlib import Path", "Path('/').exists()"),
    ("from pathlib import Path", "Path.cwd()"),
    ("from pathlib import Path", "(Path('/etc') / 'hostname').read_text()"),
    ("from pathlib import Path", "list((Path('/') / 'etc').iterdir())"),
    ("import socket", "socket.socket()"),
    ("from socket import create_connection", "create_connection(('127.0.0.1', 9))"),
    ("import _socket", "_socket.socket()"),
    ("import urllib.request", "urllib.request.urlopen('http://127.0.0.1:9')"),
    ("import subprocess", "subprocess.run(['true'])"),
    ("import sqlite3", "sqlite3.connect(':memory:')"),
    ("import tempfile", "tempfile.mkdtemp()"),
    ("import asyncio", "asyncio.to_thread(int)"),
    ("import threading", "threading.Thread(target=int).start()"),
    ("from concurrent.futures import ThreadPoolExecutor", "ThreadPoolExecutor()"),
    ("import importlib", "importlib.import_module('time').time()"),
    ("import sys", "sys.modules['time'].time()"),
    ("import sys", "sys.modules['random'].random()"),
    ("", "__import__('time').time()"),
    ("from outside_library import read_file", "read_file()"),
    ("import asyncio, outside_library", "asyncio.gather(outside_library.read_file_soon())"),
]
"""An import at the top of a module, and what must raise in a hook of that module."""

ALLOWED = [
    ("import datetime", "datetime.timedelta(days=1).total_seconds()", 86400.0),
    ("from datetime import datetime", "datetime(2026, 1, 2).isoformat()", "2026-01-02T00:00:00"),
    ("from datetime import datetime", "isinstance(datetime.fromisoformat('2026-01-02'), datetime)", True),
    ("from datetime import UTC, datetime", "datetime.fromtimestamp(0, UTC).year", 1970),
    ("from datetime import date", "date(2026, 1, 2).weekday()", 4),
    ("from zoneinfo import ZoneInfo", "ZoneInfo('UTC').key", "UTC"),
    ("import time", "time.struct_time((2026, 1, 2, 0, 0, 0, 4, 2, 0)).tm_year", 2026),
    ("import time", "time.strftime('%Y', (2026, 1, 2, 0, 0, 0, 4, 2, 0))", "2026"),
    ("import time", "time.asctime((2026, 1, 2, 0, 0, 0, 4, 2, 0))[:3]", "Fri"),
    ("from pathlib import Path", "str(Path('a') / 'b.txt')", "a/b.txt"),
    ("from pathlib import Path", "Path('a/b.txt').suffix", ".txt"),
    ("import os", "os.path.join('a', 'b')", "a/b"),
    ("from os.path import basename", "basename('a/b')", "b"),
    ("import os", "os.sep", "/"),
    ("import random", "random.Random(7).randrange(10)", 5),
    ("from random import Random", "isinstance(Random(7), Random)", True),
    ("import uuid", "str(uuid.UUID(int=1))[-3:]", "001"),
    ("import uuid", "uuid.uuid5(uuid.NAMESPACE_DNS, 'a').version", 5),
    ("import secrets", "secrets.compare_digest('a', 'a')", True),
    ("import hashlib", "hashlib.sha256(b'a').hexdigest()[:4]", "ca97"),
    ("import json, re", "json.dumps(re.findall('a.', 'abac'))", '["ab", "ac"]'),
    ("import logging", "logging.getLogger('policy').warning('seen')", None),
    ("import warnings", "warnings.warn('seen')", None),
    ("import traceback", "''.join(traceback.format_stack())[:6]", "  File"),
    ("import asyncio", "asyncio.sleep(0.001, 'slept')", "slept"),
    ("import os\nREGION = os.environ.get('NO_SUCH_VARIABLE', 'eu')", "REGION", "eu"),
    ("import outside_library", "outside_library.double(2)", 4),
    ("", "__import__('colorsys').rgb_to_hsv(0, 0, 0)[2]", 0),
    (
        "from datetime import datetime\nfrom pydantic import BaseModel\nclass M(BaseModel):\n    at: datetime",
        "M.model_validate({'at': '2026-01-02T00:00:00'}).at.year",
        2026,
    ),
    (
        "from dataclasses import dataclass\nfrom pathlib import Path\n@dataclass\nclass D:\n    p: Path = Path('x')",
        "str(D().p)",
        "x",
    ),
]
"""An import at the top of a module, what a hook may do with it, and the result."""

OUTSIDE = """
import io

def read_file():
    with io.open("/etc/hostname") as file:  # not the builtin, which the sandbox replaces for libraries too
        return file.read()

async def read_file_soon():
    return read_file()

def double(number):
    return 2 * number
"""


@dataclass
class Bench:
    """A folder of policed packages, a library that passes through, and a server."""

    folder: Path
    client: Client
    queue: str = "sandbox-tests"

    async def call(self, module: str, function: str, *, guarded: bool = True, queue: str | None = None) -> Any:
        """What a hook gets when it calls this function."""
        return await self.client.execute_workflow(
            "SandboxProbe",
            args=[module, function, guarded],
            id=f"probe-{uuid.uuid4()}",
            task_queue=queue or self.queue,
            execution_timeout=timedelta(seconds=60),  # a wedged task fails the test
        )


def package(folder: Path, name: str, **modules: str) -> str:
    """Write a package."""
    (folder / name).mkdir()
    for module, source in {"__init__": "", **modules}.items():
        (folder / name / f"{module}.py").write_text(source)
    return name


def functions(cases: list[Any]) -> str:
    """A module with a function `call_<n>` for each case; its imports stand at the top, in a class of its own."""
    parts = []
    for number, (top, expression, *_) in enumerate(cases):
        names = f"def _top_{number}():\n" + "".join(f"    {line}\n" for line in (top or "pass").splitlines())
        parts.append(f"{names}    return lambda: {expression}\ncall_{number} = _top_{number}()\n")
    return "\n".join(parts)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder on the path, for packages of the tests."""
    path = tmp_path_factory.mktemp("policed")
    (path / "outside_library.py").write_text(OUTSIDE)
    (path / "lazy_library.py").write_text("import time, os\nVALUE = 3 if time.time() and os.getpid() else 0\n")
    sys.path.insert(0, str(path))
    yield path
    sys.path.remove(str(path))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bench(temporal_server: str, folder: Path) -> AsyncIterator[Bench]:
    """A worker that polices a package with an agent module and a helper module beside it."""
    package(
        folder, "shop",
        agents="from shop import helpers\nfrom shop.helpers import *\n" + functions(FORBIDDEN) + STATE,
        helpers=functions(FORBIDDEN), allowed=functions(ALLOWED), broken="x = (",
    )  # fmt: skip
    package(folder, "bare", agents=BARE)
    client = await Client.connect(temporal_server, data_converter=pydantic_data_converter)
    async with worker(client, "sandbox-tests", ["shop.agents", "bare.agents"]):
        yield Bench(folder, client)


BARE = """
import importlib, sys
def by_importlib():
    return importlib.import_module("time").time()
def by_sys_modules():
    return sys.modules["random"].random()
def lazily():
    import lazy_library
    return lazy_library.VALUE
def broken():
    import shop.broken
"""
"""Uses modules that no import statement of the package names."""

STATE = """
seen = []
def count():
    seen.append(1)
    return len(seen)
"""


def worker(client: Client, queue: str, modules: list[str]) -> Worker:
    """A worker that serves the probe with these modules policed."""
    return Worker(client, task_queue=queue, workflows=[SandboxProbe], workflow_runner=policed_runner(modules))


def title(case: tuple[Any, ...]) -> str:
    """A readable test id."""
    return f"{case[1]} ({case[0].splitlines()[0] if case[0] else 'no import'})"


@pytest.mark.parametrize("module", ["shop.agents", "shop.helpers"])
@pytest.mark.parametrize("number", range(len(FORBIDDEN)), ids=[title(case) for case in FORBIDDEN])
async def test_forbidden_calls_raise_and_say_the_way_out(bench: Bench, module: str, number: int) -> None:
    """What differs from run to run raises in a hook, from the agent module and from a helper beside it."""
    result = await bench.call(module, f"call_{number}")
    assert result.get("error") == "PolicyViolationError", result
    assert CALLBACK in result["text"] and "@step" in result["text"]


@pytest.mark.parametrize("number", range(len(ALLOWED)), ids=[title(case) for case in ALLOWED])
async def test_harmless_uses_of_the_same_modules_work(bench: Bench, number: int) -> None:
    """Policy code may import these modules and use what is the same in every run."""
    assert await bench.call("shop.allowed", f"call_{number}") == {"value": ALLOWED[number][2]}


BY_THE_SANDBOX_ALONE = [
    "time.time()", "datetime.now()", "random.random()", "uuid.uuid4()", "secrets.token_hex(4)", "os.urandom(1)",
    "os.environ['PATH']", "open('/etc/hostname')", "Path('/etc/hostname').read_text()", "socket.socket()",
    "subprocess.run(['true'])", "os.stat('/')", "threading.Thread(target=int).start()",
]  # fmt: skip


@pytest.mark.parametrize("expression", BY_THE_SANDBOX_ALONE)
async def test_the_sandbox_catches_policy_code_without_the_audit_hook(bench: Bench, expression: str) -> None:
    """What policy code calls itself is caught by the sandbox; the audit hook is for libraries."""
    number = next(n for n, case in enumerate(FORBIDDEN) if case[1] == expression)
    result = await bench.call("shop.agents", f"call_{number}", guarded=False)
    assert result.get("error") == "RestrictedWorkflowAccessError", result


async def test_a_library_that_opens_a_file_is_caught_by_the_audit_hook_alone(bench: Bench) -> None:
    """A library that passes through is beyond the sandbox; only while a callback is watched it is caught."""
    number = next(n for n, case in enumerate(FORBIDDEN) if case[1] == "read_file()")
    assert "value" in await bench.call("shop.agents", f"call_{number}", guarded=False)
    assert "called open" in (await bench.call("shop.agents", f"call_{number}"))["text"]


@pytest.mark.parametrize("function", ["by_importlib", "by_sys_modules"])
async def test_modules_found_without_an_import_statement_are_restricted_too(bench: Bench, function: str) -> None:
    """The first way to a module may be sys.modules."""
    assert (await bench.call("bare.agents", function)).get("error") == "PolicyViolationError"


async def test_a_library_first_imported_in_a_hook_loads_as_usual(bench: Bench) -> None:
    """A library may read the clock while it loads; that must not wedge the cycle that needs it first."""
    assert await bench.call("bare.agents", "lazily") == {"value": 3}


async def test_a_file_that_cannot_be_compiled_is_reported_by_who_imports_it(bench: Bench) -> None:
    """A broken file beside the agents stops neither the worker nor the agents that leave it alone."""
    assert (await bench.call("bare.agents", "broken"))["error"] == "SyntaxError"


async def test_runs_share_no_module_state(bench: Bench) -> None:
    """A list at the top of an agent module starts empty in every run."""
    assert [await bench.call("shop.agents", "count") for _ in range(2)] == [{"value": 1}, {"value": 1}]


async def test_an_edit_under_a_running_worker_counts_from_the_next_start(bench: Bench) -> None:
    """Policy changes by a deployment and not by a saved file; helper modules included."""
    package(
        bench.folder, "rules", agents="from rules import limits\ndef limit(): return limits.LIMIT\n", limits="LIMIT = 1"
    )
    async with worker(bench.client, "edited", ["rules.agents"]):
        (bench.folder / "rules" / "limits.py").write_text("LIMIT = 2222")
        (bench.folder / "rules" / "agents.py").write_text("def limit(): return 3333\n")
        assert await bench.call("rules.agents", "limit", queue="edited") == {"value": 1}
    (bench.folder / "rules" / "agents.py").write_text("from rules import limits\ndef limit(): return limits.LIMIT\n")
    async with worker(bench.client, "edited", ["rules.agents"]):
        assert await bench.call("rules.agents", "limit", queue="edited") == {"value": 2222}


async def test_the_self_test_refuses_a_root_that_passes_through(bench: Bench) -> None:
    """A worker whose police sleeps must not serve; the error names the package."""
    restrictions = SandboxRestrictions.default.with_passthrough_modules("shop")
    with pytest.raises(PoliceAsleepError, match="shop"):
        self_test("shop", restrictions)


async def test_the_self_test_refuses_an_open_clock(bench: Bench) -> None:
    """Policed but unrestricted is asleep as well."""
    default = policed_runner(["shop.agents"]).restrictions
    members = default.invalid_module_members.with_child_unrestricted("time")
    with pytest.raises(PoliceAsleepError, match="shop"):
        self_test("shop", dataclasses.replace(default, invalid_module_members=members))


@pytest.mark.parametrize("module", ["countersign.agents", "json.agents", "temporalio.x", "pydantic"])
async def test_roots_that_everybody_uses_are_refused(module: str) -> None:
    """Policing Python, Temporal or Countersign itself would break all agents."""
    with pytest.raises(AgentDefinitionError, match="package of your own"):
        policed_runner([module])


@pytest.mark.parametrize(
    ("name", "source", "said"),
    [
        ("clockwork", "import time\nSTARTED = time.time()\n", "time.time"),
        ("dice", "import uuid\nRUN = uuid.uuid4()\n", "uuid.uuid4"),
        ("typo", "import no_such_module\n", "no_such_module"),
    ],
)
async def test_a_module_that_no_cycle_could_load_is_refused_at_start(
    folder: Path, name: str, source: str, said: str
) -> None:
    """Each cycle loads the module anew: the clock at its top would differ in every replay."""
    package(folder, name, agents=source)
    with pytest.raises(AgentDefinitionError, match=f"{name}.agents.*{said}"):
        policed_runner([f"{name}.agents"])


REACHES_OUT = """
from pathlib import Path

from countersign import Agent, ScriptedModel, durable

{top}

@durable("reaching")
def reaching():
    {body}
    return Agent(ScriptedModel(["ok"]))
"""


@pytest.mark.parametrize(
    ("name", "top", "body", "said"),
    [
        ("reaching_factory", "", "Path('/etc/hostname').read_text()", "the factory of agent 'reaching' called"),
        ("reaching_library", "import linecheck", "linecheck.first()", "the factory of agent 'reaching' called open"),
        ("reaching_top", "import linecheck\nlinecheck.first()", "", "the top of agent module 'reaching_top.agents'"),
    ],
)
async def test_an_agent_that_no_cycle_could_build_is_refused_at_start(
    folder: Path, name: str, top: str, body: str, said: str
) -> None:
    """A vendor's model that opens files when it is made stops the worker, with the way out, and not each session."""
    (folder / "linecheck.py").write_text("def first(): return open('/etc/hostname').readline()\n")
    package(folder, name, agents=REACHES_OUT.format(top=top, body=body))
    with pytest.raises(AgentDefinitionError, match=f"{said}.*a function that returns it"):
        policed_runner([f"{name}.agents"])


async def test_executors_of_the_process_stay_real(bench: Bench) -> None:
    """Python keeps lazily loaded executors in a module; a proxy kept there would break every worker thread."""
    import concurrent.futures

    assert isinstance(concurrent.futures.ThreadPoolExecutor, type)
    assert type(concurrent.futures.ThreadPoolExecutor) is type


def violation_inside_another() -> BaseException:
    """A forbidden call behind an error of the hook's own."""
    try:
        try:
            raise ForbiddenCall("socket.connect")
        except ForbiddenCall as error:
            raise RuntimeError("the lookup failed") from error
    except RuntimeError as error:
        return error


async def test_explain_names_callback_call_and_way_out() -> None:
    """People read who did what, and what to do instead; other errors are none of its business."""
    text = explain(RestrictedWorkflowAccessError("time.time.__call__"), "hook ApprovalHook.approve")
    assert text is not None
    assert text.startswith("hook ApprovalHook.approve called time.time, ")
    assert "@step" in text and "await" in text
    assert "socket.connect" in (explain(violation_inside_another(), "x") or "")
    assert explain(ValueError("no"), "x") is None
