"""The guard against cold queries on an SDK that it does not know."""

import logging
from typing import Any

from countersign.serving.cold_queries import forget_after_cold_queries


class _LaterWorker:
    """A worker that keeps its insides elsewhere."""


def test_a_worker_that_cant_be_guarded_is_left_alone(caplog):
    """It serves, and its log says what may happen."""
    later: Any = _LaterWorker()
    with caplog.at_level(logging.WARNING):
        forget_after_cold_queries(later)
    assert "issue 1146" in caplog.text
