"""What a function of the user's comes to, sync or async."""

import inspect
from typing import Any


async def settled(value: Any) -> Any:
    """What a hook, a handler or a judge of answers returned; awaited, if it can be.

    Raises:
        TypeError: For a generator: nothing of it has run, and as a value it would count as true.
    """
    found = await value if inspect.isawaitable(value) else value
    if inspect.isgenerator(found) or inspect.isasyncgen(found):
        name = getattr(found, "__qualname__", type(found).__name__)
        raise TypeError(f"{name} is a generator, so nothing of it has run: it must return, not yield")
    return found
