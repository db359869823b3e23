"""`countersign doctor` against a real server, and its judgements on what was found."""

import asyncio
import json
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from temporalio.api.workflowservice.v1 import RegisterNamespaceRequest
from temporalio.service import RPCError, RPCStatusCode
from tests.support.fake_namespace import FakeNamespace
from typer.testing import CliRunner

from countersign.agent_client import examining
from countersign.agent_client.builds import LostBuild
from countersign.agent_client.cli import app
from countersign.agent_client.diagnosis import (
    attributes_check,
    calls_check,
    deployment_checks,
    lost_check,
    namespace_check,
    overall,
    pollers_check,
    waiting_check,
)
from countersign.agent_client.workers import Build, Polled, Poller
from countersign.client import AgentClient

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
WANTED = {"CountersignAgent": "Keyword", "CountersignPending": "Int"}


def examined(*words: str, **variables: str) -> tuple[int, dict[str, dict[str, str]]]:
    """Exit code of the command, and its checks by name."""
    got = CliRunner().invoke(app, ["doctor", "--json", *words], env=variables)
    assert got.exception is None or isinstance(got.exception, SystemExit), got.exception
    return got.exit_code, {check["name"]: check for check in json.loads(got.stdout)["checks"]}


async def test_where_all_is_well_it_exits_with_0(temporal_server, served, served_queue):
    """A worker polls, a session is answered for, and each setting is shown with its source."""
    await (await served.start("asker", "hello", lifetime="open")).wait_for_questions()
    words = ("--task-queue", served_queue, "--agents", "tests.client.served_agents")
    code, checks = await asyncio.to_thread(examined, *words, TEMPORAL_ADDRESS=temporal_server)
    assert [check["name"] for check in checks.values() if check["level"] != "ok"] == []
    assert code == 0
    assert f"address {temporal_server} (TEMPORAL_ADDRESS)" in checks["settings"]["found"]
    assert "namespace default (default)" in checks["settings"]["found"]
    assert checks["agents"]["found"].startswith("asker")
    assert "last one" in checks["workers for activities"]["found"]


async def test_a_session_without_a_worker_is_a_failure_with_the_command_that_helps(temporal_server):
    """No poller, and a session on that queue that nobody answers for: exit code 1."""
    queue = f"nobody-{uuid.uuid4().hex[:8]}"
    await (await AgentClient.connect(temporal_server, task_queue=queue)).start("janitor", "clean up")
    async with asyncio.timeout(60):  # the list of sessions follows after a moment
        while True:
            code, checks = await asyncio.to_thread(examined, "--task-queue", queue, "--address", temporal_server)
            if checks["sessions"]["found"].startswith("1 running"):
                break
            await asyncio.sleep(0.1)
    assert code == 1
    assert {checks[name]["level"] for name in ("workers for workflows", "workers for activities", "sessions")} == {
        "failure"
    }
    assert f"--task-queue {queue}" in checks["sessions"]["advice"]


async def test_a_namespace_without_our_search_attributes_gets_a_warning(temporal_server, client):
    """With the command that registers them."""
    name = f"bare-{uuid.uuid4().hex[:8]}"
    request = RegisterNamespaceRequest(namespace=name)
    request.workflow_execution_retention_period.FromTimedelta(timedelta(days=3))
    await client.workflow_service.register_namespace(request)
    async with asyncio.timeout(60):
        while True:  # known everywhere after a moment
            words = ("--address", temporal_server, "--namespace", name)
            _, checks = await asyncio.to_thread(examined, *words)
            if "sessions" in checks:
                break
            await asyncio.sleep(0.2)
    assert "'" + name + "', keeps ended sessions for 3 days" in checks["namespace"]["found"]
    assert checks["search attributes"]["level"] == "warning"
    assert "--name CountersignAgent --type Keyword" in checks["search attributes"]["advice"]


def test_a_missing_namespace_is_a_failure_and_not_a_lost_connection(temporal_server):
    """Exit code 1: the server is there."""
    code, checks = examined("--address", temporal_server, "--namespace", "nowhere")
    assert (code, checks["server"]["level"], checks["namespace"]["level"]) == (1, "ok", "failure")
    assert "namespace create -n nowhere" in checks["namespace"]["advice"]


