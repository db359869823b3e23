"""The commands that operators are told to type exist, with their options."""

import re
from pathlib import Path

import pytest
from tests.docs.test_command_page import options_of

from countersign.agent_client.cli import COMMANDS

DOCS = Path(__file__).parents[2] / "docs"
LINE = re.compile(r"(?:^|`|&& )countersign (?!worker ready)([a-z]+)((?: [^`\n#]*)?)", re.MULTILINE)


@pytest.mark.parametrize("page", ["runbook.md", "upgrading.md", "deploying.md", "fleet.md"])
def test_commands_and_options_exist(page: str):
    """Whoever is woken at night can paste them."""
    lines = LINE.findall((DOCS / page).read_text())
    assert lines
    for name, rest in lines:
        assert name in COMMANDS
        assert set(re.findall(r"(?<= )--[a-z][a-z-]*", rest)) <= options_of(name), (name, rest)
