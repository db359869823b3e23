"""All cases of `must_show`, and the agents of those that a worker serves."""

from collections.abc import Callable
from typing import Any

from tests.differential import must_show_code, must_show_people
from tests.differential.must_show import Case, world

from countersign import durable

CASES: tuple[Case, ...] = (*must_show_people.ALL, *must_show_code.ALL)

BY_NAME = {case.scenario.name: case for case in CASES}


def _factory(name: str, case: Case) -> Callable[[], Any]:
    @durable(name)
    def factory() -> Any:
        return case.scenario.build(world())

    return factory


globals().update({f"serves {i}": _factory(f"case-{i}", case) for i, case in enumerate(CASES)})
