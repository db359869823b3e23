"""docs/command.md holds: it lists the commands, options and exit codes that there are, and no others."""

import re
from pathlib import Path

import pytest
import typer

from countersign.agent_client.cli import COMMANDS, app
from countersign.agent_client.cli.chatting import HUNG_UP
from countersign.agent_client.cli.running import FAILED, INTERRUPTED, UNREACHABLE, USAGE

PAGE = (Path(__file__).parents[2] / "docs" / "command.md").read_text()
ROWS = dict(re.findall(r"^\| `(\w+)([^\n]*) \|$", PAGE, re.MULTILINE))
"""What the page says about each command, by its name."""


def options_of(name: str) -> set[str]:
    """The options that a command has."""
    return {option for parameter in typer.main.get_group(app).commands[name].params for option in parameter.opts}


def test_every_command_has_a_row():
    """A reader finds each command, in the order of `countersign --help`, and none that is gone."""
    assert list(ROWS) == list(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_options_of_a_row_exist(name: str):
    """What the row tells to type is taken by that command."""
    assert set(re.findall(r"--[a-z][a-z-]*", ROWS.get(name, ""))) <= options_of(name)


def test_options_of_the_text_exist():
    """Each is one of some command, or the program's own."""
    own = {option for parameter in typer.main.get_command(app).params for option in parameter.opts}
    known = own.union({"--help"}, *map(options_of, COMMANDS))
    assert set(re.findall(r"--[a-z][a-z-]*", PAGE)) <= known


def test_only_chat_has_no_json():
    """As the page says."""
    assert "`--json` on every command but `chat`" in PAGE
    assert [name for name in COMMANDS if "--json" not in options_of(name)] == ["chat"]


def test_every_exit_code_has_a_row():
    """Scripts rely on them."""
    listed = [int(code) for code in re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)]
    assert listed == sorted({0, FAILED, USAGE, UNREACHABLE, HUNG_UP, INTERRUPTED})
