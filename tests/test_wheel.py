"""What is shipped: the wheel owns one name, and works in a project that has our rooms' names itself.

Builds from the checkout without isolation, so that no network is needed.
"""

import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import time
import uuid
import venv
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

CHECKOUT = Path(__file__).resolve().parent.parent
ROOMS = ("agent_core", "workflows", "activities", "agent_client", "agent_ops", "serving")

AGENT = '''
import worker
from countersign import Agent, ScriptedModel, durable, tool
from countersign.models import calls
from countersign.vended_interventions.hitl import HumanInTheLoop


@tool
def send_money(to: str, amount: int) -> str:
    """Send money."""
    return f"sent {amount} to {to}, from {worker.OWNER}"


@durable("payments")
def payments() -> Agent:
    """Pays."""
    model = ScriptedModel([calls(("send_money", {"to": "Ada", "amount": 90})), "Paid."])
    return Agent(model, tools=[send_money], interventions=[HumanInTheLoop()])
'''

# Runs in the other project, with the installed wheel. Each of that project's own modules holds OWNER = "project".
PROJECT_SCRIPT = '''
import sys
from pathlib import Path

import activities
import countersign
import worker
import workflows

site_packages = Path(sys.argv[1]).resolve()
assert Path(countersign.__file__).resolve().is_relative_to(site_packages), countersign.__file__
assert [module.OWNER for module in (activities, worker, workflows)] == ["project"] * 3

import countersign.activities
import countersign.workflows

assert countersign.workflows is not workflows
assert Path(countersign.workflows.__file__).resolve().is_relative_to(site_packages)

from countersign import Agent, ScriptedModel, tool
from countersign.models import calls
from countersign.vended_interventions.hitl import HumanInTheLoop

deleted = []


@tool
def delete(path: str) -> str:
    """Delete a file."""
    deleted.append(path)
    return "deleted"


model = ScriptedModel([calls(("delete", {"path": "a"})), "done"])
agent = Agent(model=model, tools=[delete], interventions=[HumanInTheLoop()])
result = agent("delete a")
assert result.stop_reason == "interrupt" and deleted == []
answer = {"interruptResponse": {"interruptId": result.interrupts[0].id, "response": "yes"}}
assert agent([answer]).stop_reason == "end_turn"
assert deleted == ["a"]

print("ran", countersign.__version__)
'''


def run(*command: str | Path, cwd: Path) -> str:
    """Returns what the command printed; fails the test with all of its output if it fails."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=cwd, env=env, text=True, capture_output=True, check=False, timeout=120)
    assert done.returncode == 0, f"{command} failed:\n{done.stdout}\n{done.stderr}"
    return done.stdout


def names_in(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, as `pip install` of the checkout would build it."""
    out = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w", out, CHECKOUT, cwd=out)
    (built,) = out.glob("*.whl")
    return built


def test_wheel_owns_one_top_level_name(wheel: Path) -> None:
    """Nothing but `countersign` (and its metadata) lands in site-packages."""
    top_level = {name.split("/")[0] for name in names_in(wheel)}

    assert {name for name in top_level if not name.endswith(".dist-info")} == {"countersign"}


def test_wheel_holds_the_rooms(wheel: Path) -> None:
    """Every Python file of every room is in the wheel, below the package."""
    in_checkout = {path.relative_to(CHECKOUT).as_posix() for room in ROOMS for path in (CHECKOUT / room).rglob("*.py")}

    assert {f"countersign/{path}" for path in in_checkout | {"worker.py"}} <= names_in(wheel)
    assert "countersign/py.typed" in names_in(wheel)


