"""The relay: does the work of each outbox row, wakes its consumers, and settles it.

Crash-only: whatever a killed relay held is claimed again after five seconds, so handlers are safe to repeat.
"""

import threading
import time
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from chassis import crashpoints, db, logs, metrics, tracing
from chassis.outbox.notify import NotifyListener
from chassis.outbox.store import BATCH, Claim, Outbox, Row
from chassis.queues import Outage, Publisher
from chassis.rest import Rest
from chassis.worker.outage import unless_unavailable

log = logs.get(__name__)

WORK_BUDGET_S = 3.0  # a claim is taken back after five seconds: give back in time what could not be done
OUTAGE_DELAY_S = 1.0
ABANDONED_EVERY_S = 1.0
PRUNE_EVERY_S = 60.0
PRUNE_BATCH = 1_000
COUNT_EVERY_S = 1.0
MEASURE_EVERY_S, IDLE_MEASURE_EVERY_S = 15.0, 60.0

Handler = Callable[[Row], None]
Failure = Callable[[Connection, Mapping[str, Any]], None]
Routes = Mapping[str, Container[str]]


@dataclass
class Relay:
    """Delivers one service's outbox, and wakes those who consume it."""

    outbox: Outbox
    publisher: Publisher
    routes: Routes
    """Which event types wake the process behind which queue."""
    handlers: Mapping[str, Handler] = field(default_factory=dict)
    failures: Mapping[str, Failure] = field(default_factory=dict)
    """What a row's failure means, by event type; called with its payload in the transaction that fails the row."""
    keep_days: int = 7
    batch: int = BATCH
    pace_s: float = 0.0
    """How long rows gather after a batch that was not full: so a steady trickle costs few transactions."""
    _is_idle: bool = field(default=False, init=False)
    """Whether the last claim found no open row at all."""
    _abandoned_at: float = field(default=0.0, init=False)
    _prune_at: float = field(default=0.0, init=False)
    _count_at: float = field(default=0.0, init=False)
    _measure_at: float = field(default=0.0, init=False)

    @property
    def _engine(self) -> Engine:
        return self.outbox.engine

    def run(self, stop: threading.Event) -> None:
        """Drain until `stop` is set; wait when there is nothing, and longer when no row is open."""
        listener, rest = NotifyListener(self._engine, self.outbox.schema), Rest()
        while not stop.is_set():
            drained = unless_unavailable(f"{self.outbox.schema}-relay", self.drain_once, None)
            if drained is not None:
                self._maintain()
            if not self._is_idle:
                rest.begin_anew()
            if not drained:
                rest.wait(listener.wait, stop)
            elif drained < self.batch:
                stop.wait(self.pace_s)

    def drain_once(self) -> int:
        """Claim a batch, do its work, publish it, settle it; the number of rows claimed."""
        claim = self._claim()
        if not claim.rows:
            return 0
        crashpoints.reach("relay.after_claim")
        done = self._work(claim)
        if done and self._publish(claim, done):
            crashpoints.reach("relay.after_publish")
            self._complete(claim, done)
        return len(claim.rows)

    def _claim(self) -> Claim:
        with self._engine.begin() as tx:
            if time.monotonic() >= self._abandoned_at:
                self._fail_abandoned(tx)
            claim = self.outbox.claim(tx, self.batch)
            self._is_idle = not claim.rows and not self.outbox.has_open_rows(tx)
            return claim

    def _fail_abandoned(self, tx: Connection) -> None:
        for row in self.outbox.fail_abandoned(tx):
            self._failed(tx, row.event_type, row.payload)
            log.error("outbox_row_failed", outbox_id=row.id, event_type=row.event_type, error="worker_lost")
            self._count(row.event_type, "failed")
        self._abandoned_at = time.monotonic() + ABANDONED_EVERY_S

    def _work(self, claim: Claim) -> list[Row]:
        """The rows whose work is done. The others are put back here, with or without their attempt."""
        progress = _Progress(time.monotonic() + WORK_BUDGET_S)
        for row in claim.rows:
            if progress.must_wait(row, has_work=row.event_type in self.handlers):
                progress.hold(row)
            else:
                self._work_on(claim, row, progress)
        if progress.held:
            delay = 0 if progress.stopped_by in ("", "out_of_time") else OUTAGE_DELAY_S
            self._release(claim, progress.held, delay=delay, error=progress.stopped_by or "behind_another")
        return progress.done

    def _work_on(self, claim: Claim, row: Row, progress: "_Progress") -> None:
        try:
            self._handle(row)
        except Outage as outage:
            progress.hold(row, str(outage))
        except Exception as error:  # noqa: BLE001 - one bad row must not stop its neighbours
            if db.is_unavailable(error):
                progress.hold(row, "database_unavailable")
            else:
                self._retry(claim, row, error)
                progress.block(row)
        else:
            progress.done.append(row)

    def _handle(self, row: Row) -> None:
        handler = self.handlers.get(row.event_type)
        if handler is None:
            return
        token = tracing.current.set(tracing.Trace.begin(str(row.event_id), row.traceparent))
        try:
            handler(row)
        finally:
            tracing.current.reset(token)

    def _publish(self, claim: Claim, rows: list[Row]) -> bool:
        """Wake every consumer of these rows once; False if the broker is down and the rows went back."""
        try:
            for queue, event_types in self.routes.items():
                if events := [_message(row) for row in rows if row.event_type in event_types]:
                    self.publisher.publish(queue, {"source": self.outbox.schema, "events": events})
        except Outage as outage:
            self._release(claim, rows, delay=OUTAGE_DELAY_S, error=str(outage))
            return False
        return True

    def _complete(self, claim: Claim, rows: list[Row]) -> None:
        try:
            completed = self._settle(claim, rows)
        except SQLAlchemyError as error:
            # A lock or a lost connection is not the rows' fault: once more, and else they keep their attempt.
            log.warning("outbox_settled_again", error=type(error).__name__)
            completed = self._settle_or_release(claim, rows)
        if len(completed) < len(rows):
            log.warning("outbox_claim_lost", lost=len(rows) - len(completed))
        for row in rows:
            self._count(row.event_type, "completed" if row.id in completed else "lost")

    def _settle_or_release(self, claim: Claim, rows: list[Row]) -> frozenset[int]:
        try:
            return self._settle(claim, rows)
        except SQLAlchemyError:
            self._release(claim, rows, delay=OUTAGE_DELAY_S, error="database_unavailable")
            raise

    def _settle(self, claim: Claim, rows: list[Row]) -> frozenset[int]:
        with self._engine.begin() as tx:
            return self.outbox.complete(tx, claim, [row.id for row in rows])

    def _retry(self, claim: Claim, row: Row, error: Exception) -> None:
        # Only the kind of error is kept: its text may quote what must not be stored.
        with self._engine.begin() as tx:
            status = self.outbox.retry(tx, claim, row.id, type(error).__name__)
            if status == "failed":
                self._failed(tx, row.event_type, row.payload)
        level = log.error if status == "failed" else log.warning
        level(
            "outbox_row_failed" if status == "failed" else "outbox_row_retried",
            outbox_id=row.id,
            event_type=row.event_type,
            attempts=row.attempts,
            error=type(error).__name__,
        )
        self._count(row.event_type, status or "lost")

    def _failed(self, tx: Connection, event_type: str, payload: Mapping[str, Any]) -> None:
        failure = self.failures.get(event_type)
        if failure is None:
            return
        try:
            with tx.begin_nested():
                failure(tx, payload)
        except Exception as error:
            if db.is_unavailable(error):
                raise
            log.error("outbox_failure_unhandled", event_type=event_type, error=type(error).__name__)

    def _release(self, claim: Claim, rows: Sequence[Row], *, delay: float, error: str) -> None:
        with self._engine.begin() as tx:
            self.outbox.release(tx, claim, [row.id for row in rows], delay=delay, error=error)
        log.warning("outbox_rows_released", rows=len(rows), error=error)

    def _maintain(self) -> None:
        """Between batches, a little at a time: prune what is old, count a backlog if there is one, measure.

        Each is due again before it is tried, and its failure is its own: delivery goes on.
        """
        now = time.monotonic()
        if now >= self._prune_at:
            self._prune_at = now + PRUNE_EVERY_S
            self._attempt(self._prune)
        if now >= self._count_at and not self._is_idle:
            self._count_at = now + COUNT_EVERY_S
            self._attempt(self.outbox.roll_up)
        if now >= self._measure_at:
            self._measure_at = now + (IDLE_MEASURE_EVERY_S if self._is_idle else MEASURE_EVERY_S)
            self._attempt(self._measure)

    def _attempt(self, work: Callable[[Connection], object]) -> None:
        try:
            with self._engine.begin() as tx:
                work(tx)
        except SQLAlchemyError as error:
            log.warning("relay_maintenance_failed", work=work.__name__, error=type(error).__name__)

    def _prune(self, tx: Connection) -> None:
        if self.outbox.prune(tx, days=self.keep_days, batch=PRUNE_BATCH) == PRUNE_BATCH:
            self._prune_at = time.monotonic()  # there is more

    def _measure(self, tx: Connection) -> None:
        counts = dict.fromkeys(("pending", "processing", "completed", "failed"), 0)
        oldest: datetime | None = None
        for entry in self.outbox.health(tx):
            counts[entry.status] += entry.count
            if entry.status == "pending":
                oldest = min(oldest or entry.oldest_created_at, entry.oldest_created_at)
        for status, count in counts.items():
            metrics.OUTBOX_ROWS.labels(self.outbox.schema, status).set(count)
        age = (datetime.now(UTC) - oldest).total_seconds() if oldest else 0.0
        metrics.OUTBOX_OLDEST_PENDING_SECONDS.labels(self.outbox.schema).set(max(0.0, age))

    def _count(self, event_type: str, result: str) -> None:
        metrics.OUTBOX_SETTLED.labels(self.outbox.schema, event_type, result).inc()


@dataclass
class _Progress:
    """How far a claim has been worked through."""

    deadline: float
    done: list[Row] = field(default_factory=list)
    held: list[Row] = field(default_factory=list)
    """To be given back with their attempt."""
    stopped_by: str = ""
    """What is down, or that time is up: then only rows without work of their own go on."""
    _blocked: set[str] = field(default_factory=set)
    """Ordering keys: whatever comes behind a row that is not done waits for it."""

    def must_wait(self, row: Row, *, has_work: bool) -> bool:
        self.stopped_by = self.stopped_by or ("out_of_time" if time.monotonic() > self.deadline else "")
        return row.ordering_key in self._blocked or bool(self.stopped_by and has_work)

    def hold(self, row: Row, stopped_by: str = "") -> None:
        self.stopped_by = stopped_by or self.stopped_by
        self.held.append(row)
        self.block(row)

    def block(self, row: Row) -> None:
        if row.ordering_key is not None:
            self._blocked.add(row.ordering_key)


def _message(row: Row) -> dict[str, Any]:
    return {"event_id": str(row.event_id), "event_type": row.event_type, "traceparent": row.traceparent}
