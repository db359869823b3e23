"""What the package weighs: megabytes and packages of a fresh install, and how long its imports take.

Builds the wheel and installs it into a new environment from the package index, so it needs the network.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROUNDS = 7
IMPORTS = {
    "python -c pass": "pass",
    "import countersign": "import countersign",
    "from countersign import Agent": "from countersign import Agent",
    "import countersign.client": "import countersign.client",
    "countersign --help": "import sys; sys.argv = ['countersign', '--help']; "
    "from countersign.agent_client.cli import main; main()",
}
TIMED = (
    "import subprocess, sys, time; b = time.perf_counter(); "
    "subprocess.run([sys.executable, '-c', sys.argv[1]], check=True, stdout=subprocess.DEVNULL); "
    "print((time.perf_counter() - b) * 1000)"
)


def main() -> None:
    """Measure and print; `--json FILE` keeps the figures."""
    with tempfile.TemporaryDirectory() as folder:
        environment = Path(folder, "venv")
        venv.create(environment, with_pip=True)
        python = environment / "bin" / "python"
        before_mb, before = _size_mb(environment), _packages(python)
        subprocess.run([python, "-m", "pip", "install", "--quiet", ROOT], check=True, cwd=folder)
        figures = {
            "megabytes": round(_size_mb(environment) - before_mb, 1),
            "packages": len(_packages(python)) - len(before),
            "largest": _largest(environment),
            "milliseconds": {name: round(_milliseconds(python, code)) for name, code in IMPORTS.items()},
        }
    print(json.dumps(figures, indent=2))
    if "--json" in sys.argv:
        Path(sys.argv[sys.argv.index("--json") + 1]).write_text(json.dumps(figures, indent=2) + "\n")


def _size_mb(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink()) / 1e6


def _packages(python: Path) -> list[object]:
    listed = subprocess.run([python, "-m", "pip", "list", "--format=json"], capture_output=True, check=True)
    found: list[object] = json.loads(listed.stdout)
    return found


def _largest(environment: Path) -> dict[str, float]:
    [site_packages] = environment.glob("lib/python*/site-packages")
    sizes = {
        path.name: _size_mb(path)
        for path in site_packages.iterdir()
        if path.is_dir() and path.name not in ("pip", "setuptools")
    }
    return {name: round(sizes[name], 1) for name in sorted(sizes, key=lambda name: -sizes[name])[:5]}


def _milliseconds(python: Path, code: str) -> float:
    """Median over fresh interpreters, the first one left out: it compiles."""
    taken = [float(subprocess.check_output([python, "-c", TIMED, code], text=True)) for _ in range(ROUNDS + 1)]
    return statistics.median(taken[1:])


if __name__ == "__main__":
    main()
