"""Answers what two agents ask, each on a queue of its own: logs may be deleted, anything else may not.

COUNTERSIGN_TASK_QUEUE='countersign-{agent}' python bot.py FOLDER FOLDER
"""

import asyncio
import os
import sys

from countersign.client import AgentClient, AnswerRefused, ClientError, NoReplyError, Question, SessionHandle

AGENTS = ("janitor", "janitor-batch")


def allowed(question: Question) -> bool:
    """Judge the input that would run, and nothing that a model only says about it."""
    paths = [path for call in question.calls for path in call.input.get("paths", [])]
    return bool(paths) and all(path.endswith(".log") for path in paths)


async def answer(session: SessionHandle, question: Question) -> None:
    """Answer one question, bound to what was judged."""
    give = session.approve if allowed(question) else session.deny
    try:
        receipt = await give(question.id, digest=question.digest, responder="bot", comment="only logs may go")
        print(f"{session.id}: {receipt.accepted[0].name} {receipt.accepted[0].status} by {give.__name__}")
    except AnswerRefused as refused:  # "already_answered": a person was faster; "outdated": it is asked anew
        print(f"{session.id}: not taken ({refused.code})")
    except NoReplyError:  # it may have been taken; if not, the next look finds it again
        print(f"{session.id}: no reply")


async def look(client: AgentClient, agent: str) -> None:
    """Answer what waits now."""
    try:
        async for waiting in client.waiting(agent):  # cards, from the server's list
            session = client.session(waiting.session_id)
            try:
                for question in await session.interrupts():  # in full, from the session; [] once it has ended
                    await answer(session, question)
            except ClientError as error:  # no worker, no key, or it ended: the others are answered all the same
                print(f"{session.id}: {error}")
    except ClientError as error:  # the server is away
        print(error)


async def main(*folders: str) -> None:
    """Start a session of each agent, and look every second until both have ended."""
    client = await AgentClient.connect()
    sessions = [
        await client.start(agent, f"Delete files older than 5 days in {folder}")
        for agent, folder in zip(AGENTS, folders, strict=True)
    ]
    results = asyncio.gather(*(session.result() for session in sessions), return_exceptions=True)
    while not results.done():
        for agent in AGENTS:
            await look(client, agent)
        await asyncio.sleep(1)
    for session, result in zip(sessions, await results, strict=True):
        if isinstance(result, BaseException):  # it failed, was ended, or can't be read here; the others went on
            print(f"{session.id}: {result}")
        else:
            print(f"{session.id}: {result.stop_reason} on {(await session.summary()).task_queue}")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
    sys.stdout.flush()
    os._exit(0)  # the client of temporalio 1.35 now and then aborts the process while Python tears down
