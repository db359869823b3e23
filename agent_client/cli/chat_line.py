"""The terminal of `chat`: its input line, its spinner, and silence while nothing is asked."""

import contextlib
import os
import sys
from collections.abc import Iterator

from prompt_toolkit import PromptSession
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import DummyHistory, InMemoryHistory
from prompt_toolkit.input.typeahead import clear_typeahead
from prompt_toolkit.patch_stdout import patch_stdout
from rich.console import Console
from rich.status import Status
from rich.text import Text

from countersign.agent_client.cli.terminal import BAR, rows

_NARROWEST = 20
"""Columns of a terminal that says it has fewer, or none."""


class InterruptedLineError(Exception):
    """Ctrl-C was typed; not a KeyboardInterrupt, which would end the event loop."""


class _WithdrawnError(Exception):
    """The line was taken away."""


class Terminal:
    """What a person sees and types. Prompts are remembered in memory, answers not at all."""

    def __init__(self) -> None:
        self.console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
        self._prompts = _session(InMemoryHistory())
        self._answers = _session(DummyHistory())
        self._reading: PromptSession[str] | None = None
        self._spinner: Status | None = None

    @property
    def width(self) -> int:
        """Columns of the terminal as it is now."""
        with contextlib.suppress(OSError):
            if (columns := os.get_terminal_size(sys.stdout.fileno()).columns) >= _NARROWEST:
                return columns
        return max(self.console.width, _NARROWEST)

    def say(self, text: str, style: str = "", *, cut: bool = True) -> None:
        """A text for the person, above the input line if there is one.

        Args:
            text: Foreign text in it must have been made visible.
            style: As rich knows it.
            cut: Mark the rest of a line that is too long, so that no foreign text begins one; else it is left
                whole, to be copied.
        """
        if cut:
            text = "\n".join(rows(line, self.width) for line in text.split("\n"))
        if self._reading is not None:
            print(text, flush=True)
        else:
            self.console.print(Text(text, style=style))

    async def prompt(self, label: str) -> str:
        """A line for the agent.

        Raises:
            EOFError: At Ctrl-D.
            InterruptedLineError: At Ctrl-C.
        """
        return await self._read(self._prompts, label)

    async def answer(self, label: str) -> str | None:
        """A line that answers a question; None if `withdraw` was called meanwhile.

        Raises:
            EOFError: At Ctrl-D.
            InterruptedLineError: At Ctrl-C.
        """
        try:
            return await self._read(self._answers, label)
        except _WithdrawnError:
            return None

    def withdraw(self) -> None:
        """Take the input line away."""
        app = self._reading.app if self._reading is not None else None
        if app is not None and app.future is not None and not app.future.done():
            app.exit(exception=_WithdrawnError, style="class:aborting")

    async def _read(self, session: "PromptSession[str]", label: str) -> str:
        # What was typed before the question was seen is no answer to it.
        _drop_typed()
        clear_typeahead(session.input)
        session.default_buffer.reset()
        self._reading = session
        try:
            with patch_stdout():
                return await session.prompt_async(FormattedText([("bold", label)]), handle_sigint=False)
        finally:
            self._reading = None

    @contextlib.contextmanager
    def busy(self, text: str) -> Iterator[None]:
        """A spinner; what is typed meanwhile is neither shown nor kept."""
        with _no_echo(), self.console.status(Text(text, style="dim")) as spinner:
            self._spinner = spinner
            try:
                yield
            finally:
                self._spinner = None

    def busy_with(self, text: str) -> None:
        """Change the spinner's words."""
        if self._spinner is not None:
            self._spinner.update(Text(text, style="dim"))


def _session(history: InMemoryHistory | DummyHistory) -> "PromptSession[str]":
    # No editor (it would write to a file), no system prompt, and pasted lines behind a bar.
    return PromptSession(
        history=history, interrupt_exception=InterruptedLineError, prompt_continuation=f"  {BAR}", mouse_support=False
    )


def _drop_typed() -> None:
    import termios

    with contextlib.suppress(termios.error):
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


@contextlib.contextmanager
def _no_echo() -> Iterator[None]:
    import termios

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    quiet = list(before)
    quiet[3] &= ~termios.ECHO
    termios.tcsetattr(descriptor, termios.TCSANOW, quiet)
    try:
        yield
    finally:
        with contextlib.suppress(termios.error):  # the terminal was closed
            termios.tcflush(descriptor, termios.TCIFLUSH)
            termios.tcsetattr(descriptor, termios.TCSANOW, before)
