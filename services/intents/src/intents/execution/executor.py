"""The executor: claims due commands under a lease, dispatches them, has the results recorded. Any number may run.

Crash-only: start-up is recovery. What a dead one held is taken over within seconds (`liveness`), and whoever takes over
queries the broker before sending anything.
"""

import math
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from uuid import UUID

from sqlalchemy.exc import SQLAlchemyError

from chassis import crashpoints, logs, queues
from chassis.outbox.notify import NotifyListener
from chassis.rest import Rest
from chassis.worker.outage import unless_unavailable
from intents.execution import store
from intents.execution.alarm import Alarm
from intents.execution.broker_dispatcher import BrokerDispatcher
from intents.execution.call_log import CallLog
from intents.execution.in_flight import ClaimBudget, InFlight
from intents.execution.lanes import Lane
from intents.execution.liveness import Liveness
from intents.execution.metrics import CLAIMED, VERDICTS
from intents.execution.model.commands import LeasedCommand
from intents.execution.model.inputs import DispatchResult, ExecutionInput
from intents.execution.model.settlement import DEFAULT_POLICY, QueryPolicy
from intents.execution.model.tries import ALL, Tries
from intents.execution.model.verdicts import OrderFound, RetryLater, Unknown
from intents.execution.recorder import Recorder
from intents.store.connections import PreparedConnections

log = logs.get(__name__)

SWEEP_SECONDS = 1.0
IDLE_SECONDS = 20.0  # while no command is open: what no wake-up announces, `liveness` finds
SOON_SECONDS = 0.25  # while something waits to be polled again
WATCHFUL_SECONDS = 10.0
RECORDERS = 4  # some prepare what they write while what others wrote is being committed
QUEUE_SECONDS = 0.1  # what the queue announces a NOTIFY has announced before, unless that was lost
SECOND_SECONDS = 0.25  # how long an executor leaves new work to the first of those that live
QUEUE = queues.name("intents", "executor")


@dataclass
class Executor:
    connections: PreparedConnections
    dispatcher: BrokerDispatcher
    threads: int
    """Calls at the same time to each broker."""
    lease_seconds: float
    query_policy: QueryPolicy = DEFAULT_POLICY
    publish_head: Callable[[UUID, int], None] = lambda _account_id, _sequence: None
    account_calls: int = 8
    on_replaced: Callable[[], object] = lambda: None
    """Called after replacements were recorded, by a thread of its own."""
    _replaced: threading.Event = field(default_factory=threading.Event, init=False)
    liveness: Liveness | None = None
    """Without one its leases end by the clock alone."""
    lanes: dict[str, Lane] = field(default_factory=dict, init=False)
    """By name; each is made with the first command that is claimed of it."""
    _alarm: Alarm = field(default_factory=Alarm, init=False)
    _watchful_until: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self.recorder = Recorder(
            self.connections, self._recorded, self.query_policy, self.publish_head, RECORDERS, self.wake
        )
        self._budget_of_new_lane = InFlight().budget(self.threads, {})

    def run(self, stop: threading.Event) -> None:
        """Work until `stop` is set; then finish what is in flight."""
        self.recorder.start(stop.is_set)
        finished = self._stay_alive(stop)
        threading.Thread(target=self._follow_replacements, args=(stop,), name="replaced", daemon=True).start()
        while not stop.is_set():
            if not self._take():
                self._rest(stop)
        for lane in self.lanes.values():
            lane.close()
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
        if busy := [lane.busy_until for lane in self.lanes.values() if lane.is_skipped or now < lane.busy_until]:
            return max(0.0, min(busy) - now)
        if now < self._watchful_until:
            return SOON_SECONDS
        return IDLE_SECONDS if self.liveness and self.liveness.is_idle else SWEEP_SECONDS

    def _take(self) -> bool:
        """Claim as much as each lane has room for; whether there may be more that can be claimed at once."""
        budgets = {name: lane.budget() for name, lane in self.lanes.items()}
        if budgets and not any(budget.total for budget in budgets.values()):
            return False
        tries = self.dispatcher.breakers.tries()
        claimed = unless_unavailable("intents-executor", lambda: self._claim(budgets, tries), None)
        if claimed is None:
            self._watchful_until = time.monotonic() + WATCHFUL_SECONDS
            return False
        return self._begin(budgets, claimed, tries)

    def _claim(self, budgets: Mapping[str, ClaimBudget], tries: Mapping[str, Tries]) -> list[LeasedCommand]:
        holder = self.liveness.holder() if self.liveness else None
        left_out = [account_id for budget in budgets.values() for account_id in budget.left_out]
        shares = {
            name: store.Shares(
                budget.total, budget.allowances, budget.of_others, self.lanes[name].last_turn,
                self.lanes[name].last_try, tries.get(name, ALL),
            )
            for name, budget in budgets.items()
        }  # fmt: skip
        return store.claim(
            self.connections.autocommit(), self._budget_of_new_lane.total, self.lease_seconds,
            [*left_out, *self.dispatcher.parked_accounts()], holder, shares, self._budget_of_new_lane.of_others,
        )  # fmt: skip

    def _begin(
        self, budgets: Mapping[str, ClaimBudget], claimed: Sequence[LeasedCommand], tries: Mapping[str, Tries]
    ) -> bool:
        if claimed:
            crashpoints.reach("executor.after_claim")
            CLAIMED.inc(len(claimed))
        of_lanes = by_lane(claimed)
        searched = of_lanes.keys() | {name for name, budget in budgets.items() if budget.total}
        begun = [
            self._lane(name).begin(
                budgets.get(name, self._budget_of_new_lane), of_lanes.get(name, []), tries.get(name, ALL)
            )
            for name in searched
        ]
        return any(begun)

    def _lane(self, name: str) -> Lane:
        if name not in self.lanes:
            self.lanes[name] = Lane(self.threads, self.account_calls, self._do)
        return self.lanes[name]

    def _do(self, command: LeasedCommand) -> bool:
        calls = CallLog(command)
        try:
            verdict = self.dispatcher.dispatch(command, calls)
        except Exception as error:
            log.error("execution_failed", action_id=str(command.action_id), exc_info=error)
            verdict = Unknown("internal_error")
        if command.type != "CREATE" or not isinstance(verdict, OrderFound):
            self._watchful_until = time.monotonic() + WATCHFUL_SECONDS
        self.recorder.put(DispatchResult(command, verdict, tuple(calls.calls)))
        return not (isinstance(verdict, RetryLater) and verdict.waiting_since)

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
        ended = by_lane(result.command for result in batch if isinstance(result, DispatchResult))
        worth_a_claim_in = min((self.lanes[name].end(commands) for name, commands in ended.items()), default=math.inf)
        if worth_a_claim_in < math.inf:
            self._wake_in(worth_a_claim_in)


def by_lane(commands: Iterable[LeasedCommand]) -> dict[str, list[LeasedCommand]]:
    found = defaultdict(list)
    for command in commands:
        found[command.lane].append(command)
    return dict(found)


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
