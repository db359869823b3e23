"""The queries of docs/temporal-ui.md: a real server takes each, and other pages name only those that are there."""

import re
from pathlib import Path

import pytest
from temporalio.client import Client

from countersign.activities.search_attributes import register

DOCS = Path(__file__).parents[2] / "docs"
FIND = (DOCS / "temporal-ui.md").read_text().split("## Find sessions")[1].split("### Columns")[0]
QUERIES = dict(re.findall(r"^\| ([\w ]+) \| `(.+)` \|$", FIND, re.MULTILINE))


@pytest.mark.parametrize("name", QUERIES)
async def test_a_query_is_taken_by_the_server(client: Client, name: str):
    """No attribute is misspelt, and no operator is refused."""
    assert await register(client) == []
    assert (await client.count_workflows(QUERIES[name])).count >= 0


def test_alerts_name_queries_that_are_there():
    """An operator finds the query that an alert is about."""
    alerts = re.findall(r'\| query "([^"]+)"', (DOCS / "fleet.md").read_text())
    assert alerts and set(alerts) <= QUERIES.keys()
