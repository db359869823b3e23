"""The demo: an agent wants to delete files, its worker is killed while it waits, and a person answers.

python -m examples.demo

Everything is real but the model, which is scripted: the files (in a temporary folder), Temporal (its
dev server, a process on loopback), and the worker (a process, killed with SIGKILL). With a terminal
the person there answers; without one the demo says "y" itself. It leaves nothing behind.
"""

import asyncio
import contextlib
import os
import shlex
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from countersign.agent_client.cli.terminal import visible_json
from countersign.agent_client.dev_server import DevServer
from countersign.agent_core.errors import AnswerRefused, CountersignError
from countersign.agent_core.wire import Question, SessionResult
from countersign.client import AgentClient, SessionHandle

T = TypeVar("T")

ROOT = Path(__file__).resolve().parent.parent
AGES_DAYS = {"report-2019.csv": 900, "trace.log": 30, "cache.bin": 6, "notes.txt": 2, "today.md": 0}
LIMIT_DAYS = 5
PATIENCE_S = 30.0
SECONDS_PER_DAY = 86_400

console = Console(highlight=False, soft_wrap=True)


class DemoError(Exception):
    """The demo can't go on; the message says why."""


def main() -> None:
    """Run the demo; exit code 0 if it went to its end, 1 if not, 130 or 143 if it was stopped."""
    try:
        asyncio.run(demo())
    except (DemoError, CountersignError, OSError) as error:
        Console(stderr=True, soft_wrap=True).print(Text(f"The demo failed: {error}", style="bold red"))
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except asyncio.CancelledError:
        raise SystemExit(143) from None


async def demo() -> None:
    """The story, from the files to the end of the UI."""
    _clean_up_on_sigterm()
    with tempfile.TemporaryDirectory(prefix="demo-") as scratch:
        folder = make_files(Path(scratch))
        _isolate_environment(Path(scratch))
        async with dev_server() as server:
            client = await AgentClient.connect(server.address)
            handle, question = await ask_and_crash(client, server.address, folder)
            async with worker(server.address):
                say("A new worker runs. Nothing is lost.", "green")
                result = await let_a_person_answer(handle, question)
            show_end(folder, result)
            if sys.stdin.isatty():  # else the UI is gone before anybody could open it
                address = f"{server.ui_url}/namespaces/default/workflows/{handle.id}"
                say(f"\nThe session in the Temporal UI: {address}", "bold")
                say("Press Enter to stop everything.")
                await typed_line()


async def ask_and_crash(client: AgentClient, address: str, folder: Path) -> tuple[SessionHandle, Question]:
    """Start the agent, show what it asks, and kill its worker while the question waits."""
    async with worker(address) as process:
        prompt = f"Delete files older than {LIMIT_DAYS} days in {folder}"
        say(f"\nYou ask the agent: {prompt}", "bold")
        handle = await client.start("janitor", prompt)
        questions = await soon(handle.wait_for_questions(), "the agent to ask")
        if not questions:
            raise DemoError(f"the agent asked nothing; it said: {said(await soon(handle.result(), 'the result'))}")
        show_question(address, handle.id, questions[0])
        process.kill()  # SIGKILL
        await process.wait()
    say(f"\nThe worker (process {process.pid}) is killed with SIGKILL while the question waits.", "bold red")
    waiting = [session.session_id async for session in client.waiting()]
    if handle.id not in waiting:
        raise DemoError(f"session {handle.id} is not listed as waiting")
    say("No worker runs, and the question is still there: the session is listed as waiting.")
    return handle, questions[0]


async def let_a_person_answer(handle: SessionHandle, question: Question) -> SessionResult:
    """Ask at the terminal, send the answer bound to what was shown, and wait for the end.

    The question may be answered from another shell meanwhile; the first answer counts.
    """
    ending = asyncio.ensure_future(handle.result())
    try:
        verdict = await ask_at_terminal(ending)
        if verdict is None:
            say("It was answered from another shell.")
        else:
            try:
                await handle.answer((question.id, question.answers[verdict]), digest=question.digest)
            except AnswerRefused as refusal:
                say(f"Your answer came too late: {refusal}", "yellow")
        return await soon(ending, "the agent to finish")
    finally:
        ending.cancel()


async def ask_at_terminal(ending: "asyncio.Future[SessionResult]") -> str | None:
    """The person's verdict, "approve" or "deny"; None if the session ended while they thought."""
    console.print("\n[bold]Delete these files? (y/N)[/bold] ", end="")
    if not sys.stdin.isatty():
        say("y   (there is no terminal, so the demo answers itself)")
        return "approve"
    typing = asyncio.ensure_future(typed_line())
    both: list[asyncio.Future] = [typing, ending]
    await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    if not typing.done():
        typing.cancel()
        say("")
        return None
    return "approve" if typing.result().strip().lower() in ("y", "yes") else "deny"


