"""A stand-in for the terminal of `chat`: lines come from a queue, and what is said is kept."""

import asyncio
import contextlib
from collections.abc import Iterator

CTRL_D = "\x04"


class FakeTerminal:
    """Where nobody sits.

    Attributes:
        said: What was said so far, a text each.
        asked: Labels of the input lines that were opened.
        withdrawn: Input lines that were taken away.
    """

    width = 100

    def __init__(self, *lines: str) -> None:
        self.said: list[str] = []
        self.asked: list[str] = []
        self.withdrawn = 0
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self.type(*lines)

    def type(self, *lines: str) -> None:
        """Lines for the input lines to come, one each; `CTRL_D` is the key."""
        for line in lines:
            self._lines.put_nowait(line)

    def say(self, text: str, style: str = "", *, cut: bool = True) -> None:
        """Keep it."""
        self.said.append(text)

    async def prompt(self, label: str) -> str:
        """The next line."""
        return await self.answer(label) or ""

    async def answer(self, label: str) -> str | None:
        """The next line, or None if it was withdrawn."""
        self.asked.append(label)
        line = await self._lines.get()
        if line == CTRL_D:
            raise EOFError
        return line

    def withdraw(self) -> None:
        """Take the open line away."""
        self.withdrawn += 1
        self._lines.put_nowait(None)

    @contextlib.contextmanager
    def busy(self, text: str) -> Iterator[None]:
        """No spinner."""
        yield

    def busy_with(self, text: str) -> None:
        """No spinner to change."""

    def shown(self) -> str:
        """All that was said."""
        return "\n".join(self.said)
