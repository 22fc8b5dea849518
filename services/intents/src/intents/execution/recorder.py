"""Records inputs: settles the intents that they concern, many in one transaction.

While a transaction is under way the next batch gathers: a single input is recorded at once, and many cost little more.
"""

import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy.exc import SQLAlchemyError

from chassis import crashpoints, db, logs, tracing
from intents.execution import store
from intents.execution.group_effects import report_excesses, write_effects
from intents.execution.metrics import LEASES_LOST, RECORDED
from intents.execution.model.groups import Excess, arrange
from intents.execution.model.inputs import BrokerReport, DispatchResult, ExecutionInput, OutOfReach, Resolution
from intents.execution.model.locked_intent import LockedIntent
from intents.execution.model.settlement import DEFAULT_POLICY, QueryPolicy, Settlement
from intents.execution.model.settling import settle
from intents.store.connections import OpenTransaction, PreparedConnections
from intents.store.statement import Transaction

log = logs.get(__name__)

BATCH = 200
RETRY_SECONDS = 0.2
TURN_SECONDS = 1.0
FEW = 4
"""Inputs of an account in one batch, that may share a transaction with those of other accounts that have few."""


class Recorded(NamedTuple):
    heads: dict[UUID, int]
    """The new head of each account's log."""
    has_next: bool
    """Whether an intent has another command."""
    settled: tuple[Settlement, ...] = ()
    excesses: tuple[Excess, ...] = ()

    @classmethod
    def of(cls, written: Sequence[tuple[Settlement, int | None]]) -> "Recorded":
        heads = {settlement.locked.account_id: head for settlement, head in written if head is not None}
        settled = tuple(settlement for settlement, _ in written)
        return cls(heads, any(settlement.progress.open_actions for settlement in settled), settled)

    def __or__(self, later: "Recorded") -> "Recorded":
        return Recorded(
            self.heads | later.heads,
            self.has_next or later.has_next,
            self.settled + later.settled,
            self.excesses + later.excesses,
        )


NOTHING = Recorded({}, has_next=False)


def record(
    connections: PreparedConnections, inputs: Sequence[ExecutionInput], policy: QueryPolicy = DEFAULT_POLICY
) -> Recorded:
    """Write what the inputs make of their intents.

    What nobody else has touched since the claim is written by one statement, without being read again; the rest, and
    whatever turns out to have been touched, is locked first.
    """
    left, recorded = _record_unlocked(connections.autocommit(), inputs, policy)  # one statement, so one commit
    external: list[BrokerReport] = []
    if left:
        with connections.begin() as tx:
            settled, external = _record_locked(tx, left, policy)
        recorded |= settled
    if external:
        with connections.begin() as tx:  # of its own: nothing else depends on it, and nobody else waits for it
            recorded.heads.update(store.record_external_orders(tx, external))
    crashpoints.reach("executor.after_commit")
    return recorded


def _record_unlocked(
    tx: Transaction, inputs: Sequence[ExecutionInput], policy: QueryPolicy
) -> tuple[Sequence[ExecutionInput], Recorded]:
    """Record the results of new intents; and what is left to be recorded."""
    settled = [
        (result, settle(store.locked_at_claim(result.command), [(0, result)], policy))
        for result in _results_of_new_intents(inputs)
    ]
    fresh = [(result, settlement) for result, settlement in settled if not settlement.position_changes]
    if not fresh:
        return inputs, NOTHING
    crashpoints.reach("executor.before_commit")
    written = store.write(tx, [settlement for _, settlement in fresh])
    as_expected = {id(settlement) for settlement, _ in written}
    done = {id(result) for result, settlement in fresh if id(settlement) in as_expected}
    return [given for given in inputs if id(given) not in done], Recorded.of(written)


def _results_of_new_intents(inputs: Sequence[ExecutionInput]) -> Iterator[DispatchResult]:
    """Of those that no report in the same batch concerns: what they show is to be settled in the order given."""
    reported = {given.client_order_id for given in inputs if isinstance(given, BrokerReport)}
    for given in inputs:
        if isinstance(given, DispatchResult) and given.command.is_new and given.command.client_order_id not in reported:
            yield given


def _record_locked(
    tx: OpenTransaction, inputs: Sequence[ExecutionInput], policy: QueryPolicy
) -> tuple[Recorded, list[BrokerReport]]:
    """And the reports that concern no intent."""
    locked = store.lock_intents(
        tx,
        {(given.account_id, given.intent_id) for given in inputs if isinstance(given, (DispatchResult, Resolution))},
        {
            (given.account_id, given.client_order_id)
            for given in inputs
            if isinstance(given, (BrokerReport, OutOfReach))
        },
    )
    settlements, external = _settle_all(locked, inputs, policy)
    arrangement = arrange(settlements)
    if not (arrangement.cancels or arrangement.excesses):
        crashpoints.reach("executor.before_commit")
        return Recorded.of(store.write_last(tx, settlements)), external
    recorded = Recorded.of(store.write(tx, settlements))
    canceled = write_effects(tx, arrangement)
    crashpoints.reach("executor.before_commit")
    recorded.heads.update(canceled)
    has_next = recorded.has_next or bool(canceled)
    return recorded._replace(has_next=has_next, excesses=tuple(arrangement.excesses)), external


