"""Who gets the next thread of a web process: a fair queue by tenant, on the event loop.

No tenant holds more than a part of the threads, whatever it sends, and of heavy requests (batches, verifications, long
lists) one at a time. After a heavy request its tenant pauses with the next one of its kind, one that reads or one that
writes, and after a refused credential strangers do, as long as whoever releases the slot says. What a tenant sends
beyond that waits here, where it costs nothing, and tenants take turns when a thread is free. A request that waits for
too long, or finds too many of its tenant waiting, is refused.

Requests are grouped by their caller's trust, its tenant, their weight and their principal, groups within groups, and
each group has its share. Of the requests in one narrowest group either all may run or none, and a group that has used
up its share is passed over as a whole: so the next one is found without visiting each that waits.
"""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from chassis.callers import Caller, Trust
from chassis.problems import Problem

WAIT_S = 5.0  # after its arrival; a stopping worker and the ingress wait longer for the answer
MOST_WAITING = 256  # of one tenant
SWITCH_S = 0.001
"""How long a thread that computes keeps the interpreter while others want it, in processes that answer callers. A
request needs it some twenty times, so with Python's own five milliseconds one verification would add a tenth of a
second to every read beside it."""
_HEAVY = "heavy"


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
    """Of each kind: those that write and those that read."""
    anonymous: int
    unverified: int

    def of_trust(self, trust: Trust) -> int:
        return {Trust.VERIFIED: self.all, Trust.ANONYMOUS: self.anonymous, Trust.UNVERIFIED: self.unverified}[trust]

    @classmethod
    def of(cls, threads: int) -> "Shares":
        half, quarter = max(2, threads // 2), max(2, threads // 4)
        return cls(threads, half, quarter, max(1, threads // 4), quarter, max(1, threads // 8))


@dataclass(eq=False, slots=True)
class Slot:
    """What a request waits for, and holds while it runs."""

    caller: Caller
    heavy: bool
    writes: bool
    ready: asyncio.Future[None] = field(repr=False)
    has_waited: bool = False

    @property
    def groups(self) -> tuple[Trust, str, str | None, str]:
        """The names of the groups it is in, from the widest to the narrowest."""
        heavy = ("writes" if self.writes else "reads") if self.heavy else None
        return self.caller.trust, self.caller.tenant, heavy, self.caller.principal


class FairQueue:
    """At most `threads` requests run; `acquire` waits for a slot and `release` ends it. For one event loop."""

    def __init__(self, threads: int, *, wait_s: float = WAIT_S, most_waiting: int = MOST_WAITING) -> None:
        self._shares, self._wait_s, self._most_waiting = Shares.of(threads), wait_s, most_waiting
        # Groups by name, in each the one to be served next first; the narrowest are deques of slots.
        self._waiting: OrderedDict[Any, Any] = OrderedDict()
        self._waiting_of: Counter[tuple[Trust, str]] = Counter()
        self._running: Counter[object] = Counter()

    async def acquire(
        self, caller: Caller, *, heavy: bool = False, writes: bool = False, arrived: float | None = None
    ) -> Slot:
        """A slot for a request that arrived now, or then; QueueFull if it gets none in time."""
        now = asyncio.get_running_loop().time()
        until = (now if arrived is None else arrived) + self._wait_s
        if now >= until:
            raise QueueFull
        # Whoever is not verified gets a refusal at most, or is verified: neither is much work.
        heavy = heavy and caller.trust is Trust.VERIFIED
        slot = Slot(caller, heavy, writes, asyncio.get_running_loop().create_future())
        if self._may_run(slot):  # then nobody in its groups waits, and those of others who wait may not run
            self._run(slot)
            return slot
        self._enqueue(slot)
        slot.has_waited = True
        try:
            async with asyncio.timeout_at(until):
                await slot.ready
        except TimeoutError:
            self._leave(slot)
            raise QueueFull from None
        except asyncio.CancelledError:
            self._leave(slot)
            raise
        return slot

    def release(self, slot: Slot, *, pause_s: float = 0.0) -> None:
        """Free the thread. For `pause_s` a heavy request still counts for its kind, any other for its trust."""
        counted = _counted(slot)
        if pause_s > 0:
            paused = slot.groups[:3] if slot.heavy else slot.groups[:1]
            counted.remove(paused)
            asyncio.get_running_loop().call_later(pause_s, self._free, [paused])
        self._free(counted)

    def _free(self, counted: Sequence[object]) -> None:
        self._running.subtract(counted)
        self._running += Counter()  # forget those who have nothing running
        while self._has_room() and (following := self._next(self._waiting)):
            self._dequeue(following, served=True)
            self._run(following)

    def _enqueue(self, slot: Slot) -> None:
        *wider, narrowest = slot.groups
        if self._waiting_of[slot.groups[:2]] >= self._most_waiting:
            raise QueueFull
        self._waiting_of[slot.groups[:2]] += 1
        group = self._waiting
        for name in wider:
            group = group.setdefault(name, OrderedDict())
        group.setdefault(narrowest, deque()).append(slot)

    def _dequeue(self, slot: Slot, *, served: bool = False) -> None:
        self._waiting_of[slot.groups[:2]] -= 1
        if not self._waiting_of[slot.groups[:2]]:
            del self._waiting_of[slot.groups[:2]]
        _remove(slot, self._waiting, slot.groups, served=served)

    def _leave(self, slot: Slot) -> None:
        """The caller has gone or has waited too long; the slot may have been granted in the same moment."""
        if slot.ready.cancelled():
            self._dequeue(slot)
        else:
            self.release(slot)

    def _run(self, slot: Slot) -> None:
        self._running.update(_counted(slot))
        slot.ready.set_result(None)

    def _next(self, waiting: OrderedDict[Any, Any], *names: Any) -> Slot | None:
        """The request to be served next, of all or of the group so named."""
        for name, group in waiting.items():
            if not self._has_room(*names, name):
                continue
            found: Slot | None
            if isinstance(group, deque):
                found = next((slot for slot in group if not slot.ready.done()), None)  # else its caller is leaving
            else:
                found = self._next(group, *names, name)
            if found:
                return found
        return None

    def _may_run(self, slot: Slot) -> bool:
        return all(self._has_room(*slot.groups[:depth]) for depth in range(len(slot.groups) + 1))

    def _has_room(self, *names: Any) -> bool:
        """Whether the share of the group so named admits one more."""
        shares, running = self._shares, self._running
        match names:
            case ():
                return running[names] < shares.all
            case (trust,):
                return running[names] < shares.of_trust(trust)
            case (_, _):
                return running[names] < shares.tenant
            case (trust, tenant, heavy):
                others = running[names] + running[trust, tenant, _HEAVY]
                return not heavy or (not others and running[_HEAVY, heavy] < shares.heavy)
            case (trust, tenant, _, principal):
                return running[trust, tenant, principal] < shares.principal
        raise AssertionError(names)


def _remove(slot: Slot, waiting: OrderedDict[Any, Any], names: Sequence[Any], *, served: bool) -> None:
    """A group that was served is the last of its kind to be served again."""
    name, *narrower = names
    if narrower:
        _remove(slot, waiting[name], narrower, served=served)
    else:
        waiting[name].remove(slot)
    if not waiting[name]:
        del waiting[name]
    elif served:
        waiting.move_to_end(name)


def _counted(slot: Slot) -> list[object]:
    """Everything that a running request counts against."""
    trust, tenant, heavy, principal = slot.groups
    counted: list[object] = [(), (trust,), (trust, tenant), (trust, tenant, heavy), (trust, tenant, principal)]
    return [*counted, (trust, tenant, _HEAVY), (_HEAVY, heavy)] if heavy else counted
