"""Starts a session of the janitor and answers its question: plain temporalio, nothing of ours.

python answer.py FOLDER SESSION_ID
"""

import asyncio
import os
import sys
import uuid
from typing import Any

from temporalio.client import Client, WorkflowHandle, WorkflowUpdateFailedError
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import ApplicationError

WAITING = 'WorkflowType = "AgentSession" AND ExecutionStatus = "Running" AND CountersignPending > 0'


async def asked(session: WorkflowHandle[Any, Any]) -> dict[str, Any]:
    """The first question, once there is one."""
    while True:
        questions: list[dict[str, Any]] = await session.query("interrupts")
        if questions:
            return questions[0]
        await asyncio.sleep(0.2)


async def listed(client: Client, session_id: str) -> list[dict[str, Any]]:
    """A session's question cards from the list of what waits; needs no worker."""
    while True:
        async for execution in client.list_workflows(WAITING):
            if execution.id == session_id:
                cards: list[dict[str, Any]] = await execution.memo_value("countersign_questions")
                return cards
        await asyncio.sleep(0.2)


async def answer(session: WorkflowHandle[Any, Any], given: dict[str, Any], update_id: str) -> str:
    """Send an answer. One update id per decision, the same for every re-send."""
    try:
        return str(await session.execute_update("answer", given, id=update_id))
    except WorkflowUpdateFailedError as error:
        if isinstance(error.cause, ApplicationError):
            return f"{error.cause.type}: {error.cause.message}"  # a code of the wire contract, and the reason
        raise


async def main(folder: str, session_id: str) -> None:
    """Start, look, answer, and wait for the result."""
    address, namespace = os.getenv("TEMPORAL_ADDRESS", "localhost:7233"), os.getenv("TEMPORAL_NAMESPACE", "default")
    client = await Client.connect(address, namespace=namespace)
    session = await client.start_workflow(
        "AgentSession",
        {"protocol": 1, "agent": "janitor", "prompt": f"Delete files older than 5 days in {folder}"},
        id=session_id,
        task_queue=os.getenv("COUNTERSIGN_TASK_QUEUE", "countersign"),
        id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
    )
    print(f"started {session_id}")
    question = await asked(session)
    print(f"asked: {question['name']}", [(call["tool"], call["input"]) for call in question["calls"]])
    print(f"listed {session_id}", [card["name"] for card in await listed(client, session_id)])

    yes = {
        "interruptResponse": {"interruptId": question["id"], "response": "y"},
        "digest": question["digest"],
        "responder": {"id": "ana"},
        "comment": "sent from Python",
    }
    click = str(uuid.uuid4())
    print("refused:", await answer(session, {**yes, "digest": "not-what-I-saw"}, str(uuid.uuid4())))
    print("accepted:", await answer(session, yes, click))
    print("again:", await answer(session, yes, click))
    result = await session.result()
    print(f"result: {result['stop_reason']} after {result['cycles']} cycles")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
    sys.stdout.flush()
    os._exit(0)  # the client of temporalio 1.35 now and then aborts the process while Python tears down
