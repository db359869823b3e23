"""The shell commands of README, tutorial and upgrading, run in their order, with `dev` in a terminal of its own.

Python that stands below the name of a file is written into it. Blocks marked ```shell run; ```shell
background is the first terminal; ```shell no-run needs keys, a keyboard or a clone of its own. A plain
block is what the reader should see after the commands above it: each of its lines, in order; "…" stands
for anything.
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from countersign.agent_client.dev_server import free_port

ROOT = Path(__file__).parents[2]
WALKS = ["README.md", "docs/tutorial.md", "docs/upgrading.md"]
PYTHON = {"python", "python no-run", "python replace"}
SHELL = {"shell", "shell background", "shell no-run", "shell wait-for-reload"}
READY = "countersign worker ready"
WORKER = "WORKER"
"""Where a page has this word, the reader puts the process that `dev` has named."""

_BLOCK = re.compile(r"(?P<before>[^\n]*)\n\n```(?P<mark>[^\n`]*)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
_FILE = re.compile(r"`(\w+\.py)`[^`]*:$")


@dataclass
class Reader:
    """Somebody who follows a page in a folder of their own, with two terminals."""

    folder: Path
    environment: dict[str, str]
    flags: str
    first_terminal: "subprocess.Popen[bytes] | None" = None
    last_file: Path | None = None
    printed: str = ""
    seen_ready: int = field(default=0)

    def do(self, before: str, mark: str, text: str) -> None:
        """Follow one block."""
        named = _FILE.search(before)
        if mark in ("python", "python replace"):
            self._write(named[1] if named and mark == "python" else None, mark, text)
        elif mark == "shell background":
            self._first_terminal(text)
        elif mark == "shell wait-for-reload":
            self._until_ready_again()
            self._run(text)
        elif mark == "shell":
            self._run(text)
        elif mark == "":
            self._compare(text)

    def _write(self, name: str | None, mark: str, text: str) -> None:
        if mark == "python replace":
            assert self.last_file is not None
            whole = self.last_file.read_text()
            first_line = text.splitlines()[0]
            assert first_line in whole, f"{first_line!r} is not in {self.last_file.name}"
            self.seen_ready = self._log().count(READY)
            start = whole.index(first_line)
            end = re.compile(r"\n\n\n").search(whole, start)
            assert end is not None
            self.last_file.write_text(whole[:start] + text.rstrip("\n") + whole[end.start() :])
        elif name is not None:
            self.last_file = self.folder / name
            self.last_file.write_text(text)

    def _first_terminal(self, text: str) -> None:
        command = f"exec {text.strip()} {self.flags}"
        with (self.folder / "first-terminal.log").open("wb") as log:
            self.first_terminal = subprocess.Popen(
                ["bash", "-c", command], cwd=self.folder, env=self.environment, stdout=log, stderr=log
            )
        self._until_ready_again()

    def _log(self) -> str:
        path = self.folder / "first-terminal.log"
        return path.read_text() if path.exists() else ""

    def _worker(self) -> str:
        named = re.search(r"^  worker +process (\d+)$", self._log(), re.MULTILINE)
        assert named, self._log()
        return named[1]

    def _until_ready_again(self) -> None:
        deadline = time.monotonic() + 60
        while self._log().count(READY) <= self.seen_ready:
            assert self.first_terminal is not None
            assert self.first_terminal.poll() is None, self._log()
            assert time.monotonic() < deadline, self._log()
            time.sleep(0.05)
        self.seen_ready = self._log().count(READY)

    def _run(self, text: str) -> None:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", text.replace(WORKER, self._worker()) if WORKER in text else text],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        self.printed = done.stdout + done.stderr
        assert done.returncode == 0, f"{text}\n{self.printed}\nfirst terminal:\n{self._log()}"

    def _compare(self, text: str) -> None:
        rest = self.printed
        for line in filter(None, (line.strip() for line in text.splitlines())):
            pattern = ".*".join(re.escape(part) for part in line.split("…"))
            found = re.search(pattern, rest)
            assert found, f"{line!r} is not (in this order) in:\n{self.printed}"
            rest = rest[found.end() :]

    def close(self) -> None:
        """Ctrl-C in the first terminal."""
        if self.first_terminal is not None and self.first_terminal.poll() is None:
            self.first_terminal.send_signal(signal.SIGINT)
            self.first_terminal.wait(60)


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    """See `Reader`; its `dev` listens on free ports."""
    port, ui_port = free_port(), free_port()
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "COUNTERSIGN_MODEL")}
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment["TEMPORAL_ADDRESS"] = f"127.0.0.1:{port}"
    found = Reader(tmp_path, environment, f"--port {port} --ui-port {ui_port}")
    yield found
    found.close()


def blocks(page: Path) -> Iterator[tuple[str, str, str]]:
    """(the line before, the mark, the text) of each block."""
    for found in _BLOCK.finditer(page.read_text()):
        yield found["before"], found["mark"].strip(), found["text"]


@pytest.mark.parametrize("name", WALKS)
def test_a_reader_who_types_what_the_page_says_gets_there(name: str, reader: Reader) -> None:
    """From the first file to the last answer, with what the page shows on the screen."""
    for before, mark, text in blocks(ROOT / name):
        assert mark in {"", *PYTHON, *SHELL}
        reader.do(before, mark, text)
