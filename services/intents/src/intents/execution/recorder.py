"""Writes what happened: many answers and updates in one transaction, as soon as there is one.

While a transaction is under way the next batch gathers, so one is as quick as it can be and many are cheap.
"""

import queue
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from uuid import UUID

from sqlalchemy.exc import SQLAlchemyError

from chassis import crashpoints, db, logs
from intents.execution import elsewhere, store
from intents.execution.held import Held, Patience
from intents.execution.metrics import LEASES_LOST, RECORDED
from intents.execution.settling import settle
from intents.execution.work import Answer, Heard, OutOfReach, Resolution
from intents.store.connections import PreparedConnections

log = logs.get(__name__)

BATCH = 200
RETRY_SECONDS = 0.2
TURN_SECONDS = 1.0
PATIENCE = Patience()
Happening = Answer | Heard | Resolution | OutOfReach


def record(
    connections: PreparedConnections, happenings: Sequence[Happening], patience: Patience = PATIENCE
) -> dict[UUID, int]:
    """Write everything: status, events, positions, leases, each intent's in one transaction.

    What nobody else has touched since the claim is written by one statement, without being read again; the rest, and
    whatever turns out to have been touched, is locked first. The sequence at which each account's log has arrived.
    """
    left, ends = _record_new(connections, happenings, patience)
    if left:
        ends |= _record_locked(connections, left, patience)
    crashpoints.reach("executor.after_commit")
    return ends


def _record_new(
    connections: PreparedConnections, happenings: Sequence[Happening], patience: Patience
) -> tuple[Sequence[Happening], dict[UUID, int]]:
    """Record the answers to new intents; what is left to be recorded, and where the logs end now."""
    heard = {one.order.client_order_id for one in happenings if isinstance(one, Heard)}
    fresh: list[tuple[Answer, Held]] = []
    for one in happenings:
        if isinstance(one, Answer) and one.work.is_new and one.work.client_order_id not in heard:
            held = store.held_since_claim(one.work)
            held.patience = patience
            settle(held, [one])
            if not held.positions:
                fresh.append((one, held))
    if not fresh:
        return happenings, {}
    crashpoints.reach("executor.before_commit")
    written = store.write(connections.autocommit(), [held for _, held in fresh])
    as_expected = {id(held) for held, _ in written}
    done = {id(answer) for answer, held in fresh if id(held) in as_expected}
    return [one for one in happenings if id(one) not in done], _ends(written)


def _ends(written: Iterable[tuple[Held, int | None]]) -> dict[UUID, int]:
    return {one.account_id: sequence for one, sequence in written if sequence is not None}


def _record_locked(
    connections: PreparedConnections, happenings: Sequence[Happening], patience: Patience
) -> dict[UUID, int]:
    with connections.begin() as tx:
        held = store.hold(
            tx,
            {(one.account_id, one.intent_id) for one in happenings if isinstance(one, (Answer, Resolution))},
            {(one.account_id, one.client_order_id) for one in happenings if isinstance(one, (Heard, OutOfReach))},
        )
        for one in held:
            one.patience = patience
        unknown = _settle_all(held, happenings)
        ends = _ends(store.write(tx, held))
        ends |= elsewhere.record(tx, unknown)
        crashpoints.reach("executor.before_commit")
    return ends


def _settle_all(held: Sequence[Held], happenings: Sequence[Happening]) -> list[Heard]:
    """Let each intent have what concerns it; what concerns none was placed elsewhere."""
    by_intent = {(one.account_id, one.intent.id): one for one in held}
    by_order = {(one.account_id, order): one for one in held for order in one.orders}
    unknown: list[Heard] = []
    for rank, happening in enumerate(happenings):
        if isinstance(happening, (Answer, Resolution)):
            found = by_intent.get((happening.account_id, happening.intent_id))
            if found and isinstance(happening, Answer) and found.lease_token != happening.work.lease_token:
                LEASES_LOST.inc()
        else:
            found = by_order.get((happening.account_id, happening.client_order_id))
            if found is None and isinstance(happening, Heard):
                unknown.append(happening)
        if found:
            found.rank = rank
            settle(found, [happening])
    return unknown


class Recorder:
    """Records in `threads`. `put` never waits; `recorded` is called after each batch with it.

    What several threads record may change places: only answers, of which an intent has one at a time, may be theirs.
    `tell` is told after a commit how far the log of an account has come.
    """

    def __init__(
        self,
        connections: PreparedConnections,
        recorded: Callable[[Sequence[Happening]], None] = lambda _batch: None,
        patience: Patience = PATIENCE,
        tell: Callable[[UUID, int], None] = lambda _account_id, _sequence: None,
        threads: int = 1,
    ) -> None:
        self.connections, self._recorded, self._patience, self.tell = connections, recorded, patience, tell
        self._beat: Callable[[], object] = lambda: None
        self._queue: queue.SimpleQueue[Happening | None] = queue.SimpleQueue()
        self._threads = [threading.Thread(target=self._run, name="recorder", daemon=True) for _ in range(threads)]

    def start(self, beat: Callable[[], object] = lambda: None) -> None:
        """`beat` is called at every turn: it still goes round."""
        self._beat = beat
        for thread in self._threads:
            thread.start()

    def put(self, happening: Happening) -> None:
        self._queue.put(happening)

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
            if batch:
                self._record(batch, patient=not ending)
                self._recorded(batch)

    def _gather(self) -> tuple[list[Happening], bool]:
        try:
            first = self._queue.get(timeout=TURN_SECONDS)
        except queue.Empty:
            return [], False
        if first is None:
            return [], True
        batch = [first]
        while len(batch) < BATCH:
            try:
                one = self._queue.get_nowait()
            except queue.Empty:
                break
            if one is None:
                return batch, True
            batch.append(one)
        return batch, False

    def _record(self, batch: Sequence[Happening], *, patient: bool) -> None:
        """Until the database takes it. What it can never take is left to a later run, alone."""
        while True:
            self._beat()
            try:
                ends = record(self.connections, batch, self._patience)
                RECORDED.inc(len(batch))
                for account_id, sequence in ends.items():
                    self.tell(account_id, sequence)
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

    def _one_by_one(self, batch: Sequence[Happening], error: Exception) -> None:
        if len(batch) == 1:
            log.error("record_failed", account_id=str(_account(batch[0])), error=type(error).__name__, exc_info=error)
            return
        for one in batch:
            self._record([one], patient=True)


def _account(happening: Happening) -> UUID:
    return happening.account_id
