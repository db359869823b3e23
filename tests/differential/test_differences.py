"""Every deliberate difference is there: the reference does the one, we do the other."""

import pytest
from tests.differential.difference import Difference
from tests.differential.differences import BY_NAME, DIFFERENCES
from tests.differential.models import MODELS
from tests.differential.page import PAGE, page
from tests.differential.running import in_process


def test_names_are_unique():
    """A scenario names the very difference that it runs into."""
    assert len(BY_NAME) == len(DIFFERENCES)


@pytest.mark.filterwarnings("ignore:coroutine '_never' was never awaited")  # by the reference: that is the difference
@pytest.mark.parametrize("difference", DIFFERENCES, ids=lambda difference: difference.name)
async def test_both_sides_do_as_listed(difference: Difference):
    """What the list says of each side is what it does."""
    there = await in_process(difference.scenario, "strands", MODELS["strands"])
    here = await in_process(difference.scenario, "countersign", MODELS["countersign"])
    assert (difference.look(there), difference.look(here)) == (difference.shows_there, difference.shows_here)
    assert difference.shows_there != difference.shows_here


def test_the_page_lists_them():
    """docs/differences.md is what the list says; `python -m tests.differential.page` makes it."""
    assert PAGE.read_text() == page()


def test_reasons_are_rules_that_exist():
    """A reason that names a rule of docs/approvals.md names one that stands there."""
    rules = (PAGE.parent / "approvals.md").read_text()
    named = {item.rule for item in DIFFERENCES if item.rule[0].isupper()}
    assert {rule for rule in named if f"**{rule}" not in rules} == set()
