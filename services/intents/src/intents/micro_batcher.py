"""Requests that arrive at the same time share a batch, which a thread works through while the event loop goes on."""

import asyncio
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from chassis.fair_queue import MOST_WAITING, WAIT_S, QueueFull

Request = TypeVar("Request")
Response = TypeVar("Response")


LEAST_SHARE = 0.75
"""Of a batch, that remains if a key's second and further requests wait for the next one."""


class _Waiting(NamedTuple):
    key: Hashable
    tenant: Hashable
    request: Any
    response: asyncio.Future[Any]
    refused_at: float
    """When it is refused if it is in no batch then."""


class _Batch(NamedTuple):
    began: float
    members: list[_Waiting]
    keys: frozenset[Hashable]


class MicroBatcher(Generic[Request, Response]):
    """`run_batch` takes the requests that came while it was busy, and returns one response each, in order.

    At most one batch per key is in flight; later requests for that key queue here instead of on its row lock. One batch
    at a time is the largest; another one starts when the oldest request has waited for `overtake_after_s`, so that a
    batch which is stuck does not stop the others. When more wait than a batch takes, tenants take turns. Callers that
    were just answered often send again at once: a batch lingers until as many wait as did recently, but not for longer
    than the batch before took, nor `linger_s`. QueueFull is raised at once when `max_waiting` requests of the tenant
    wait already, and after `refuse_after_s` for a request that is in no batch.
    """

    def __init__(
        self,
        run_batch: Callable[[Sequence[Request]], Sequence[Response]],
        *,
        max_in_flight: int,
        max_batch: int,
        overtake_after_s: float,
        linger_s: float,
        max_waiting: int = MOST_WAITING,
        refuse_after_s: float = WAIT_S,
    ) -> None:
        self._run_batch, self._max_batch, self._max_in_flight = run_batch, max_batch, max_in_flight
        self._max_waiting, self._refuse_after_s = max_waiting, refuse_after_s
        self._overtake_after_s, self._linger_s = overtake_after_s, linger_s
        self._recent_peak = 0  # the most that waited or were in flight since the last batch began
        self._linger_until = 0.0
        self._threads = ThreadPoolExecutor(max_in_flight, thread_name_prefix="batch")
        self._waiting: list[_Waiting] = []
        self._waiting_of: Counter[Hashable] = Counter()  # by tenant
        self._in_flight: list[_Batch] = []
        self._next_start: asyncio.Handle | None = None
        self._next_refusal: asyncio.TimerHandle | None = None

    async def submit(self, key: Hashable, request: Request, tenant: Hashable = None) -> Response:
        if self._waiting_of[tenant] >= self._max_waiting:
            raise QueueFull
        loop = asyncio.get_running_loop()
        waiting = _Waiting(key, tenant, request, loop.create_future(), loop.time() + self._refuse_after_s)
        self._waiting.append(waiting)
        self._waiting_of[tenant] += 1
        self._recent_peak = max(self._recent_peak, self._present())
        self._schedule(loop)
        if self._next_refusal is None:
            self._next_refusal = loop.call_at(waiting.refused_at, self._refuse_late, loop)
        response: Response = await waiting.response
        return response

    def _refuse_late(self, loop: asyncio.AbstractEventLoop) -> None:
        """Those in a batch may be written already: they are answered when that is known. One timer serves all."""
        for waiting in self._waiting:
            if waiting.refused_at <= loop.time() and not waiting.response.done():
                waiting.response.set_exception(QueueFull())
        later = [waiting.refused_at for waiting in self._waiting if not waiting.response.done()]
        self._next_refusal = loop.call_at(later[0], self._refuse_late, loop) if later else None

    def _present(self) -> int:
        return len(self._waiting) + sum(len(batch.members) for batch in self._in_flight)

    def _schedule(self, loop: asyncio.AbstractEventLoop) -> None:
        if len(self._in_flight) == self._max_in_flight or not self._waiting:
            return
        wait_s = self._wait_s(loop.time())
        if self._next_start and (wait_s > 0 or not isinstance(self._next_start, asyncio.TimerHandle)):
            return
        self._cancel_next_start()
        if wait_s > 0:
            self._next_start = loop.call_later(wait_s, self._start, loop)
        else:  # after what else the loop has to do now: other requests that have arrived come along
            self._next_start = loop.call_soon(self._start, loop)

    def _wait_s(self, now: float) -> float:
        if self._in_flight:
            return max(batch.began for batch in self._in_flight) + self._overtake_after_s - now
        if len(self._waiting) >= min(self._recent_peak, self._max_batch):
            return 0.0
        return self._linger_until - now

    def _cancel_next_start(self) -> None:
        if self._next_start:
            self._next_start.cancel()
            self._next_start = None

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._next_start = None
        members = self._take()
        if not members:
            return
        batch = _Batch(loop.time(), members, frozenset(member.key for member in members))
        self._in_flight.append(batch)
        self._recent_peak = self._present()
        done = loop.run_in_executor(self._threads, self._run_batch, [member.request for member in members])
        done.add_done_callback(partial(self._finish, loop, batch))
        self._schedule(loop)

    def _take(self) -> list[_Waiting]:
        busy = frozenset[Hashable]().union(*(batch.keys for batch in self._in_flight))
        # A caller that has gone wants nothing done any more.
        present = [waiting for waiting in self._waiting if not waiting.response.done()]
        suitable = [waiting for waiting in present if waiting.key not in busy]
        taken = suitable if len(suitable) <= self._max_batch else _round_robin(suitable)[: self._max_batch]
        taken = _one_of_each_key(taken)
        chosen = {id(waiting) for waiting in taken}
        self._waiting = [waiting for waiting in present if id(waiting) not in chosen]
        self._waiting_of = Counter(waiting.tenant for waiting in self._waiting)
        return taken

    def _finish(
        self, loop: asyncio.AbstractEventLoop, batch: _Batch, done: "asyncio.Future[Sequence[Response]]"
    ) -> None:
        self._in_flight.remove(batch)
        self._cancel_next_start()
        self._linger_until = loop.time() + min(self._linger_s, loop.time() - batch.began)
        error = done.exception()
        responses = [None] * len(batch.members) if error else done.result()
        for member, response in zip(batch.members, responses, strict=True):
            if member.response.done():  # its caller has gone meanwhile
                continue
            if error:
                member.response.set_exception(error)
            else:
                member.response.set_result(response)
        self._schedule(loop)


def _one_of_each_key(taken: list[_Waiting]) -> list[_Waiting]:
    """A key's second request makes a batch costlier: it waits for the next one, unless too many had to."""
    firsts: dict[Hashable, _Waiting] = {}
    for waiting in taken:
        firsts.setdefault(waiting.key, waiting)
    return list(firsts.values()) if len(firsts) >= LEAST_SHARE * len(taken) else taken


def _round_robin(suitable: Sequence[_Waiting]) -> list[_Waiting]:
    """The first of every tenant, then the second of every tenant, and so on."""
    count: Counter[Hashable] = Counter()
    rounds: dict[int, list[_Waiting]] = {}
    for waiting in suitable:
        rounds.setdefault(count[waiting.tenant], []).append(waiting)
        count[waiting.tenant] += 1
    return [waiting for number in sorted(rounds) for waiting in rounds[number]]
