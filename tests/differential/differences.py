"""Every deliberate difference from strands-agents 1.62, in one list: `DIFFERENCES`.

Each has a scenario, what the reference shows of it and what we show. docs/differences.md is made from the list
(`python -m tests.differential.page`); a scenario elsewhere that runs into one names it in `Scenario.known`.
"""

from tests.differential import (
    differences_answering,
    differences_asking,
    differences_defining,
    differences_directing,
    differences_failing,
    differences_output,
    differences_running,
)
from tests.differential.difference import Difference

DIFFERENCES: tuple[Difference, ...] = (
    *differences_asking.FOUND,
    *differences_answering.FOUND,
    *differences_running.FOUND,
    *differences_failing.FOUND,
    *differences_directing.FOUND,
    *differences_output.FOUND,
    *differences_defining.FOUND,
)

BY_NAME = {difference.name: difference for difference in DIFFERENCES}
