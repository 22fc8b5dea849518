"""The only SQL on the outbox tables. Every moment is the database's, so a worker's wrong clock changes nothing."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Connection, Engine, bindparam, text
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.types import BigInteger

from chassis import tracing
from chassis.outbox.bell import Bell

CLAIM_SECONDS = 5  # an older claim means that no worker is running (the specification's number)
MAX_BACKOFF_SECONDS = 300
BATCH = 100  # the measured knee: larger batches drain no faster

_APPEND = """
INSERT INTO {schema}.outbox (event_id, event_type, ordering_key, payload, traceparent)
VALUES (:event_id, :event_type, :ordering_key, :payload, :traceparent)
"""

# A row whose worker died during the last attempt allowed is nobody's: the claim below skips it, so it is buried here.
_BURY = """
UPDATE {schema}.outbox SET status = 'failed', settled_at = now(), claim_token = NULL, last_error = 'worker_lost'
WHERE id IN (
    SELECT id FROM {schema}.outbox
    WHERE status = 'processing' AND claimed_at < now() - make_interval(secs => :claim_seconds)
      AND attempts >= :attempt_limit
    FOR UPDATE SKIP LOCKED
)
RETURNING id, event_type
"""

# Oldest first; of the rows that share an ordering key only the first open one may be taken.
_CLAIM = """
WITH waiting AS (
    SELECT o.id FROM {schema}.outbox o
    WHERE o.status = 'pending' AND o.available_at <= now() AND {head}
    ORDER BY o.available_at, o.id LIMIT :batch FOR UPDATE SKIP LOCKED
), abandoned AS (
    SELECT o.id FROM {schema}.outbox o
    WHERE o.status = 'processing' AND o.claimed_at < now() - make_interval(secs => :claim_seconds)
      AND o.attempts < :attempt_limit
    ORDER BY o.claimed_at LIMIT :batch FOR UPDATE SKIP LOCKED
), chosen AS (
    SELECT id FROM abandoned UNION ALL SELECT id FROM waiting LIMIT :batch
)
UPDATE {schema}.outbox o
SET status = 'processing', claimed_at = now(), attempts = attempts + 1, claim_token = :claim_token
FROM chosen WHERE o.id = chosen.id
RETURNING o.id, o.event_id, o.event_type, o.payload, o.traceparent, o.attempts, o.created_at
"""
_HEAD = """(o.ordering_key IS NULL OR NOT EXISTS (
        SELECT 1 FROM {schema}.outbox e
        WHERE e.ordering_key = o.ordering_key AND e.id < o.id AND e.status IN ('pending', 'processing')))"""

# The head row gives positions in commit order without a gap; it is touched once per batch, by workers only.
_COMPLETE = """
WITH mine AS (
    SELECT id, event_type, attempts, row_number() OVER (ORDER BY id) AS place FROM {schema}.outbox
    WHERE id IN (
        SELECT id FROM {schema}.outbox
        WHERE id = ANY(:ids) AND claim_token = :claim_token AND status = 'processing' ORDER BY id FOR UPDATE
    )
), head AS (
    UPDATE {schema}.outbox_head SET last_position = last_position + (SELECT count(*) FROM mine) RETURNING last_position
), counted AS (
    INSERT INTO {schema}.outbox_completed (event_type, attempts, count)
    SELECT event_type, attempts, count(*) FROM mine GROUP BY event_type, attempts ORDER BY event_type, attempts
    ON CONFLICT (event_type, attempts) DO UPDATE SET count = outbox_completed.count + excluded.count
)
UPDATE {schema}.outbox o
SET status = 'completed', settled_at = now(), claim_token = NULL, last_error = NULL,
    position = head.last_position - (SELECT count(*) FROM mine) + mine.place
FROM mine, head WHERE o.id = mine.id
RETURNING o.id
"""

_RETRY = """
UPDATE {schema}.outbox
SET status = CASE WHEN attempts >= :attempt_limit THEN 'failed' ELSE 'pending' END,
    settled_at = CASE WHEN attempts >= :attempt_limit THEN now() END,
    available_at = now() + make_interval(secs => least(:max_backoff, power(2, least(attempts, 20)))),
    claimed_at = NULL, claim_token = NULL, last_error = :error
WHERE id = :id AND claim_token = :claim_token AND status = 'processing'
RETURNING status
"""

_RELEASE = """
UPDATE {schema}.outbox
SET status = 'pending', attempts = attempts - 1, claimed_at = NULL, claim_token = NULL,
    available_at = now() + make_interval(secs => :delay), last_error = :error
WHERE id = ANY(:ids) AND claim_token = :claim_token AND status = 'processing'
RETURNING id
"""

_PRUNE = """
WITH old AS (
    DELETE FROM {schema}.outbox WHERE id IN (
        SELECT id FROM {schema}.outbox WHERE status = 'completed' AND created_at < now() - make_interval(days => :days)
        LIMIT :batch FOR UPDATE SKIP LOCKED)
    RETURNING event_type, attempts
), gone AS (
    SELECT event_type, attempts, count(*) AS count FROM old GROUP BY event_type, attempts
), counted AS (
    UPDATE {schema}.outbox_completed c SET count = c.count - gone.count
    FROM gone WHERE c.event_type = gone.event_type AND c.attempts = gone.attempts
)
SELECT coalesce(sum(count), 0)::bigint FROM gone
"""

_REDRIVE = """
INSERT INTO {schema}.outbox (event_id, event_type, ordering_key, payload, traceparent)
SELECT gen_random_uuid(), event_type, ordering_key, payload, traceparent FROM {schema}.outbox
WHERE id = :id AND status = 'failed'
RETURNING id
"""

_FAILED = """
SELECT id, event_id, event_type, attempts, created_at, settled_at, last_error FROM {schema}.outbox
WHERE status = 'failed' ORDER BY id LIMIT :batch
"""

# Open rows are few and indexed; completed ones are counted when they are settled, not when somebody asks.
_HEALTH = """
SELECT status, event_type, count(*) AS count, min(created_at) AS oldest_created_at, max(attempts) AS max_attempts,
       min(claimed_at) FILTER (WHERE status = 'processing') AS oldest_claimed_at
