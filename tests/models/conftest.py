"""An OpenAI-compatible server for each test that wants one."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from tests.models.endpoint import Endpoint


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Endpoint]]:
    """Starts an `Endpoint` and points OpenAI's environment variables to it."""
    with ExitStack() as stack:

        def start(answer: object) -> Endpoint:
            endpoint = stack.enter_context(Endpoint(answer))
            monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
            monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
            return endpoint

        yield start