async def typed_line() -> str:
    """A line from the terminal, "" at its end; can be cancelled, unlike a thread that reads."""
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(sys.stdin, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(sys.stdin)
    return sys.stdin.readline()


# --- Processes ---


@contextlib.asynccontextmanager
async def dev_server() -> AsyncIterator[DevServer]:
    """A Temporal dev server with its UI, stopped at the end."""
    server = DevServer(ui=True)
    try:
        say("Starting Temporal's dev server …", "dim")
        await server.start()
        yield server
    finally:
        await server.stop()


@contextlib.asynccontextmanager
async def worker(address: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A worker process that serves the janitor, ready; stopped at the end unless it is dead already."""
    say("Starting a worker …", "dim")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "countersign.worker", "--agents", "examples.janitor", "--address", address,
        cwd=ROOT, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    heard: list[str] = []
    ready = asyncio.Event()
    listening = asyncio.ensure_future(_listen(process, heard, ready))
    try:
        await soon(ready.wait(), "the worker to be ready")
        if not heard or "countersign worker ready" not in heard[-1]:
            raise DemoError(f"the worker ended at once: {' '.join(heard[-5:]) or 'it said nothing'}")
        yield process
    finally:
        await _end(process)
        listening.cancel()


async def _listen(process: asyncio.subprocess.Process, heard: list[str], ready: asyncio.Event) -> None:
    """Read what a worker says, so that its pipe never fills up; set `ready` when it is, or has ended."""
    assert process.stderr is not None
    async for line in process.stderr:
        if not ready.is_set():
            heard.append(line.decode(errors="replace").strip())
        if b"countersign worker ready" in line:
            ready.set()
    ready.set()


async def _end(process: asyncio.subprocess.Process) -> None:
    """Stop one process, gracefully for five seconds."""
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        await asyncio.wait_for(process.wait(), 5)
    except TimeoutError:
        process.kill()
        await process.wait()


def _isolate_environment(scratch: Path) -> None:
    """Keep the demo away from the Temporal server that this person's settings may name."""
    for name in [name for name in os.environ if name.startswith(("TEMPORAL_", "COUNTERSIGN_"))]:
        del os.environ[name]
    settings = scratch / "temporal.toml"
    settings.touch()
    os.environ["TEMPORAL_CONFIG_FILE"] = str(settings)


def _clean_up_on_sigterm() -> None:
    """Let SIGTERM and a closed terminal unwind the demo, so that its processes end with it."""
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)


async def soon(work: Awaitable[T], what: str) -> T:
    """Await with patience.

    Raises:
        DemoError: If it takes too long.
    """
    try:
        return await asyncio.wait_for(work, PATIENCE_S)
    except TimeoutError:
        raise DemoError(f"waited {timedelta(seconds=PATIENCE_S)} in vain for {what}") from None


# --- Files and what is shown ---


def make_files(scratch: Path) -> Path:
    """A folder with old and new files, shown."""
    folder = scratch / "files"
    folder.mkdir()
    table = Table("file", "age in days", box=None, header_style="dim")
    for name, age_days in AGES_DAYS.items():
        path = folder / name
        path.write_text(f"This is {name}.\n")
        modified_s = time.time() - age_days * SECONDS_PER_DAY
        os.utime(path, (modified_s, modified_s))
        table.add_row(name, str(age_days))
    say(f"A folder with old and new files: {folder}")
    console.print(table)
    return folder


def show_question(address: str, session_id: str, question: Question) -> None:
    """The question with what will run, and how to answer it from another shell."""
    table = Table("will run", "with", box=None, header_style="dim")
    for call in question.calls:
        # Folded, never cut: a person signs all of it.
        table.add_row(Text(call.tool), Text(visible_json(call.input), overflow="fold"))
    title = Text(f"The agent waits for a person: {question.name}", style="bold yellow")
    console.print(Panel.fit(table, title=title))
    command = os.path.relpath(Path(sys.executable).with_name("countersign"))
    say("One could answer from another shell:")
    say(f"  TEMPORAL_ADDRESS={address} {shlex.join([command, 'approve', session_id, question.id])}", "cyan")


def show_end(folder: Path, result: SessionResult) -> None:
    """What is gone from the real folder, and what the agent says."""
    left = {path.name for path in folder.iterdir()}
    gone = [name for name in AGES_DAYS if name not in left]
    say(f"\nDeleted:     {', '.join(gone) or 'nothing'}", "bold")
    say(f"Still there: {', '.join(sorted(left)) or 'nothing'}")
    say(f"The agent:   {said(result)}")
    too_new = [name for name in gone if AGES_DAYS[name] <= LIMIT_DAYS]
    if too_new:
        raise DemoError(f"files are gone that nobody was asked about: {', '.join(too_new)}")


def said(result: SessionResult) -> str:
    """The text of a result's last message."""
    blocks: Iterator[str] = (block.get("text", "") for block in (result.message or {"content": []})["content"])
    return " ".join(text for text in blocks if text) or f"(nothing; it stopped with {result.stop_reason})"


def say(text: str, style: str = "") -> None:
    """A line for the person, without reading markup in it."""
    console.print(Text(text, style=style))


if __name__ == "__main__":
    main()
