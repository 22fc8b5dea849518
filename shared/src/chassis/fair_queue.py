"""Who gets the next thread of a web process: a fair queue by tenant, on the event loop.

No tenant holds more than a part of the threads, whatever it sends, and of heavy requests (batches, verifications, long
lists) one at a time. What it sends beyond that waits here, where it costs nothing, and tenants take turns when a thread
is free. A request that waits for too long, or finds too many of its tenant waiting, is refused.
"""

import asyncio
from collections import Counter, OrderedDict, deque
from dataclasses import dataclass, field
from typing import NamedTuple

from chassis.callers import Caller, Trust
from chassis.problems import Problem

WAIT_S = 5.0  # shorter than a stopping worker and the ingress wait for an answer
MOST_WAITING = 256  # of one tenant


REFUSED = "tip.refused"
"""Where the app finds, in the environment of a request, the refusal that it is to answer with."""


class QueueFull(Problem):
    """No thread for this caller in time."""

    def __init__(self) -> None:
        detail = "Too many of your requests are being worked on. Send fewer at a time."
        super().__init__(429, "too_many_requests", detail, headers={"Retry-After": "1"})


class Shares(NamedTuple):
    """How many requests may run at once, of a process's threads."""

    all: int
    tenant: int
    principal: int
    heavy: int
    anonymous: int
    unverified: int

    @classmethod
    def of(cls, threads: int) -> "Shares":
        half, quarter = max(2, threads // 2), max(2, threads // 4)
        return cls(threads, half, quarter, max(1, threads // 4), quarter, max(1, threads // 8))


@dataclass(eq=False, slots=True)
class Slot:
    """What a request waits for, and holds while it runs."""

    caller: Caller
    heavy: bool
    ready: asyncio.Future[None] = field(repr=False)


class FairQueue:
    """At most `threads` requests run; `acquire` waits for a slot and `release` ends it. For one event loop."""

    def __init__(self, threads: int, *, wait_s: float = WAIT_S, most_waiting: int = MOST_WAITING) -> None:
        self._shares, self._wait_s, self._most_waiting = Shares.of(threads), wait_s, most_waiting
        self._waiting: OrderedDict[str, deque[Slot]] = OrderedDict()  # by tenant, the next one to be served first
        self._running: Counter[object] = Counter()

    async def acquire(self, caller: Caller, *, heavy: bool = False) -> Slot:
        # Whoever is not verified gets a refusal at most, or is verified: neither is much work.
        heavy = heavy and caller.trust is Trust.VERIFIED
        slot = Slot(caller, heavy, asyncio.get_running_loop().create_future())
        queue = self._waiting.setdefault(_queue(caller), deque())
        if len(queue) >= self._most_waiting:
            raise QueueFull
        queue.append(slot)
        self._start()
        if slot.ready.done():
            return slot
        try:
            async with asyncio.timeout(self._wait_s):
                await slot.ready
        except TimeoutError:
            self._leave(slot)
            raise QueueFull from None
        except asyncio.CancelledError:
            self._leave(slot)
            raise
        return slot

    def release(self, slot: Slot) -> None:
        self._running.subtract(_counted(slot))
        self._running += Counter()  # forget those who have nothing running
        self._start()

    def _leave(self, slot: Slot) -> None:
        """Its caller has gone, or waited long enough; its slot may have become free in the same moment."""
        queue = self._waiting.get(_queue(slot.caller), ())
        if slot in queue:
            queue.remove(slot)  # type: ignore[union-attr]
            if not queue:
                del self._waiting[_queue(slot.caller)]
        elif slot.ready.done() and not slot.ready.cancelled():
            self.release(slot)

    def _start(self) -> None:
        while self._running["all"] < self._shares.all:
            slot = next((slot for slot in map(self._first, self._waiting) if slot), None)
            if slot is None:
                return
            self._run(slot)

    def _first(self, tenant: str) -> Slot | None:
        return next((slot for slot in self._waiting[tenant] if self._may_run(slot)), None)

    def _run(self, slot: Slot) -> None:
        tenant = _queue(slot.caller)
        self._waiting[tenant].remove(slot)
        self._waiting.move_to_end(tenant)
        if not self._waiting[tenant]:
            del self._waiting[tenant]
        self._running.update(_counted(slot))
        slot.ready.set_result(None)

    def _may_run(self, slot: Slot) -> bool:
        if slot.ready.done():  # its caller is about to leave
            return False
        shares, running, caller = self._shares, self._running, slot.caller
        if running[_queue(caller)] >= shares.tenant:
            return False
        if slot.heavy and (running[_queue(caller), "heavy"] or running["heavy"] >= shares.heavy):
            return False
        if caller.trust is Trust.VERIFIED:
            return running[caller] < shares.principal
        return running[caller.trust] < (shares.unverified if caller.trust is Trust.UNVERIFIED else shares.anonymous)


def _queue(caller: Caller) -> str:
    return f"{caller.trust}:{caller.tenant}"


def _counted(slot: Slot) -> list[object]:
    """Everything that a running request counts against."""
    caller = slot.caller
    counted: list[object] = ["all", _queue(caller), caller, caller.trust]
    return [*counted, "heavy", (_queue(caller), "heavy")] if slot.heavy else counted
