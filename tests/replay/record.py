"""Records histories of real runs as fixtures: `python -m tests.replay.record`.

Run it after a change of the order of workflow commands, together with a patch id in the workflow.
Old histories stay: sessions that were started before a deployment go on after it.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter

from countersign.agent_client import AgentClient, SessionHandle
from countersign.agent_client.dev_server import DevServer

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
HISTORIES = HERE / "histories"
AGENTS = "tests.durable.lab.agents"


async def _session(client: AgentClient, name: str, prompt: str, answer: object, **options: object) -> SessionHandle:
    """A session with every question answered the same."""
    session_id = f"recorded-{name}"
    agent = str(options.pop("agent"))
    argument = {"protocol": 1, "agent": agent, "prompt": prompt, **options}
    await client.temporal.start_workflow("AgentSession", argument, id=session_id, task_queue="replay")
    session = client.session(session_id)
    while questions := await session.wait_for_questions():
        await session.answer([(question.id, answer) for question in questions])
    return session


async def _save(client: Client, workflow_id: str) -> None:
    handle = client.get_workflow_handle(workflow_id)
    history = await handle.fetch_history()
    name = workflow_id.removeprefix("recorded-").replace("/", "-")
    text = json.dumps(json.loads(history.to_json()), indent=1)
    (HISTORIES / f"{name}.json").write_text(text + "\n")
    print(f"{name}: {len(history.events)} events")


async def record() -> None:
    """Run the sessions on a server of our own and save the histories of sessions and cycles."""
    HISTORIES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        log = f"effects={folder}/effects"
        async with DevServer() as server:
            worker = subprocess.Popen(
                [sys.executable, "-m", "countersign.worker", "--agents", AGENTS, "--address", server.address,
                 "--task-queue", "replay"], cwd=ROOT,
            )  # fmt: skip
            try:
                temporal = await Client.connect(server.address, data_converter=pydantic_data_converter)
                client = await AgentClient.connect(server.address, task_queue="replay")
                await _session(client, "batch", f"{log} effect:a effect:b", "y", agent="batch")
                await _session(client, "per-call", f"{log} effect:a effect:b", "n", agent="per-call")
                await _session(client, "twice", f"{log} asks_twice:a effect:b", "y", agent="free")
                await _session(client, "loop", "loop:5", "y", agent="loop")
                await _session(client, "loop-one-each", "loop:3", "y", agent="loop", handover_after_s=0)
                async for found in temporal.list_workflows("WorkflowType IN ('AgentSession', 'AgentCycle')"):
                    await _save(temporal, found.id)
            finally:
                worker.terminate()
                worker.wait()


if __name__ == "__main__":
    asyncio.run(record())