def _settle_all(
    locked: Sequence[LockedIntent], inputs: Sequence[ExecutionInput], policy: QueryPolicy
) -> tuple[list[Settlement], list[BrokerReport]]:
    """Settle each intent by the inputs that concern it; and the reports that concern none, of external orders."""
    by_intent = {(found.account_id, found.intent.id): found for found in locked}
    by_order = {(found.account_id, key): found for found in locked for key in found.orders}
    ranked: dict[int, list[tuple[int, ExecutionInput]]] = {id(found): [] for found in locked}
    external: list[BrokerReport] = []
    for rank, given in enumerate(inputs):
        if isinstance(given, (DispatchResult, Resolution)):
            found = by_intent.get((given.account_id, given.intent_id))
        else:
            found = by_order.get((given.account_id, given.client_order_id))
        if found:
            ranked[id(found)].append((rank, given))
            _count_lost_lease(found, given)
        elif isinstance(given, BrokerReport):
            external.append(given)
    return [settle(found, ranked[id(found)], policy) for found in locked], external


def _count_lost_lease(locked: LockedIntent, given: ExecutionInput) -> None:
    if isinstance(given, DispatchResult) and given.command.lease_token != locked.progress.lease_token:
        LEASES_LOST.inc()


def portions(batch: Sequence[ExecutionInput]) -> list[list[ExecutionInput]]:
    """What shares a transaction: accounts with few inputs, and then busy ones.

    A transaction keeps the log of each account locked until all of it is written. Who trades little does not wait so
    long for the hundred orders of another.
    """
    count = Counter(given.account_id for given in batch)
    few = [given for given in batch if count[given.account_id] <= FEW]
    many = [given for given in batch if count[given.account_id] > FEW]
    return [portion for portion in (few, many) if portion]


class Recorder:
    """Records in `threads`. `put` never waits; `recorded` is called after each batch with it.

    What several threads record may change places: only answers, of which an intent has one at a time, may be theirs.
    `publish_head` is called after a commit with the new head of an account's log, `on_next` if an intent has another
    command. What comes within `linger_seconds` is recorded together.
    """

    def __init__(
        self,
        connections: PreparedConnections,
        recorded: Callable[[Sequence[ExecutionInput]], None] = lambda _batch: None,
        policy: QueryPolicy = DEFAULT_POLICY,
        publish_head: Callable[[UUID, int], None] = lambda _account_id, _sequence: None,
        threads: int = 1,
        on_next: Callable[[], object] = lambda: None,
        linger_seconds: float = 0.0,
    ) -> None:
        self._on_next, self._linger_seconds = on_next, linger_seconds
        self.connections, self._recorded, self._policy, self.publish_head = connections, recorded, policy, publish_head
        self._beat: Callable[[], object] = lambda: None
        self._queue: queue.SimpleQueue[ExecutionInput | None] = queue.SimpleQueue()
        self._threads = [threading.Thread(target=self._run, name="recorder", daemon=True) for _ in range(threads)]

    def start(self, beat: Callable[[], object] = lambda: None) -> None:
        """`beat` is called at every turn; a loop that stops calling it is reported as hung."""
        self._beat = beat
        for thread in self._threads:
            thread.start()

    def put(self, given: ExecutionInput) -> None:
        self._queue.put(given)

    def close(self) -> None:
        """After everything that was put is written, or given up."""
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        ending = False
        while not ending:
            self._beat()
            batch, ending = self._gather()
            for portion in portions(batch):
                self._record(portion, patient=not ending)
            if batch:
                self._recorded(batch)

    def _gather(self) -> tuple[list[ExecutionInput], bool]:
        try:
            first = self._queue.get(timeout=TURN_SECONDS)
        except queue.Empty:
            return [], False
        if first is None:
            return [], True
        time.sleep(self._linger_seconds)
        batch = [first]
        while len(batch) < BATCH:
            try:
                given = self._queue.get_nowait()
            except queue.Empty:
                break
            if given is None:
                return batch, True
            batch.append(given)
        return batch, False

    def _record(self, batch: Sequence[ExecutionInput], *, patient: bool) -> None:
        """Until the database takes it. What it can never take is left to a later run, alone."""
        while True:
            self._beat()
            try:
                recorded = record(self.connections, batch, self._policy)
                announce(recorded, len(batch))
                for account_id, sequence in recorded.heads.items():
                    self.publish_head(account_id, sequence)
                if recorded.has_next:
                    self._on_next()
                return
            except SQLAlchemyError as error:
                if db.is_unavailable(error):
                    log.warning("record_postponed", error=type(error).__name__, size=len(batch))
                    if not patient:
                        return
                    time.sleep(RETRY_SECONDS)
                    continue
                self._one_by_one(batch, error)
                return
            except Exception as error:  # noqa: BLE001 - one bad answer must not stop its neighbours
                self._one_by_one(batch, error)
                return

    def _one_by_one(self, batch: Sequence[ExecutionInput], error: Exception) -> None:
        if len(batch) == 1:
            log.error("record_failed", account_id=str(batch[0].account_id), error=type(error).__name__, exc_info=error)
            return
        for given in batch:
            self._record([given], patient=True)


def announce(recorded: Recorded, inputs: int) -> None:
    """After the commit, in a process of the platform: its log and its metrics say what was recorded."""
    RECORDED.inc(inputs)
    for settlement in recorded.settled:
        for event in settlement.events:
            _log_event(settlement.locked, event)
    report_excesses(recorded.excesses)


def _log_event(locked: LockedIntent, event: Mapping[str, Any]) -> None:
    payload = event["payload"]
    log.info(
        "order_reported",
        type=event["type"],
        status=payload.get("status"),
        account_id=str(locked.account_id),
        intent_id=str(locked.intent.id),
        broker_order_id=payload.get("broker_order_id"),
        execution_id=payload.get("execution_id"),
        request_id=locked.request_id,
        trace_id=tracing.trace_id(locked.traceparent),
    )