def test_sdist_builds_into_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    """Whoever builds from the sdist gets the files of the wheel, and no links."""
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", tmp_path, CHECKOUT, cwd=tmp_path)

    (from_sdist,) = tmp_path.glob("*.whl")
    assert names_in(from_sdist) == names_in(wheel)
    (sdist,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        assert [member.name for member in archive if not member.isfile()] == []


@dataclass(frozen=True)
class Project:
    """A project of somebody else's, with rooms of the same names, and the wheel in its environment."""

    folder: Path
    bin: Path
    site_packages: Path


@pytest.fixture
def project(wheel: Path, tmp_path: Path) -> Project:
    """See `Project`."""
    environment, folder = tmp_path / "venv", tmp_path / "project"
    venv.create(environment, with_pip=False)
    python = environment / "bin" / "python"
    purelib = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=tmp_path)
    site_packages = Path(purelib.strip())
    run(sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", wheel, cwd=tmp_path)
    # The dependencies come from the environment that runs the tests, after the wheel. The path files over there are
    # not read for a directory added this way, so the editable install stays out of sight.
    (site_packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    for own in ("workflows/__init__.py", "activities/__init__.py", "worker.py"):
        (folder / own).parent.mkdir(parents=True, exist_ok=True)
        (folder / own).write_text('OWNER = "project"\n')
    return Project(folder, environment / "bin", site_packages)


def test_wheel_lives_beside_a_projects_own_rooms(project: Project) -> None:
    """A project with its own workflows/, activities/ and worker.py keeps them, and uses ours through `countersign`."""
    (project.folder / "main.py").write_text(PROJECT_SCRIPT)

    assert run(project.bin / "python", "main.py", project.site_packages, cwd=project.folder).startswith("ran ")


def test_an_agent_runs_durably_from_the_wheel(project: Project, temporal_server: str) -> None:
    """The installed worker serves the project's agent, and the installed command starts and answers it."""
    (project.folder / "payments.py").write_text(AGENT)
    queue, session = f"wheel-{uuid.uuid4().hex[:8]}", f"pay-{uuid.uuid4().hex[:8]}"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"TEMPORAL_ADDRESS": temporal_server, "COUNTERSIGN_TASK_QUEUE": queue}

    def countersign(*words: str) -> str:
        done = subprocess.run(
            [project.bin / "countersign", *words], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    with (project.folder / "worker.log").open("wb") as log:
        worker = subprocess.Popen(
            [project.bin / "python", "-m", "countersign.worker", "--agents", "payments"],
            cwd=project.folder,
            env=environment,
            stderr=log,
        )
    try:
        shown = countersign("start", "payments", "Pay Ada", "--session-id", session, "--wait")
        assert "will run send_money" in shown
        countersign("approve", session)
        [result] = [
            block["toolResult"]
            for message in json.loads(_until_closed(countersign, session))["transcript"]
            for block in message["content"]
            if "toolResult" in block
        ]
        assert result["content"] == [{"text": "sent 90 to Ada, from project"}]
    finally:
        worker.kill()
        worker.wait()


def _until_closed(countersign: Callable[..., str], session: str) -> str:
    for _ in range(100):
        shown = countersign("show", session, "--json")
        if json.loads(shown)["status"]["status"] == "closed":
            return shown
        time.sleep(0.1)
    raise AssertionError(shown)


def test_the_base_install_brings_little() -> None:
    """temporalio, pydantic, anyio, the settings and the command; a new dependency has to be put here first."""
    brought: set[str] = set()

    def walk(name: str, extras: frozenset[str]) -> None:
        for line in requires(name) or []:
            needed = Requirement(line)
            wanted = needed.marker is None or any(needed.marker.evaluate({"extra": e}) for e in extras or {""})
            if wanted and canonicalize_name(needed.name) not in brought:
                brought.add(canonicalize_name(needed.name))
                walk(needed.name, frozenset(needed.extras))

    walk("countersign", frozenset())
    engine = {"temporalio", "nexus-rpc", "protobuf", "types-protobuf"}
    values = {"pydantic", "pydantic-core", "annotated-types", "typing-extensions", "typing-inspection"}
    rest = {"anyio", "idna", "pydantic-settings", "python-dotenv", "prompt-toolkit", "wcwidth"}
    command = {"typer", "click", "shellingham", "annotated-doc", "rich", "pygments", "markdown-it-py", "mdurl"}
    assert brought <= engine | values | rest | command
