"""What is shipped: the wheel owns one name, and works in a project that has our rooms' names itself.

Builds from the checkout without isolation, so that no network is needed.
"""

import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parent.parent
ROOMS = ("agent_core", "workflows", "activities", "agent_client")

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


def test_wheel_lives_beside_a_projects_own_rooms(wheel: Path, tmp_path: Path) -> None:
    """A project with its own workflows/, activities/ and worker.py keeps them, and uses ours through `countersign`."""
    environment, project = tmp_path / "venv", tmp_path / "project"
    venv.create(environment, with_pip=False)
    python = environment / "bin" / "python"
    purelib = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=tmp_path)
    site_packages = Path(purelib.strip())
    run(sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", wheel, cwd=tmp_path)
    # The dependencies come from the environment that runs the tests, after the wheel. The path files over there are
    # not read for a directory added this way, so the editable install stays out of sight.
    (site_packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    for own in ("workflows/__init__.py", "activities/__init__.py", "worker.py"):
        (project / own).parent.mkdir(parents=True, exist_ok=True)
        (project / own).write_text('OWNER = "project"\n')
    (project / "main.py").write_text(PROJECT_SCRIPT)

    assert run(python, "main.py", site_packages, cwd=project).startswith("ran ")
