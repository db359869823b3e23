"""`HumanInTheLoop` on a worker: classifiers and `ask` are steps, recorded once; a terminal is refused at start."""

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from tests.durable.test_waiting import questions

from countersign.agent_core.deployment import load_agents
from countersign.errors import AgentDefinitionError

AGENTS = '''
import asyncio
import json
import os
import urllib.request
from pathlib import Path

from countersign import Agent, ScriptedModel, durable, tool
from countersign.decisions import DecisionMetadata, DecisionModel, DecisionResult
from countersign.models import calls
from countersign.vended_interventions.hitl import HumanInTheLoop, LLMClassifierConfig


def trace(label):
    with open(os.environ["TRACE"], "a") as file:
        file.write(label + "\\n")


@tool
def delete(path: str) -> str:
    """Delete."""
    trace(f"deleted-{path}")
    return "deleted"


def agent_with(*uses, **options):
    script = [calls(*(("delete", {"path": path}) for path in uses)), "done"]
    return Agent(ScriptedModel(script), tools=[delete], interventions=[HumanInTheLoop(**options)])


def judge(scene):
    trace("judged")
    return calls(("verdict", {"requires_approval": "/safe" not in scene.prompt, "reason": "deletes data"}))


@durable("judged")
def judged() -> Agent:
    return agent_with("/safe", "/risky", classifier=LLMClassifierConfig(model=ScriptedModel(judge)))


class Decider(DecisionModel):
    """The documents' example, over HTTP."""

    def _post(self, body):
        request = urllib.request.Request(
            os.environ["DECIDER"], data=json.dumps(body).encode(), headers={"content-type": "application/json"}
        )
        with urllib.request.urlopen(request) as response:
            return json.loads(response.read())

    async def _ask(self, state, questions, **kwargs):
        wire = {qid: {"type": "noul", "instructions": q["question"]} for qid, q in questions.items()}
        reply = await asyncio.to_thread(self._post, {"state": state, "questions": wire})
        return DecisionResult(
            answers={qid: a["noul"] >= 0.5 for qid, a in reply["answers"].items()},
            metadata=DecisionMetadata(latency_ms=int(reply["latency_ms"])),
        )


@durable("decided")
def decided() -> Agent:
    return agent_with("/safe", "/risky", classifier=Decider())


async def ask(prompt):
    trace("asked")
    while not Path(os.environ["TRACE"] + ".answer").exists():
        await asyncio.sleep(0.05)
    return "y"


@durable("inline")
def inline() -> Agent:
    return agent_with("/a", ask=ask)


@durable("two-ways")
def two_ways() -> Agent:
    return agent_with("/a", "/b")
'''


@pytest.fixture
def traces(lab, monkeypatch):
    """What the agents did, in order."""
    file = lab.folder / "trace"
    monkeypatch.setenv("TRACE", str(file))
    lab.package("gated", agents=AGENTS)
    return lambda: file.read_text().split() if file.exists() else []


async def test_an_llm_judge_is_heard_once_for_each_call_across_a_restart(lab, traces):
    """The harmless call runs, the risky one waits; the worker is killed, and the verdict stands."""
    worker = lab.worker("gated.agents")
    session = await lab.start(worker, "judged", "go")
    [question] = await questions(session, 1)
    assert "(deletes data)" in question.reason
    assert traces().count("judged") == 2
    worker.restart()
    await session.answer((question.id, "y"))
    await session.result()
    assert [item for item in traces() if item != "judged"] == ["deleted-/safe", "deleted-/risky"]
    assert traces().count("judged") == 2


@pytest.fixture
def decider(monkeypatch) -> Iterator[list[dict]]:
    """A decision server; what it was asked."""
    asked: list[dict] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            asked.append(body)
            risky = 0.9 if body["state"]["input"]["path"] == "/risky" else 0.1
            content = json.dumps({"answers": {q: {"noul": risky} for q in body["questions"]}, "latency_ms": 2}).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    monkeypatch.setenv("DECIDER", f"http://127.0.0.1:{server.server_port}")
    yield asked
    server.shutdown()
    server.server_close()


async def test_a_decision_model_works_over_http_as_a_step(lab, traces, decider):
    """The documents' example against a real server, once for each call."""
    session = await lab.start(lab.worker("gated.agents"), "decided", "go")
    [question] = await questions(session, 1)
    assert question.calls[0].input == {"path": "/risky"}
    await session.answer((question.id, {"decision": "reject", "reason": "keep it"}))
    await session.result()
    assert (traces(), len(decider)) == (["deleted-/safe"], 2)


async def test_an_inline_ask_is_a_step_and_asks_again_only_if_its_worker_was_lost(lab, traces):
    """The worker dies while somebody thinks: the next one asks, and the call runs once."""
    worker = lab.worker("gated.agents")
    session = await lab.start(worker, "inline", "go")
    async with asyncio.timeout(60):
        while "asked" not in traces():
            await asyncio.sleep(0.02)
    worker.restart()
    (lab.folder / "trace.answer").write_text("")
    await session.result()
    assert (traces().count("asked"), traces().count("deleted-/a")) == (2, 1)


async def test_an_edit_and_a_rejection_side_by_side(lab, traces):
    """One call runs with the approver's input, the other does not run; the audit has both inputs."""
    session = await lab.start(lab.worker("gated.agents"), "two-ways", "go")
    first, second = await questions(session, 2)
    await session.answer(
        [(first.id, {"decision": "edit", "input": {"path": "/c"}}), (second.id, {"decision": "reject"})]
    )
    await session.result()
    assert traces() == ["deleted-/c"]
    [edited] = [entry.detail for entry in await session.audit() if entry.event == "input_edited"]
    assert (edited["before"], edited["after"], edited["question"]) == ({"path": "/a"}, {"path": "/c"}, first.id)


def test_a_terminal_is_refused_when_the_worker_starts(lab, monkeypatch):
    """By the agent's name, with the way out: a worker has none."""
    lab.package(
        "at_a_terminal",
        agents="""
from countersign import Agent, ScriptedModel, durable
from countersign.vended_interventions.hitl import HumanInTheLoop


@durable("typist")
def typist() -> Agent:
    return Agent(ScriptedModel(["hi"]), interventions=[HumanInTheLoop(ask="stdio")])
""",
    )
    monkeypatch.syspath_prepend(str(lab.folder))
    with pytest.raises(AgentDefinitionError, match=r"agent 'typist': .*needs a terminal.*countersign chat"):
        load_agents(["at_a_terminal.agents"])
