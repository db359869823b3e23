"""Threads for blocking clients of stores, of their own: slow tools must not keep workflow tasks from their values."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

_THREADS = ThreadPoolExecutor(16, thread_name_prefix="countersign-storage")


async def in_thread(work: Callable[[], T]) -> T:
    """Await blocking work."""
    return await asyncio.get_running_loop().run_in_executor(_THREADS, work)