FROM {schema}.outbox WHERE status <> 'completed' GROUP BY status, event_type
UNION ALL
SELECT 'completed', c.event_type, c.count, oldest.created_at, c.max_attempts, NULL
FROM (SELECT event_type, sum(count)::bigint AS count, max(attempts) AS max_attempts
      FROM {schema}.outbox_completed WHERE count > 0 GROUP BY event_type) c
CROSS JOIN LATERAL (
    SELECT created_at FROM {schema}.outbox o
    WHERE o.status = 'completed' AND o.event_type = c.event_type ORDER BY created_at LIMIT 1) oldest
ORDER BY 1, 2
"""


@dataclass(frozen=True)
class Event:
    """Something that happened. Rows with the same ordering key are delivered one after the other."""

    event_type: str
    payload: Mapping[str, Any]
    ordering_key: str | None = None


@dataclass(frozen=True)
class Row:
    """A claimed event."""

    id: int
    event_id: UUID
    event_type: str
    payload: Mapping[str, Any]
    traceparent: str | None
    attempts: int
    created_at: datetime


@dataclass(frozen=True)
class Claim:
    """Rows taken together; only the holder of the token may settle them."""

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


class Outbox:
    """One service's outbox."""

    def __init__(self, engine: Engine, schema: str, *, attempt_limit: int = 10) -> None:
        self.engine, self.schema, self.attempt_limit = engine, schema, attempt_limit
        self.bell = Bell(engine, schema)

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        """A transaction whose events the relay is woken for as soon as it has committed."""
        with self.engine.begin() as tx:
            yield tx
        self.bell.ring()

    def append(self, tx: Connection, event: Event) -> UUID:
        """Queue an event in the caller's transaction. Its payload holds ids, never a secret."""
        event_id = uuid4()
        occurred = tx.execute(text("SELECT now()")).scalar_one()
        payload = {"event_id": str(event_id), "event_type": event.event_type, "occurred_at": occurred.isoformat()}
        values = {
            "event_id": event_id,
            "event_type": event.event_type,
            "ordering_key": event.ordering_key,
            "payload": payload | dict(event.payload),
            "traceparent": tracing.traceparent(),
        }
        tx.execute(self._sql(_APPEND), values)
        return event_id

    def claim(self, tx: Connection, batch: int = BATCH) -> Claim:
        token = uuid4()
        values = {"batch": batch, "claim_token": token, **self._limits()}
        rows = tx.execute(self._sql(_CLAIM, head=_HEAD.format(schema=self.schema)), values).all()
        return Claim(token, tuple(sorted((Row(*row) for row in rows), key=lambda row: row.id)))

    def bury(self, tx: Connection) -> list[tuple[int, str]]:
        """Fail the rows whose worker vanished during their last attempt."""
        return [(row.id, row.event_type) for row in tx.execute(self._sql(_BURY), self._limits())]

    def complete(self, tx: Connection, claim: Claim, ids: Sequence[int]) -> int:
        """How many rows are now completed; fewer than asked means that a late worker was kept out."""
        values = {"ids": list(ids), "claim_token": claim.token}
        return len(tx.execute(self._sql(_COMPLETE), values).all())

    def retry(self, tx: Connection, claim: Claim, row_id: int, error: str) -> str | None:
        """Put a row back after its own fault, or fail it at the limit; the status it has now, None if not ours."""
        values = {
            "id": row_id,
            "claim_token": claim.token,
            "attempt_limit": self.attempt_limit,
            "max_backoff": MAX_BACKOFF_SECONDS,
            "error": error,
        }
        status: str | None = tx.execute(self._sql(_RETRY), values).scalar_one_or_none()
        return status

    def release(self, tx: Connection, claim: Claim, ids: Sequence[int], *, delay: float, error: str) -> int:
        """Give rows back with their attempt: what stopped them was not their fault."""
        values = {"ids": list(ids), "claim_token": claim.token, "delay": delay, "error": error}
        return len(tx.execute(self._sql(_RELEASE), values).all())

    def prune(self, tx: Connection, *, days: int, batch: int = 1_000) -> int:
        return int(tx.execute(self._sql(_PRUNE), {"days": days, "batch": batch}).scalar_one())

    def redrive(self, tx: Connection, row_id: int) -> int | None:
        """Copy a failed row into a new one; the failed row stays as it is. None if there is no such row."""
        new: int | None = tx.execute(self._sql(_REDRIVE), {"id": row_id}).scalar_one_or_none()
        return new

    def failed(self, tx: Connection, batch: int = BATCH) -> list[Mapping[str, Any]]:
        return [dict(row._mapping) for row in tx.execute(self._sql(_FAILED), {"batch": batch})]

    def health(self, tx: Connection) -> list[Entry]:
        return [Entry(*row) for row in tx.execute(self._sql(_HEALTH))]

    def _limits(self) -> dict[str, Any]:
        return {"claim_seconds": CLAIM_SECONDS, "attempt_limit": self.attempt_limit}

    def _sql(self, statement: str, **parts: str) -> Any:
        prepared = text(statement.format(schema=self.schema, **parts))
        if ":payload" in statement:
            return prepared.bindparams(bindparam("payload", type_=JSONB))
        if ":ids" in statement:
            return prepared.bindparams(bindparam("ids", type_=ARRAY(BigInteger)))
        return prepared
