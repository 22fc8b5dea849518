"""The executor: claims due commands under a lease, dispatches them, has the results recorded. Any number may run.

Crash-only: start-up is recovery. What a dead one held is taken over within seconds (`liveness`), and whoever takes over
queries the broker before sending anything.
"""

import math
import queue
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from uuid import UUID

from sqlalchemy.exc import SQLAlchemyError

from chassis import crashpoints, logs, queues
from chassis.outbox.notify import NotifyListener
from chassis.rest import Rest
from chassis.worker.outage import unless_unavailable
from intents.execution import store
from intents.execution.account_limiter import AccountConcurrencyLimiter
from intents.execution.alarm import Alarm
from intents.execution.broker_dispatcher import BrokerDispatcher
from intents.execution.call_log import CallLog
from intents.execution.in_flight import ClaimBudget, InFlight
from intents.execution.liveness import Liveness
from intents.execution.metrics import CLAIMED, VERDICTS
from intents.execution.model.commands import LeasedCommand
from intents.execution.model.inputs import DispatchResult, ExecutionInput
from intents.execution.model.settlement import DEFAULT_POLICY, QueryPolicy
from intents.execution.model.verdicts import OrderFound, Unknown
from intents.execution.recorder import Recorder
from intents.store.connections import PreparedConnections

log = logs.get(__name__)

SWEEP_SECONDS = 1.0
IDLE_SECONDS = 20.0  # while no command is open: what no wake-up announces, `liveness` finds
SOON_SECONDS = 0.25  # while something waits to be polled again
WATCHFUL_SECONDS = 10.0
NEWCOMER_SECONDS = 0.1  # how often a busy executor claims for organizations of which it has nothing in flight
MOST_IN_FLIGHT = 1_000
RECORDERS = 4  # some prepare what they write while what others wrote is being committed
QUEUE_SECONDS = 0.1  # what the queue announces a NOTIFY has announced before, unless that was lost
SECOND_SECONDS = 0.25  # how long an executor leaves new work to the first of those that live
BACKLOG_SECONDS = 0.05  # how long a command in flight may have to wait for a thread
QUEUE = queues.name("intents", "executor")


