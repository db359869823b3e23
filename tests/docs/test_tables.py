"""Tables of docs/ hold: models.md's providers and errors, hooks-and-handlers.md's events, what porting.md lacks."""

import inspect
import re
from pathlib import Path

import strands

from countersign import Agent, ScriptedModel
from countersign.activities.providers.naming import PROVIDERS
from countersign.agent_core import errors
from countersign.agent_core.hooks import events

DOCS = Path(__file__).parents[2] / "docs"


def rows(page: str, start: str, end: str) -> dict[str, str]:
    """The rows of a table between two marks: the word that begins the first cell, and the rest."""
    text = (DOCS / page).read_text().split(start, 1)[1].split(end, 1)[0]
    return dict(re.findall(r"^\| `([\w-]+)(.*) \|$", text, re.MULTILINE))


def test_every_provider_of_models_is_listed_with_its_extra_and_variables():
    """A reader knows what to install and to set."""
    listed = rows("models.md", "## By name", "## By a function")
    assert listed.keys() == PROVIDERS.keys()
    for name, provider in PROVIDERS.items():
        assert f"| `{provider.extra}` |" in listed[name]
        assert all(f"`{variable}`" in listed[name] for variable in (*provider.keys, provider.address) if variable)


def test_every_error_of_a_model_is_listed():
    """A reader knows what is retried."""
    ours = {
        name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, errors.ModelError)
    }
    listed = rows("models.md", "## What happens when a model fails", "## Your own")
    assert listed.keys() == ours | {"MaxTokensReachedException"}


def test_every_event_is_listed_with_what_may_be_set_and_who_may_ask():
    """As the classes have it."""
    listed = rows("hooks-and-handlers.md", "## A hook that asks", "## A handler")
    assert listed.keys() == {name for name in vars(events) if re.match("(Before|After|MessageAdded).*Event$", name)}
    for name, row in listed.items():
        kind = getattr(events, name)
        _, may_ask, writable = row.split("|")
        assert set(re.findall(r"`(\w+)`", writable)) == kind.writable
        assert issubclass(kind, events.InterruptibleEvent) == ("yes" in may_ask)


def test_every_argument_and_method_of_strands_agent_that_is_absent_is_listed():
    """Who ports an agent finds what is missing before a TypeError does."""
    page = (DOCS / "porting.md").read_text()
    arguments, methods = page.split("## Arguments of `Agent`")[1].split("## Methods and tool bodies")
    ours, theirs = inspect.signature(Agent).parameters, inspect.signature(strands.Agent).parameters
    assert {name for name in theirs if name not in ours} <= set(re.findall(r"\w+", arguments))
    public = {name for name in vars(strands.Agent) if re.match("[a-z]", name)} - theirs.keys()
    absent = public - set(dir(Agent(ScriptedModel(["ok"]))))
    assert absent
    assert {name for name in absent if f".{name.removesuffix('_async')}" not in methods} == set()
