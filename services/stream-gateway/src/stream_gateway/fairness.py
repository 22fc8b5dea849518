"""Round-robin by key: whoever has much waiting gets no more at a time than whoever has little."""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Collection, Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from chassis.presence import OwnPresence

Item = TypeVar("Item")
Result = TypeVar("Result")

WRITES_PER_PASS = 256
"""Some ten milliseconds of work, by which one organization can delay another; fewer cost throughput."""


class QueueFull(Exception):
    """Too much waits under this key already."""


class ConcurrencyLimiter:
    """At most so many at a time under each key."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: Counter[Hashable] = Counter()

    @contextmanager
    def slot(self, key: Hashable) -> Iterator[None]:
        """Held while the body runs; QueueFull if there is none left."""
        if self._held[key] >= self._most:
            raise QueueFull
        self._held[key] += 1
        try:
            yield
        finally:
            self._held[key] -= 1
            if not self._held[key]:
                del self._held[key]


class RoundRobin(Generic[Item]):
    """A queue for each key, served one item at a time in turn."""

    def __init__(self) -> None:
        self._queues: dict[Hashable, deque[Item]] = {}

    def add(self, key: Hashable, item: Item) -> None:
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = deque()
        queue.append(item)

    def take(self, resting: Collection[Hashable] = ()) -> Item | None:
        """The next item of a key that is not resting."""
        key = next((key for key in self._queues if key not in resting), None)
        if key is None:
            return None
        queue = self._queues.pop(key)
        item = queue.popleft()
        if queue:
            self._queues[key] = queue
        return item

    def waiting(self, key: Hashable) -> int:
        return len(self._queues.get(key, ()))

    def __bool__(self) -> bool:
        return bool(self._queues)


class _Waiting(NamedTuple):
    key: Hashable
    outcome: asyncio.Future[Any]
    function: Callable[[], Any]


class FairThreads:
    """A few threads for the event loop; what waits for them is begun round-robin by key.

    While other keys are present, one key's functions begin at least `apart_s` apart.
    """

    def __init__(self, count: int, name: str, *, most_waiting: int | None = None, apart_s: float = 0.0) -> None:
        self._threads = ThreadPoolExecutor(count, name)
        self._idle, self._most_waiting, self._apart_s = count, most_waiting, apart_s
        self._waiting: RoundRobin[_Waiting] = RoundRobin()
        self._resting: set[Hashable] = set()
        self._presence: OwnPresence[Hashable] = OwnPresence()

    async def run(self, key: Hashable, function: Callable[[], Result]) -> Result:
        """What the function returns. Cancelled before its turn, it is never begun."""
        if self._most_waiting is not None and self._waiting.waiting(key) >= self._most_waiting:
            raise QueueFull
        outcome: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._presence.note(key)
        self._waiting.add(key, _Waiting(key, outcome, function))
        self._begin()
        return await outcome

    def _begin(self) -> None:
        while self._idle and (waiting := self._waiting.take(self._resting)):
            if waiting.outcome.done():
                continue
            self._idle -= 1
            self._rest(waiting.key)
            running = asyncio.get_running_loop().run_in_executor(self._threads, waiting.function)
            running.add_done_callback(partial(self._finish, waiting.outcome))

    def _rest(self, key: Hashable) -> None:
        if self._apart_s and not self._presence.is_alone(key):
            self._resting.add(key)
            asyncio.get_running_loop().call_later(self._apart_s, self._end_rest, key)

    def _end_rest(self, key: Hashable) -> None:
        self._resting.discard(key)
        self._begin()

    def _finish(self, outcome: asyncio.Future[Any], finished: asyncio.Future[Any]) -> None:
        self._idle += 1
        if finished.cancelled():
            outcome.cancel()
        elif error := finished.exception():
            if not outcome.done():
                outcome.set_exception(error)
        elif not outcome.done():
            outcome.set_result(finished.result())
        self._begin()

    def close(self) -> None:
        self._waiting = RoundRobin()
        self._threads.shutdown(wait=False, cancel_futures=True)


class WriteScheduler:
    """Lets streams write round-robin by organization, and only so many in one pass of the event loop.

    asyncio runs all that is ready before what becomes ready meanwhile: an event for a thousand streams of one account
    would otherwise be written to every one of them before any other stream gets its turn.
    """

    def __init__(self, per_pass: int = WRITES_PER_PASS) -> None:
        self._per_pass = self._left = per_pass
        self._waiting: RoundRobin[asyncio.Future[None]] = RoundRobin()
        self._scheduled = False

    async def acquire(self, key: Hashable) -> None:
        """Until the key may write: at once while this pass has room and nobody waits."""
        if self._left and not self._waiting:
            self._left -= 1
            self._schedule()
            return
        waiter = asyncio.get_running_loop().create_future()
        self.wake(key, waiter)
        await waiter

    def wake(self, key: Hashable, waiter: asyncio.Future[None]) -> None:
        """Complete the future as soon as the key may write."""
        self._waiting.add(key, waiter)
        self._schedule()

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._next_pass)

    def _next_pass(self) -> None:
        self._scheduled, self._left = False, self._per_pass
        while self._left and (waiter := self._waiting.take()):
            if not waiter.done():
                waiter.set_result(None)
                self._left -= 1
        if self._left < self._per_pass:
            self._schedule()
