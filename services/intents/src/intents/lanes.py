"""What comes at the same time is done together: batches of waiting requests, each in a thread, on the event loop."""

import asyncio
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from chassis.fair_queue import MOST_WAITING, WAIT_S, QueueFull

Asked = TypeVar("Asked")
Told = TypeVar("Told")


class _Waiting(NamedTuple):
    group: Hashable
    tenant: Hashable
    asked: Any
    answer: asyncio.Future[Any]


class _Batch(NamedTuple):
    began: float
    members: list[_Waiting]
    groups: frozenset[Hashable]


class Lanes(Generic[Asked, Told]):
    """`work` is given what has come while it was busy, and answers each of it, in order.

    Of one group everything is in one lane at a time: whoever would have to wait for it in the database waits here, and
    holds up nobody else. One lane makes the largest batches; another opens for those who have waited for `patience_s`,
    so that a lane which is stuck leaves a way. When more wait than a batch takes, tenants take turns. Those who have
    just been answered will probably ask again at once: a batch waits until as many are there as were lately, but not
    for longer than the one before took, nor `gather_s`. QueueFull is raised at once when `most_waiting` of the tenant
    wait already, and to whoever is in no batch after `refuse_after_s`.
    """

    def __init__(
        self,
        work: Callable[[Sequence[Asked]], Sequence[Told]],
        *,
        lanes: int,
        most: int,
        patience_s: float,
        gather_s: float,
        most_waiting: int = MOST_WAITING,
        refuse_after_s: float = WAIT_S,
    ) -> None:
        self._work, self._most, self._lanes = work, most, lanes
        self._most_waiting, self._refuse_after_s = most_waiting, refuse_after_s
        self._patience_s, self._gather_s = patience_s, gather_s
        self._lately = 0  # the most that were waiting or under way since the last batch began
        self._gathered_by = 0.0
        self._threads = ThreadPoolExecutor(lanes, thread_name_prefix="lane")
        self._waiting: list[_Waiting] = []
        self._waiting_of: Counter[Hashable] = Counter()  # by tenant
        self._under_way: list[_Batch] = []
        self._next: asyncio.Handle | None = None

    async def ask(self, group: Hashable, asked: Asked, tenant: Hashable = None) -> Told:
        if self._waiting_of[tenant] >= self._most_waiting:
            raise QueueFull
        loop = asyncio.get_running_loop()
        waiting = _Waiting(group, tenant, asked, loop.create_future())
        self._waiting.append(waiting)
        self._waiting_of[tenant] += 1
        self._lately = max(self._lately, self._present())
        self._wake(loop)
        late = loop.call_later(self._refuse_after_s, self._refuse_if_waiting, waiting)
        try:
            told: Told = await waiting.answer
        finally:
            late.cancel()
        return told

    def _refuse_if_waiting(self, late: _Waiting) -> None:
        """What is in a batch may be written already: it is answered when that is known."""
        if any(waiting is late for waiting in self._waiting) and not late.answer.done():
            late.answer.set_exception(QueueFull())

    def _present(self) -> int:
        return len(self._waiting) + sum(len(batch.members) for batch in self._under_way)

    def _wake(self, loop: asyncio.AbstractEventLoop) -> None:
        if len(self._under_way) == self._lanes or not self._waiting:
            return
        wait_s = self._wait_s(loop.time())
        if self._next and (wait_s > 0 or not isinstance(self._next, asyncio.TimerHandle)):
            return
        self._forget_next()
        if wait_s > 0:
            self._next = loop.call_later(wait_s, self._start, loop)
        else:  # after what else the loop has to do now: other requests that have arrived come along
            self._next = loop.call_soon(self._start, loop)

    def _wait_s(self, now: float) -> float:
        if self._under_way:
            return max(batch.began for batch in self._under_way) + self._patience_s - now
        if len(self._waiting) >= min(self._lately, self._most):
            return 0.0
        return self._gathered_by - now

    def _forget_next(self) -> None:
        if self._next:
            self._next.cancel()
            self._next = None

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._next = None
        members = self._take()
        if not members:
            return
        batch = _Batch(loop.time(), members, frozenset(one.group for one in members))
        self._under_way.append(batch)
        self._lately = self._present()
        done = loop.run_in_executor(self._threads, self._work, [one.asked for one in members])
        done.add_done_callback(partial(self._finish, loop, batch))
        self._wake(loop)

    def _take(self) -> list[_Waiting]:
        elsewhere = frozenset[Hashable]().union(*(batch.groups for batch in self._under_way))
        # Of those whose caller has gone, and wants nothing done any more, nothing is left.
        present = [one for one in self._waiting if not one.answer.done()]
        suitable = [one for one in present if one.group not in elsewhere]
        taken = suitable if len(suitable) <= self._most else _in_turns(suitable)[: self._most]
        chosen = {id(one) for one in taken}
        self._waiting = [one for one in present if id(one) not in chosen]
        self._waiting_of = Counter(one.tenant for one in self._waiting)
        return taken

    def _finish(self, loop: asyncio.AbstractEventLoop, batch: _Batch, done: "asyncio.Future[Sequence[Told]]") -> None:
        self._under_way.remove(batch)
        self._forget_next()
        self._gathered_by = loop.time() + min(self._gather_s, loop.time() - batch.began)
        error = done.exception()
        answers = [None] * len(batch.members) if error else done.result()
        for one, answer in zip(batch.members, answers, strict=True):
            if one.answer.done():  # its caller has gone meanwhile
                continue
            if error:
                one.answer.set_exception(error)
            else:
                one.answer.set_result(answer)
        self._wake(loop)


def _in_turns(waiting: Sequence[_Waiting]) -> list[_Waiting]:
    """The first of every tenant, then the second of every tenant, and so on."""
    seen: Counter[Hashable] = Counter()
    rounds: dict[int, list[_Waiting]] = {}
    for one in waiting:
        rounds.setdefault(seen[one.tenant], []).append(one)
        seen[one.tenant] += 1
    return [one for number in sorted(rounds) for one in rounds[number]]
