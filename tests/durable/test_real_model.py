"""The janitor with a model on an OpenAI-compatible server: killed in the middle of its stream, and throttled."""

import asyncio
import os
import threading
import time

import pytest
from tests.durable.test_waiting import questions
from tests.models.endpoint import Endpoint, Reply, asks, fails, says

FIVE_DAYS_AGO_S = 6 * 86_400


@pytest.fixture
def attic(tmp_path):
    """A folder with two old files and a new one."""
    folder = tmp_path / "attic"
    folder.mkdir()
    old_s = time.time() - FIVE_DAYS_AGO_S
    for name in ("a.log", "b.log", "new.log"):
        (folder / name).write_text(name)
        if name != "new.log":
            os.utime(folder / name, (old_s, old_s))
    return folder


class Janitor:
    """Plays the model: list the folder, then delete the two old files with a call each, then say so.

    The first time that it is asked for a step named in `held`, its stream stops in the middle until `let_go`.
    """

    def __init__(self, folder, held=()):
        self.folder, self._held = folder, set(held)
        self.let_go = threading.Event()
        self.streaming: list[str] = []

    def __call__(self, request) -> Reply:
        results = [message["content"] for message in request["messages"] if message["role"] == "tool"]
        step = {0: "look", 1: "delete"}.get(len(results), "tell")
        hold = self.let_go if step in self._held else None
        self._held.discard(step)
        self.streaming.append(step)
        if step == "look":
            return asks(("list_files", {"folder": str(self.folder)}), hold_midway=hold)
        if step == "delete":
            paths = [str(self.folder / name) for name in ("a.log", "b.log")]
            return asks(*(("delete_files", {"paths": [path]}) for path in paths), hold_midway=hold)
        return says(f"Deleted: {'; '.join(results[1:])}", hold_midway=hold)

    async def until(self, step):
        """Wait until the model's stream of that step is under way."""
        async with asyncio.timeout(60):
            while step not in self.streaming:
                await asyncio.sleep(0.02)


@pytest.fixture
def point_to(monkeypatch):
    """Puts an endpoint's address into the worker's environment."""

    def to(endpoint: Endpoint) -> None:
        monkeypatch.setenv("COUNTERSIGN_MODEL", "openai:test-model")
        monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")

    return to


async def test_a_worker_killed_while_the_model_streams_asks_once_and_deletes_once(lab, attic, point_to):
    """Two gated calls in one message; the kills fall into the stream that asks for them and into the last one."""
    model = Janitor(attic, held=["delete", "tell"])
    with Endpoint(model) as endpoint:
        point_to(endpoint)
        worker = lab.worker("examples.janitor")
        session = await lab.start(worker, "janitor", f"Delete files older than 5 days in {attic}")
        await model.until("delete")
        worker.restart()
        first, second = await questions(session, 2)
        assert sorted(path for question in (first, second) for path in question.calls[0].input["paths"]) == [
            str(attic / "a.log"),
            str(attic / "b.log"),
        ]
        await session.answer([(first.id, "y"), (second.id, "y")])
        await model.until("tell")
        worker.restart()
        result = await session.result()
        model.let_go.set()
    assert result.message["content"][0]["text"].count('"missing": []') == 2, "each file was there when its call ran"
    assert sorted(path.name for path in attic.iterdir()) == ["new.log"]
    answered = [entry.detail["question"] for entry in await session.audit() if entry.event == "answered"]
    assert sorted(answered) == sorted([first.id, second.id]), "each question was asked and answered once"
    assert model.streaming == ["look", "delete", "delete", "tell", "tell"]
    assert result.usage["totalTokens"] == 3 * 16, "a broken stream is not counted"
    assert result.latency_ms > 0


async def test_a_throttled_model_is_called_again_after_the_pause_it_asks_for(lab, attic, point_to):
    """Temporal retries; the turn goes on as if nothing had been."""
    replies = [fails(429, retry_after="0"), fails(503), says("hello")]
    with Endpoint(replies) as endpoint:
        point_to(endpoint)
        session = await lab.start(lab.worker("examples.janitor"), "janitor", "hello")
        result = await session.result()
    assert (result.message["content"], len(endpoint.requests)) == ([{"text": "hello"}], 3)


async def test_a_refused_key_ends_the_turn_by_name_and_is_not_tried_again(lab, attic, point_to):
    """The error is the one of the tree, with what to check."""
    with Endpoint([fails(401, "bad key")]) as endpoint:
        point_to(endpoint)
        session = await lab.start(lab.worker("examples.janitor"), "janitor", "hello")
        with pytest.raises(Exception, match=r"ModelAuthenticationError.*check the key"):
            await session.result()
    assert len(endpoint.requests) == 1