def test_without_a_server_it_exits_with_3_and_still_imports_the_agents():
    """What can be checked is checked."""
    code, checks = examined("--address", "127.0.0.1:1", "--agents", "no.such_module")
    assert code == 3
    assert "127.0.0.1:1" in checks["server"]["found"]
    assert "'no.such_module'" in checks["agents"]["found"]


def test_keys_that_can_not_be_used_are_a_failed_check(tmp_path):
    """Like whatever else is wrong: exit code 1, and a line of its own."""
    code, checks = examined(COUNTERSIGN_ENCRYPTION_KEYS=str(tmp_path / "none"))
    assert (code, checks["settings"]["level"]) == (1, "failure")
    assert "COUNTERSIGN_ENCRYPTION_KEYS" in checks["settings"]["found"] and checks["versions"]["level"] == "ok"


@pytest.mark.parametrize("line", ["api_key = SECRETKEY123", "api_key = 5678123", 'api_key = "SECRETKEY123'])
@pytest.mark.parametrize("command", ["doctor", "list"])
def test_a_profile_that_can_not_be_read_shows_no_api_key(tmp_path, command, line):
    """The line's number is enough to find it."""
    file = tmp_path / "temporal.toml"
    file.write_text(f"[profile.cloud]\n{line}\n")
    got = CliRunner().invoke(app, [command, "--profile", "cloud"], env={"TEMPORAL_CONFIG_FILE": str(file)})
    assert got.exit_code == 3
    assert "line 2" in got.output and "TEMPORAL_CONFIG_FILE" in got.output
    assert not any(secret in got.output for secret in ("SECRETKEY123", "5678123"))


def test_a_person_sees_marks_and_advice(temporal_server):
    """A line each, and what to do below it."""
    got = CliRunner().invoke(app, ["doctor", "--address", temporal_server, "--namespace", "nowhere"])
    assert "✓ server" in got.stdout
    assert "✗ namespace" in got.stdout
    create = f"temporal operator namespace create -n nowhere --address {temporal_server}"
    assert f"→ make it ({create})" in got.stdout


def test_two_checks_with_the_same_advice_have_it_once(temporal_server):
    """Below the second: workers for workflows and for activities start with one command."""
    queue = f"nobody-{uuid.uuid4().hex[:8]}"
    lines = CliRunner().invoke(app, ["doctor", "--address", temporal_server, "--task-queue", queue]).stdout.splitlines()
    assert sum(f"--task-queue {queue}" in line for line in lines) == 1
    [at] = [number for number, line in enumerate(lines) if line.startswith("✗ workers for activities")]
    assert lines[at + 1].strip().startswith("→ start one with")
    assert lines[at + 1].endswith(f"--task-queue {queue} --address {temporal_server}")


@pytest.mark.parametrize(("age_s", "level"), [(70, "ok"), (100, "failure")])
def test_a_worker_that_has_not_asked_for_work_is_gone(age_s, level):
    """A worker that lives asks every minute; the server lists it for five."""
    seen = [Poller("1@host", NOW - timedelta(seconds=200)), Poller("2@host", NOW - timedelta(seconds=age_s))]
    check = pollers_check("workflows", "q", Polled(seen, None), NOW)
    assert check.level == level
    assert "2@host" in check.found


def test_a_search_attribute_of_another_type_is_named_with_both():
    """It can't be repaired by creating it."""
    check = attributes_check("default", WANTED, {"CountersignAgent": "Text", "CountersignPending": "Int"})
    assert (check.level, check.found) == ("warning", "CountersignAgent is Text, not Keyword")
    assert "create" not in check.advice


B1 = Build("d", "b1")


def seen(build_id: str, age_s: float = 5) -> Poller:
    """A poller of a build of the deployment d; of no version if that is ""."""
    return Poller("1@host", NOW - timedelta(seconds=age_s), "d" if build_id else "", build_id)


@pytest.mark.parametrize(
    ("pollers", "current", "level", "words"),
    [
        ([seen("b1")], B1, "ok", "build 'b1' is current and polls (last seen 5 s ago)"),
        ([seen("b1"), seen("b2")], None, "failure", "nothing starts"),
        ([seen("b1"), seen("")], None, "warning", "workers without a version get all"),
        ([seen("b2")], B1, "failure", "no worker of it polls (none was seen lately; polling: b2)"),
        ([seen("b1", 90), seen("b2")], B1, "failure", "no worker of it polls (last seen 90 s ago; polling: b2)"),
        ([seen("b1", 90), seen("")], B1, "failure", "a worker without a version, which gets nothing here"),
        ([], B1, "failure", "no worker of it polls"),
    ],
)
def test_a_queue_needs_its_current_build_to_poll(pollers, current, level, words):
    """No other build, no unversioned worker and none that has gone stands in for it."""
    [check] = deployment_checks("default", "q", Polled(pollers, current), NOW)
    assert (check.level, words in check.found) == (level, True), check.found