@dataclass
class Executor:
    connections: PreparedConnections
    dispatcher: BrokerDispatcher
    threads: int
    lease_seconds: float
    query_policy: QueryPolicy = DEFAULT_POLICY
    publish_head: Callable[[UUID, int], None] = lambda _account_id, _sequence: None
    account_calls: int = 8
    on_replaced: Callable[[], object] = lambda: None
    """Called after replacements were recorded, by a thread of its own."""
    _replaced: threading.Event = field(default_factory=threading.Event, init=False)
    liveness: Liveness | None = None
    """Without one its leases end by the clock alone."""
    _todo: "queue.SimpleQueue[LeasedCommand | None]" = field(default_factory=queue.SimpleQueue, init=False)
    _alarm: Alarm = field(default_factory=Alarm, init=False)
    _in_flight: InFlight = field(default_factory=InFlight, init=False)
    _watchful_until: float = field(default=0.0, init=False)
    _busy_until: float = field(default=0.0, init=False)
    _more: bool = field(default=True, init=False)
    _left_out: bool = field(default=False, init=False)
    """Whether the last claim took nothing of accounts that had as many calls as they may."""
    _ending: bool = field(default=False, init=False)
    _last_turn: UUID = field(default=UUID(int=0), init=False)
    _call_seconds: float = field(default=BACKLOG_SECONDS, init=False)

    def __post_init__(self) -> None:
        self.recorder = Recorder(
            self.connections, self._recorded, self.query_policy, self.publish_head, RECORDERS, self.wake
        )
        self.limiter = AccountConcurrencyLimiter(self.threads, self.account_calls)

    def run(self, stop: threading.Event) -> None:
        """Work until `stop` is set; then finish what is in flight."""
        self.recorder.start(stop.is_set)
        finished = self._stay_alive(stop)
        threads = [threading.Thread(target=self._serve, name="broker", daemon=True) for _ in range(self.threads)]
        for thread in threads:
            thread.start()
        threading.Thread(target=self._follow_replacements, args=(stop,), name="replaced", daemon=True).start()
        while not stop.is_set():
            if not self._take():
                self._rest(stop)
        self._ending = True
        for _ in threads:
            self._todo.put(None)
        for thread in threads:
            thread.join()
        self.recorder.close()
        finished.set()

    def _stay_alive(self, stop: threading.Event) -> threading.Event:
        """Hold the lock until the event is set: what is in flight when `stop` is set is still to be sent."""
        finished = threading.Event()
        if self.liveness:
            arguments = (finished, stop.is_set, self.wake)
            threading.Thread(target=self.liveness.run, args=arguments, name="liveness", daemon=True).start()
        return finished

    def _follow_replacements(self, stop: threading.Event) -> None:
        while not stop.is_set():
            if not self._replaced.wait(SWEEP_SECONDS):
                continue
            self._replaced.clear()
            try:
                self.on_replaced()
            except SQLAlchemyError as error:  # the run once a second finds them as well
                log.warning("replacements_not_followed", error=type(error).__name__)
            except Exception as error:
                log.error("replacements_not_followed", exc_info=error)

    def wake(self) -> None:
        """Claim now."""
        self._wake_in(0.0)

    def wake_for_new_work(self) -> None:
        """Claim now, or soon if another executor comes first: all are notified, and one statement takes it all."""
        is_first = self.liveness is None or self.liveness.is_first
        self._wake_in(0.0 if is_first else SECOND_SECONDS)

    def wake_soon(self) -> None:
        """Claim soon, unless a claim begins before."""
        self._wake_in(QUEUE_SECONDS)

    def _wake_in(self, seconds: float) -> None:
        if self.liveness:
            self.liveness.attend()
        self._alarm.set(seconds)

    def _rest(self, stop: threading.Event) -> None:
        """Until it is time to claim, or until woken."""
        ends = time.monotonic() + self._pause()
        while (left := ends - time.monotonic()) > 0 and not stop.is_set():
            if self._alarm.wait(min(left, SWEEP_SECONDS)):
                break
        self._alarm.clear()

    def _pause(self) -> float:
        now = time.monotonic()
        if now < self._busy_until:
            return self._busy_until - now
        if now < self._watchful_until:
            return SOON_SECONDS
        return IDLE_SECONDS if self.liveness and self.liveness.is_idle else SWEEP_SECONDS

    def _take(self) -> bool:
        """Claim as much as there is room for; whether there may be more that can be claimed at once."""
        blocked = self.limiter.blocked()
        budget = self._in_flight.budget(self._most_in_flight(), blocked)
        if not budget.is_ample:
            now = time.monotonic()
            if now < self._busy_until:
                return False
            self._busy_until = now + NEWCOMER_SECONDS
        parked = [*blocked, *self.dispatcher.parked_accounts()]
        claimed = unless_unavailable("intents-executor", lambda: self._claim(budget, parked), None)
        if claimed is None:
            self._watchful_until = time.monotonic() + WATCHFUL_SECONDS
            return False
        taken = Counter(command.organization_id for command in claimed)
        at_once = len(claimed) == budget.total or len(taken) > 1  # each of several may have been cut short
        self._more, self._left_out = at_once or budget.cuts_short(taken), bool(blocked)
        self._begin(claimed)
        return at_once

    def _claim(self, budget: ClaimBudget, parked_accounts: Sequence[UUID]) -> list[LeasedCommand]:
        holder = self.liveness.holder() if self.liveness else None
        shares = store.Shares(budget.allowances, budget.of_others, self._last_turn)
        claimed = store.claim(
            self.connections.autocommit(), budget.total, self.lease_seconds, parked_accounts, holder, shares
        )
        if claimed:
            taken = {command.organization_id for command in claimed}
            self._last_turn = max(taken, key=lambda organization_id: (organization_id <= shares.after, organization_id))
        return claimed

    def _begin(self, claimed: Sequence[LeasedCommand]) -> None:
        if not claimed:
            return
        crashpoints.reach("executor.after_claim")
        CLAIMED.inc(len(claimed))
        self._in_flight.add(claimed)
        for command in claimed:
            if self.limiter.enter(command):
                self._todo.put(command)

    def _most_in_flight(self) -> int:
        """One for each thread, so that nothing waits for another; more only while calls are quick."""
        return max(self.threads, min(MOST_IN_FLIGHT, int(self.threads * BACKLOG_SECONDS / self._call_seconds)))

    def _serve(self) -> None:
        """One thread: runs a command, then one that waited for it. Others that may start go to free threads, unless
        these have ended."""
        while (command := self._todo.get()) is not None:
            mine = deque([command])
            while mine:
                self._do(done := mine.popleft())
                begun = self.limiter.leave(done)
                own = len(begun) if self._ending else 1
                mine.extend(begun[:own])
                for other in begun[own:]:
                    self._todo.put(other)

    def _do(self, command: LeasedCommand) -> None:
        started, calls = time.monotonic(), CallLog(command)
        try:
            verdict = self.dispatcher.dispatch(command, calls)
        except Exception as error:
            log.error("execution_failed", action_id=str(command.action_id), exc_info=error)
            verdict = Unknown("internal_error")
        if command.type != "CREATE" or not isinstance(verdict, OrderFound):
            self._watchful_until = time.monotonic() + WATCHFUL_SECONDS
        self._call_seconds += 0.05 * (max(0.0001, time.monotonic() - started) - self._call_seconds)
        self.recorder.put(DispatchResult(command, verdict, tuple(calls.calls)))

    def _recorded(self, batch: Sequence[ExecutionInput]) -> None:
        verdicts = Counter(
            (result.command.type, type(result.verdict).__name__)
            for result in batch
            if isinstance(result, DispatchResult)
        )
        for names, count in verdicts.items():
            VERDICTS.labels(*names).inc(count)
        if any(type_ == "REPLACE" for type_, _ in verdicts):
            self._replaced.set()
        self._in_flight.remove(result.command for result in batch if isinstance(result, DispatchResult))
        if self._more or (self._left_out and not self.limiter.blocked()):
            self.wake()


def listen(
    executor: Executor, listener: NotifyListener, queue_url: str, stop: threading.Event
) -> list[threading.Thread]:
    """The wake-ups: NOTIFY right after a commit, the queue a little later; polling replaces both."""

    def wake_on_notify() -> None:
        while not stop.is_set():
            if listener.wait(SWEEP_SECONDS):
                executor.wake_for_new_work()

    until_woken = Rest(math.inf)  # the executor polls by itself
    wake_on_message = partial(queues.listen, queue_url, QUEUE, executor.wake_soon, stop, rest=until_woken)
    threads = [
        threading.Thread(target=wake_on_notify, name="notify", daemon=True),
        threading.Thread(target=wake_on_message, name="queue", daemon=True),
    ]
    for thread in threads:
        thread.start()
    return threads


def wait_for_end(threads: Sequence[threading.Thread], seconds: float = 3.0) -> None:
    deadline = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
