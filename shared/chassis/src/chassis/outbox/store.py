"""The outbox of one service. Every moment is the database's, so a worker's wrong clock changes nothing."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Connection, Engine, bindparam, text
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.types import BigInteger

from chassis import logs, tracing
from chassis.outbox import statements as sql
from chassis.outbox.notify import Notifier

log = logs.get(__name__)

CLAIM_SECONDS = 5  # an older claim means that no worker is running (the specification's number)
MAX_BACKOFF_SECONDS = 300
BATCH = 100  # the measured knee: larger batches drain no faster
BACKLOG = 20_000  # waiting rows that are quickly counted anew for every report
LAST_ID = 2**63 - 1
COUNTED_AT_ONCE = 100_000  # claims wait meanwhile, for far less than the lock time-out


@dataclass(frozen=True)
class Event:
    """Something that happened. Those with the same ordering key are published in the order of their transactions."""

    event_type: str
    payload: Mapping[str, Any]
    ordering_key: str | None = None


@dataclass(frozen=True)
class Row:
    """A claimed event."""

    id: int
    event_id: UUID
    event_type: str
    ordering_key: str | None
    payload: Mapping[str, Any]
    traceparent: str | None
    attempts: int
    created_at: datetime


@dataclass(frozen=True)
class AbandonedRow:
    """A row that was failed because its worker died."""

    id: int
    event_type: str
    payload: Mapping[str, Any]


@dataclass(frozen=True)
class FailedRow:
    """A row that nobody tries again by itself."""

    id: int
    event_id: UUID
    event_type: str
    payload: Mapping[str, Any]
    attempts: int
    last_error: str | None
    created_at: datetime
    failed_at: datetime | None
    redriven_as: int | None
    """The row that it was last driven again as."""


@dataclass(frozen=True)
class Claim:
    """Rows taken together, in order; only the holder of the token may settle them.

    Of those that share an ordering key, one is completed only after or together with all before it.
    """

    token: UUID
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Entry:
    """One line of the health report."""

    status: str
    event_type: str
    count: int
    oldest_created_at: datetime
    max_attempts: int
    oldest_claimed_at: datetime | None
    redriven: int = 0
    """How many of those that failed were driven again, as copies."""


class Outbox:
    """One service's outbox; `event_types` are those it publishes, None any."""

    def __init__(
        self, engine: Engine, schema: str, *, event_types: Collection[str] | None = None, attempt_limit: int = 10
    ) -> None:
        self.engine, self.schema, self.attempt_limit = engine, schema, attempt_limit
        self._event_types = event_types
        self.notifier = Notifier(engine, schema)

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        """A transaction whose events the relay is woken for as soon as it has committed."""
        with self.engine.begin() as tx:
            yield tx
        self.notifier.notify()

    def append(self, tx: Connection, event: Event) -> UUID:
        """Queue an event in the caller's transaction. Its payload holds ids, never a secret."""
        if self._event_types is not None and event.event_type not in self._event_types:
            raise ValueError(f"{event.event_type} is not among the event types of {self.schema}")
        event_id = uuid4()
        payload = {"event_id": str(event_id), "event_type": event.event_type}
        values = {
            "event_id": event_id,
            "event_type": event.event_type,
            "ordering_key": event.ordering_key,
            "payload": payload | dict(event.payload),
            "traceparent": tracing.traceparent(),
        }
        tx.execute(self._sql(sql.APPEND, lock_ordering_key=self._lock_ordering_key(":ordering_key")), values)
        return event_id

    def claim(self, tx: Connection, batch: int = BATCH) -> Claim:
        token = uuid4()
        tx.execute(self._sql(sql.CLAIMING))
        values = {"batch": batch, "claim_token": token, **self._limits()}
        rows = tx.execute(self._sql(sql.CLAIM, group=sql.ORDERING_GROUP.format(schema=self.schema)), values).all()
        return Claim(token, tuple(sorted((Row(*row) for row in rows), key=lambda row: row.id)))

    def has_open_rows(self, tx: Connection) -> bool:
        """Whether a row is being processed, by whomever, or waits, be it for its time."""
        return bool(tx.execute(self._sql(sql.HAS_OPEN)).scalar_one())

    def fail_abandoned(self, tx: Connection) -> list[AbandonedRow]:
        """Fail the rows whose worker died during their last attempt."""
        return [AbandonedRow(*row) for row in tx.execute(self._sql(sql.FAIL_ABANDONED), self._limits())]

    def complete(self, tx: Connection, claim: Claim, ids: Sequence[int]) -> frozenset[int]:
        """The rows that are now completed.

        The others were taken from a late worker, or come behind an open row that this call does not complete: those
        keep their claim, which is taken back when it is old.
        """
        values = {"ids": list(ids), "claim_token": claim.token}
        return frozenset(tx.execute(self._sql(sql.COMPLETE), values).scalars())

    def retry(self, tx: Connection, claim: Claim, row_id: int, error: str) -> str | None:
        """Put a row back after its own fault, or fail it at the limit; the status it has now, None if not ours."""
        values = {
            "id": row_id,
            "claim_token": claim.token,
            "attempt_limit": self.attempt_limit,
            "max_backoff": MAX_BACKOFF_SECONDS,
            "error": error,
        }
        status: str | None = tx.execute(self._sql(sql.RETRY, xid=sql.XID), values).scalar_one_or_none()
        return status

    def release(self, tx: Connection, claim: Claim, ids: Sequence[int], *, delay: float, error: str) -> int:
        """Give rows back with their attempt: what stopped them was not their fault."""
        values = {"ids": list(ids), "claim_token": claim.token, "delay": delay, "error": error}
        return len(tx.execute(self._sql(sql.RELEASE, xid=sql.XID), values).all())

    def prune(self, tx: Connection, *, days: int, batch: int = 1_000) -> int:
        return int(tx.execute(self._sql(sql.PRUNE), {"days": days, "batch": batch}).scalar_one())

    def redrive(self, tx: Connection, row_id: int, *, again: bool = False) -> int | None:
        """Copy a failed row into a new one, the last of its ordering key; the failed row stays as it is.

        None if there is no such row, or if it has a copy already and is not to be copied `again`.
        """
        tx.execute(self._sql(sql.REDRIVING))
        if not again and self.copy_of(tx, row_id) is not None:
            return None
        redrive = self._sql(sql.REDRIVE, lock_ordering_key=self._lock_ordering_key("ordering_key"))
        new: int | None = tx.execute(redrive, {"id": row_id, "event_id": uuid4()}).scalar_one_or_none()
        return new

    def copy_of(self, tx: Connection, row_id: int) -> int | None:
        """The row that this one was last driven again as."""
        copy: int | None = tx.execute(self._sql(sql.COPY_OF), {"id": row_id}).scalar_one()
        return copy

    def failed(
        self, tx: Connection, *, after: int = 0, batch: int = BATCH, redriven: bool | None = None
    ) -> list[FailedRow]:
        """Failed rows, oldest first; with `redriven` only those that were driven again, or that were not."""
        values = {"after": after, "through": LAST_ID, "batch": batch, "redriven": redriven}
        return [FailedRow(*row) for row in tx.execute(self._sql(sql.FAILED), values)]

    def failed_row(self, tx: Connection, row_id: int) -> FailedRow | None:
        values = {"after": row_id - 1, "through": row_id, "batch": 1, "redriven": None}
        row = tx.execute(self._sql(sql.FAILED), values).one_or_none()
        return FailedRow(*row) if row else None

    def report(self) -> list[Entry]:
        """The health report. A backlog is not counted anew each time, also when no relay runs."""
        self._count_backlog()
        with self.engine.begin() as tx:
            return self.health(tx)

    def health(self, tx: Connection) -> list[Entry]:
        """The whole queue by status and event type."""
        return [Entry(*row) for row in tx.execute(self._sql(sql.HEALTH))]

    def _count_backlog(self) -> None:
        try:
            with self.engine.begin() as tx:
                tx.execute(self._sql(sql.SHORT_LOCK_TIMEOUT))
                self.roll_up(tx)
        except SQLAlchemyError as error:  # the report is right without it, only slower
            log.info("outbox_backlog_not_counted", error=type(error).__name__)

    def roll_up(self, tx: Connection) -> bool:
        """Count a backlog once instead of for every report; whether there was one."""
        if tx.execute(self._sql(sql.FOREIGN_HORIZON)).scalar_one():
            self._forget_backlog(tx)
        if tx.execute(self._sql(sql.UNCOUNTED), {"enough": BACKLOG}).scalar_one() < BACKLOG:
            return False
        if not tx.execute(self._sql(sql.COUNTING)).scalar_one():
            return False  # somebody is claiming: the next time will do
        tx.execute(self._sql(sql.ROLL_UP), {"most": COUNTED_AT_ONCE})
        return True

    def _forget_backlog(self, tx: Connection) -> None:
        # Checked again under the lock: another process may have been faster, and may have counted since.
        if tx.execute(self._sql(sql.COUNTING)).scalar_one() and tx.execute(self._sql(sql.FOREIGN_HORIZON)).scalar_one():
            tx.execute(self._sql(sql.FORGET_BACKLOG))

    def _lock_ordering_key(self, key: str) -> str:
        return sql.LOCK_ORDERING_KEY.format(schema=self.schema, key=key)

    def _limits(self) -> dict[str, Any]:
        return {"claim_seconds": CLAIM_SECONDS, "attempt_limit": self.attempt_limit}

    def _sql(self, statement: str, **parts: str) -> Any:
        prepared = text(statement.format(schema=self.schema, **parts))
        if ":payload" in statement:
            return prepared.bindparams(bindparam("payload", type_=JSONB))
        if ":ids" in statement:
            return prepared.bindparams(bindparam("ids", type_=ARRAY(BigInteger)))
        return prepared