@pytest.mark.parametrize(
    ("pollers", "current", "pinned_to", "words"),
    [
        ([seen("")], None, None, "1 seen polling lately"),
        ([seen("", 90)], None, None, "no worker polls it"),
        ([], B1, None, "no worker of build 'b1' polls it"),
        ([seen("b2"), seen("")], B1, None, "no worker of build 'b1' polls it"),
        ([seen("b1")], None, None, "none of the builds that poll it is current"),
        ([seen("b1")], Build("d", "b2"), B1, "1 seen polling lately"),
        ([seen("b2"), seen("b1", 90)], Build("d", "b2"), B1, "no worker of build 'b1' polls it"),
    ],
)
def test_a_call_that_waits_needs_a_worker_that_would_get_it(pollers, current, pinned_to, words):
    """No other build, none without a version and none that has gone stands in for it; the command is for that build."""
    check = calls_check("tools", ["pay"], NOW - timedelta(minutes=1), Polled(pollers, current), pinned_to, NOW)
    assert (check.level, words in check.found) == ("ok" if "seen" in words else "failure", True), check.found
    assert ("--build-id b1" in check.advice) == ("'b1'" in words)


def test_where_nobody_is_versioned_nothing_is_said_of_deployments():
    """It would only confuse."""
    assert deployment_checks("default", "q", Polled([seen("")], None), NOW) == []


def test_a_worker_to_start_is_one_of_the_current_build():
    """Any other one would get no work; and the build that polls can be made current with one command."""
    flags = "--agents MODULE --task-queue q --deployment-name d --build-id b1"
    found = Polled([seen("b2")], B1)
    [check] = deployment_checks("n s", "q", found, NOW)
    told = pollers_check("workflows", "q", Polled([], B1), NOW), waiting_check("q", 1, 0, False, B1), check
    assert all(flags in one.advice and "countersign dev" not in one.advice for one in told)
    assert "set-current-version -n 'n s' --deployment-name d --build-id b2 --yes" in check.advice


def test_a_lost_build_is_a_failure():
    """Its cycles wait for ever."""
    [check] = lost_check([LostBuild("d:b0", ["s/cycle-1"])], "default", "q")
    assert check.level == "failure"


class Limiting(FakeNamespace):
    """A server that refuses so many requests in a row, as too many."""

    refusals = 0

    async def describe_task_queue(self, request, timeout):
        """The first request of every look."""
        if self.refusals:
            self.refusals -= 1
            raise RPCError("too many requests", RPCStatusCode.RESOURCE_EXHAUSTED, b"")
        return await super().describe_task_queue(request, timeout)


async def test_a_server_that_limits_requests_is_asked_again(monkeypatch):
    """Right after a build became current it does; who asks too often is told to wait, not to check permissions."""
    monkeypatch.setattr(examining, "_PAUSES_S", (0, 0))
    client: Any = Limiting()
    client.refusals = 1
    checks = await examining._queue(client, "q")
    assert [check.name for check in checks] == ["workers for workflows", "workers for activities", "sessions"]
    client.refusals = 3
    [check] = await examining._queue(client, "q")
    assert check.advice == "the server limits requests: ask again in a minute"


def test_a_short_retention_is_a_warning():
    """Ended sessions could not be read any more."""
    assert namespace_check("n", timedelta(hours=1)).level == "warning"
    assert namespace_check("n", timedelta(hours=24)).level == "ok"


def test_warnings_alone_count_as_fine():
    """The worst level is what counts, and nothing running is no failure."""
    fine, warned = waiting_check("q", 0, 0, None), namespace_check("n", timedelta(hours=1))
    assert (overall([fine]), overall([fine, warned])) == ("ok", "warning")


def test_names_from_outside_are_quoted_in_commands():
    """What is proposed can be pasted."""
    assert "'a b; rm'" in pollers_check("workflows", "a b; rm", Polled([], None), NOW).advice
