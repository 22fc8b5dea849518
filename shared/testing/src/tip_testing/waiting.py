"""Waiting in a test: until something is so, and never longer than that."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

SLOWEST_POLL_SECONDS = 0.1
"""What is not so at once is polled ever less often: whoever polls takes the processor from what it waits for."""


def eventually(found: Callable[[], T | None], seconds: float = 60.0, every: float = 0.01) -> T:
    """The first true answer; AssertionError with the last one when the time is over."""
    deadline = time.monotonic() + seconds
    while not (answer := found()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {answer!r}")
        time.sleep(every)
        every = _longer(every)
    return answer


def _longer(every: float) -> float:
    return max(every, min(1.3 * every, SLOWEST_POLL_SECONDS))


async def eventually_async(
    found: Callable[[], T | Awaitable[T | None] | None], seconds: float = 60.0, every: float = 0.01
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
        every = _longer(every)
