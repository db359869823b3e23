"""How an extra is asked for: never by the name on PyPI, which belongs to another project."""

import re
import tomllib
from pathlib import Path

from countersign.agent_core.extras import how_to_install

ROOT = Path(__file__).parents[2]
ROOMS = ("agent_core", "workflows", "activities", "agent_client", "serving", "agent_ops", "src", "examples", "docs")
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
KINDS = (".py", ".md", ".sh", ".ts", ".go")
TEXTS = [path for room in ROOMS for path in (ROOT / room).rglob("*") if path.suffix in KINDS] + [ROOT / "README.md"]


def test_an_extra_is_installed_by_a_path():
    """What a reader copies brings this package, and the extra."""
    assert "pip install '/path/to/the/clone[s3]'" in how_to_install("s3")


def test_nothing_tells_to_install_by_name():
    """No page and no message has a command that would fetch the other project."""
    by_name = re.compile(r"pip install[^\n]*['\" ]countersign(\[|['\" ]|$)", re.MULTILINE)
    assert [path for path in TEXTS if by_name.search(path.read_text())] == []


def test_every_extra_that_is_asked_for_is_there():
    """A command from a page or a message works."""
    texts = "\n".join(path.read_text() for path in TEXTS)
    asked = re.findall(r"clone\[([a-z0-9,-]+)\]", texts) + re.findall(r"how_to_install\(['\"]([a-z0-9-]+)", texts)
    assert {name for names in asked for name in names.split(",")} <= EXTRAS.keys()
