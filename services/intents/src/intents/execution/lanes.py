"""Lanes: what goes to one broker in one environment has threads and room for claims of its own.

So a broker whose calls are slow, or never answered, holds up nothing that goes to another. Within a lane organizations
and accounts share (`fair_share`).
"""

import math
import queue
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from intents.execution.account_limiter import AccountConcurrencyLimiter
from intents.execution.in_flight import ClaimBudget, InFlight
from intents.execution.model.commands import LeasedCommand
from intents.execution.model.tries import ALL, Tries

BUSY_SECONDS = 0.1  # how often a lane without ample room is searched, also for who has nothing in flight there
MOST_IN_FLIGHT = 1_000
BACKLOG_SECONDS = 0.05  # how long a command in flight may have to wait for a thread


@dataclass
class Lane:
    threads: int
    account_calls: int
    run: Callable[[LeasedCommand], object]
    """Says whether it was tried: if not, that it took no time says nothing of how quick calls are."""
    last_turn: UUID = field(default=UUID(int=0), init=False)
    """The organization of which something was claimed last,"""
    last_try: UUID = field(default=UUID(int=0), init=False)
    """and of the wait queue of a circuit."""
    busy_until: float = field(default=0.0, init=False)
    """Until then nothing is claimed, unless there is ample room;"""
    is_skipped: bool = field(default=False, init=False)
    """so it was at the last claim."""
    in_flight: InFlight = field(default_factory=InFlight, init=False)
    _more: bool = field(default=True, init=False)
    _left_out: bool = field(default=False, init=False)
    """Whether the last claim took nothing of accounts that had as many calls as they may."""
    _call_seconds: float = field(default=BACKLOG_SECONDS, init=False)
    _todo: "queue.SimpleQueue[LeasedCommand | None]" = field(default_factory=queue.SimpleQueue, init=False)
    _serving: list[threading.Thread] = field(default_factory=list, init=False)
    _ending: bool = field(default=False, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def __post_init__(self) -> None:
        self.limiter = AccountConcurrencyLimiter(self.threads, self.account_calls)

    def budget(self) -> ClaimBudget:
        """What may be claimed now."""
        budget = self._room()
        self.is_skipped = self._searched_in(budget) > 0
        if self.is_skipped:
            return budget._replace(total=0)
        if not budget.is_ample:
            self.busy_until = time.monotonic() + BUSY_SECONDS
        return budget

    def _room(self) -> ClaimBudget:
        return self.in_flight.budget(self._most_in_flight(), self.limiter.blocked())

    def _searched_in(self, budget: ClaimBudget) -> float:
        """In how many seconds a claim searches this lane."""
        return 0.0 if budget.is_ample else max(0.0, self.busy_until - time.monotonic())

    def begin(self, budget: ClaimBudget, claimed: Sequence[LeasedCommand], tries: Tries = ALL) -> bool:
        """Run what was claimed; whether there may be more that can be claimed at once."""
        waited = [command for command in claimed if command.waiting_since]
        new = [command for command in claimed if not command.waiting_since]
        queued = [command for command in waited if not tries.limit(command.organization_id)]
        taken = Counter(command.organization_id for command in (*new, *queued))
        # Each of several organizations may have been cut short, and the wait queue has a half of the room at most.
        at_once = taken.total() == budget.total or len(taken) > 1 or bool(queued)
        self._more, self._left_out = at_once or budget.cuts_short(taken), bool(budget.left_out)
        self.last_turn, self.last_try = _turn_after(self.last_turn, new), _turn_after(self.last_try, waited)
        self.in_flight.add(claimed)
        for command in claimed:
            if self.limiter.enter(command):
                self._put(command)
        return at_once

    def end(self, recorded: Sequence[LeasedCommand]) -> float:
        """These are settled or put back; in how many seconds it is worth while to claim, if nothing else happens."""
        self.in_flight.remove(recorded)
        may_be_more = self._more or (self._left_out and not self.limiter.blocked())
        return self._searched_in(self._room()) if may_be_more else math.inf

    def close(self) -> None:
        """Finish what is in flight."""
        self._ending = True
        for _ in self._serving:
            self._todo.put(None)
        for thread in self._serving:
            thread.join()

    def _most_in_flight(self) -> int:
        """One for each thread, so that nothing waits for another; more only while calls are quick."""
        return max(self.threads, min(MOST_IN_FLIGHT, int(self.threads * BACKLOG_SECONDS / self._call_seconds)))

    def _put(self, command: LeasedCommand) -> None:
        """For a thread that is free; there is one for each call that has begun."""
        self._todo.put(command)
        with self._lock:
            if len(self._serving) < self.limiter.calls:
                self._serving.append(threading.Thread(target=self._serve, name="broker", daemon=True))
                self._serving[-1].start()

    def _serve(self) -> None:
        """One thread: runs a command, then one that waited for it. Others that may start go to free threads, unless
        these have ended."""
        while (command := self._todo.get()) is not None:
            mine = deque([command])
            while mine:
                self._run(done := mine.popleft())
                begun = self.limiter.leave(done)
                own = len(begun) if self._ending else 1
                mine.extend(begun[:own])
                for other in begun[own:]:
                    self._put(other)

    def _run(self, command: LeasedCommand) -> None:
        started = time.monotonic()
        if self.run(command):
            self._call_seconds += 0.05 * (max(0.0001, time.monotonic() - started) - self._call_seconds)


def _turn_after(last: UUID, claimed: Sequence[LeasedCommand]) -> UUID:
    """The organization that had the last turn, if they took turns from the one after `last`."""
    taken = {command.organization_id for command in claimed}
    return max(taken, key=lambda taken_of: (taken_of <= last, taken_of), default=last)
