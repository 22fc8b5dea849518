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
class Turn:
    """A request that waits or runs."""

    caller: Caller
    heavy: bool
    ready: asyncio.Future[None] = field(repr=False)


class FairQueue:
    """At most `threads` requests run; `take` waits for a turn and `give_back` ends it. For one event loop."""

    def __init__(self, threads: int, *, wait_s: float = WAIT_S, most_waiting: int = MOST_WAITING) -> None:
        self._shares, self._wait_s, self._most_waiting = Shares.of(threads), wait_s, most_waiting
        self._waiting: OrderedDict[str, deque[Turn]] = OrderedDict()  # by tenant, the next one to be served first
        self._running: Counter[object] = Counter()

    async def take(self, caller: Caller, *, heavy: bool = False) -> Turn:
        turn = Turn(caller, heavy, asyncio.get_running_loop().create_future())
        line = self._waiting.setdefault(_line(caller), deque())
        if len(line) >= self._most_waiting:
            raise QueueFull
        line.append(turn)
        self._start()
        if turn.ready.done():
            return turn
        try:
            async with asyncio.timeout(self._wait_s):
                await turn.ready
        except TimeoutError:
            self._leave(turn)
            raise QueueFull from None
        except asyncio.CancelledError:
            self._leave(turn)
            raise
        return turn

    def give_back(self, turn: Turn) -> None:
        self._running.subtract(_counted(turn))
        self._running += Counter()  # forget those who have nothing running
        self._start()

    def reassign(self, turn: Turn, caller: Caller) -> None:
        """A running request turns out to be somebody's: from now on it counts against them."""
        self._running.subtract(_counted(turn))
        turn.caller = caller
        self._running.update(_counted(turn))
        self._start()

    def _leave(self, turn: Turn) -> None:
        """Its caller has gone, or waited long enough; its turn may have come in the same moment."""
        line = self._waiting.get(_line(turn.caller), ())
        if turn in line:
            line.remove(turn)  # type: ignore[union-attr]
            if not line:
                del self._waiting[_line(turn.caller)]
        elif turn.ready.done() and not turn.ready.cancelled():
            self.give_back(turn)

    def _start(self) -> None:
        while self._running["all"] < self._shares.all:
            turn = next((turn for turn in map(self._first, self._waiting) if turn), None)
            if turn is None:
                return
            self._run(turn)

    def _first(self, tenant: str) -> Turn | None:
        return next((turn for turn in self._waiting[tenant] if self._may_run(turn)), None)

    def _run(self, turn: Turn) -> None:
        tenant = _line(turn.caller)
        self._waiting[tenant].remove(turn)
        self._waiting.move_to_end(tenant)
        if not self._waiting[tenant]:
            del self._waiting[tenant]
        self._running.update(_counted(turn))
        turn.ready.set_result(None)

    def _may_run(self, turn: Turn) -> bool:
        if turn.ready.done():  # its caller is about to leave
            return False
        shares, running, caller = self._shares, self._running, turn.caller
        if running[_line(caller)] >= shares.tenant:
            return False
        if turn.heavy and (running[_line(caller), "heavy"] or running["heavy"] >= shares.heavy):
            return False
        if caller.trust is Trust.VERIFIED:
            return running[caller] < shares.principal
        return running[caller.trust] < (shares.unverified if caller.trust is Trust.UNVERIFIED else shares.anonymous)


def _line(caller: Caller) -> str:
    return f"{caller.trust}:{caller.tenant}"


def _counted(turn: Turn) -> list[object]:
    """Everything that a running request counts against."""
    caller = turn.caller
    counted: list[object] = ["all", _line(caller), caller, caller.trust]
    return [*counted, "heavy", (_line(caller), "heavy")] if turn.heavy else counted
