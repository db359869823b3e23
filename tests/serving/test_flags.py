"""What `python -m countersign.worker --help` teaches, and that the flags still say what they said."""

import re
import shlex

import pytest
from pydantic import ValidationError

from countersign.serving.flags import GROUPS, settings_from
from countersign.serving.settings import WorkerSettings, faults


@pytest.fixture
def shown(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    """The help."""
    monkeypatch.setenv("COLUMNS", "100")
    with pytest.raises(SystemExit):
        settings_from(["--help"])
    return capsys.readouterr().out


def test_each_setting_has_its_group_and_its_flag(shown):
    """A new setting can't be forgotten in the groups, and each is shown."""
    assert {name for group in GROUPS.values() for name in group} == WorkerSettings.model_fields.keys()
    for name in WorkerSettings.model_fields:
        assert f"  --{name.replace('_', '-')}" in shown


def test_the_help_is_in_words_of_people_who_type_it(shown):
    """No Python types, no "default: None"; it is called by the name that it has everywhere."""
    assert shown.startswith("usage: python -m countersign.worker --agents MODULE")
    for word in ("{str,None}", "list[str]", "default: None", "worker.py"):
        assert word not in shown


def test_the_examples_are_taken(shown, monkeypatch):
    """Each command of the help is one that a worker understands."""
    examples = shown.partition("examples:")[2].replace("\\\n", " ")
    commands = [shlex.split(line) for line in examples.splitlines() if "python -m" in line]
    assert len(commands) == 4
    for words in commands:
        flags = words[words.index("countersign.worker") + 1 :]
        with monkeypatch.context() as around:
            for word in words[: words.index("python")]:
                around.setenv(*word.split("=", 1))
            assert settings_from(flags).agents == ["my_agents"]


def test_flags_count_before_variables(monkeypatch):
    """Both say the same settings; lists by commas or by repetition, switches without a value."""
    monkeypatch.setenv("COUNTERSIGN_TASK_QUEUE", "by-variable")
    monkeypatch.setenv("COUNTERSIGN_TRACES", "true")
    settings = settings_from(["--agents", "one,two", "--agents=three", "--task-queue", "by-flag", "--no-traces"])
    assert settings.agents == ["one", "two", "three"]
    assert (settings.task_queue, settings.traces) == ("by-flag", False)


def test_an_unknown_flag_is_named(capsys):
    """Exit code 2, and what was not understood."""
    with pytest.raises(SystemExit) as left:
        settings_from(["--agents", "one", "--quiet"])
    assert left.value.code == 2
    assert re.search("unrecognized.*--quiet", capsys.readouterr().err)


def test_an_empty_variable_is_not_set(monkeypatch):
    """So charts write what nobody has filled in; but without keys nothing would be hidden."""
    for name in ("DEPLOYMENT_NAME", "BUILD_ID", "HEALTH_PORT", "METRICS_ADDRESS", "MAX_ACTIVITIES_PER_SECOND"):
        monkeypatch.setenv(f"COUNTERSIGN_{name}", "")
    settings = settings_from(["--agents", "one"])
    assert (settings.deployment, settings.health_port, settings.metrics_address) == (None, None, None)
    monkeypatch.setenv("COUNTERSIGN_ENCRYPTION_KEYS", "")
    assert settings_from(["--agents", "one"]).encryption_keys is not None


@pytest.mark.parametrize("flag", ["--graceful-shutdown-s", "--sticky-timeout-s", "--max-cached-workflows"])
@pytest.mark.parametrize("value", ["inf", "nan", "99999999999999999999"])
def test_a_number_that_nothing_can_hold_is_refused_by_its_flag(flag, value):
    """Before it reaches the engine."""
    with pytest.raises(ValidationError) as raised:
        settings_from(["--agents", "one", flag, value])
    assert faults(raised.value).startswith(f"{flag}: ")
