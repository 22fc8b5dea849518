"""Waiting in a test: until something is so, and never longer than that."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


def eventually(found: Callable[[], T | None], seconds: float = 60.0, every: float = 0.02) -> T:
    """The first true answer; AssertionError with the last one when the time is over."""
    deadline = time.monotonic() + seconds
    while not (answer := found()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {answer!r}")
        time.sleep(every)
    return answer


async def eventually_async(
    found: Callable[[], T | Awaitable[T | None] | None], seconds: float = 60.0, every: float = 0.02
) -> T:
    """The same in an event loop; `found` may be a coroutine function."""
    deadline = time.monotonic() + seconds
    while True:
        answer = found()
        if isinstance(answer, Awaitable):
            answer = await answer
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {answer!r}")
        await asyncio.sleep(every)
