"""docs/faq.md and docs/why.md hold, as far as what they say can be compared with the code."""

import re
import tomllib
from pathlib import Path

from countersign.activities.model import RESPONSE_LIMIT_BYTES
from countersign.agent_core.answers import ANSWER_LIMIT_BYTES
from countersign.agent_core.session.state import AUDIT_LINES
from countersign.agent_core.tools.execution import RESULT_LIMIT_BYTES
from countersign.agent_core.wire import DEADLINE_S, MAX_PROMPT_BYTES, MAX_VALUE_BYTES
from countersign.serving.settings import WorkerSettings

ROOT = Path(__file__).parents[2]
FAQ = " ".join((ROOT / "docs" / "faq.md").read_text().split())
WHY = (ROOT / "docs" / "why.md").read_text()


def test_the_engine_is_the_one_that_is_required():
    """Who asks which versions will do is told what the installer enforces."""
    dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    [required] = [line for line in dependencies if line.startswith("temporalio")]
    assert re.findall(r"`(temporalio[<>=][^`]+)`", FAQ) == [required]


def test_each_flag_exists():
    """A worker takes every flag that the page names."""
    flags = {f"--{name.replace('_', '-')}" for name in WorkerSettings.model_fields}
    named = set(re.findall(r"`(--[a-z-]+)`", FAQ))
    assert named and named <= flags


def test_times_and_sizes_are_the_codes():
    """What is larger is refused, and not before."""
    assert f"{DEADLINE_S / 86_400:g} days unless the session sets" in FAQ
    assert (
        f"One value may be {MAX_VALUE_BYTES / 1e6:g} MB, a batch of answers {ANSWER_LIMIT_BYTES:,} bytes, a prompt "
        f"{MAX_PROMPT_BYTES:,} bytes, a model's response {RESPONSE_LIMIT_BYTES:,} bytes, a tool's result "
        f"{RESULT_LIMIT_BYTES / 1e6:g} MB." in FAQ
    )
    assert f"The audit trail keeps the last {AUDIT_LINES} lines." in FAQ


def test_the_tests_that_keep_our_row_exist():
    """A reader who doubts the comparison can run our side of it."""
    named = re.findall(r"`(tests/[\w/]+\.py)`", WHY)
    assert len(named) == 3 and all((ROOT / name).is_file() for name in named)
