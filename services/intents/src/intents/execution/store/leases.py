"""Whose leases they are: an executor that lives holds an advisory lock under its id, in a session of its own."""

import random
import select
from collections.abc import Collection
from typing import Any, NamedTuple

import psycopg2
from sqlalchemy import Engine, exc

from intents.store.statement import Statement, Transaction

_LOCK_CLASS = 20_410  # of our advisory locks, which all services on the database share
_LARGEST_HOLDER = 2**31 - 1

_HOLDERS = Statement(
    "execution_holders",
    ("integer",),
    """
    WITH alive AS MATERIALIZED (
        SELECT objid::bigint AS holder FROM pg_locks
        WHERE locktype = 'advisory' AND classid = $1 AND objsubid = 2 AND granted
          AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    )
    SELECT holder, true AS is_alive FROM alive
    UNION ALL
    SELECT DISTINCT lease_holder, false FROM intents.intent
    WHERE lease_until IS NOT NULL AND lease_holder IS NOT NULL AND lease_holder NOT IN (SELECT holder FROM alive)
    UNION ALL
    SELECT NULL, true WHERE EXISTS (SELECT FROM intents.intent WHERE open_actions > 0)
    """,
)
# Until now the holder may have sent: the quiet period before a second send counts from here. What is locked is being
# written this very moment, and is released next time if its lease is still there.
_RELEASE = Statement(
    "execution_release",
    ("integer[]",),
    """
    WITH abandoned AS MATERIALIZED (
        SELECT account_id, id FROM intents.intent
        WHERE lease_until IS NOT NULL AND lease_holder = ANY ($1) FOR UPDATE SKIP LOCKED
    )
    UPDATE intents.intent i
    SET lease_until = now(), lease_holder = NULL, next_attempt_at = now(), submit_started_at = now()
    FROM abandoned a WHERE i.account_id = a.account_id AND i.id = a.id
    RETURNING i.id
    """,
)


class HolderSession:
    """A database session that does nothing but hold the lock of one new holder id."""

    def __init__(self, engine: Engine) -> None:
        self.holder = random.randint(1, _LARGEST_HOLDER)  # noqa: S311 - unique, not secret # nosec B311
        try:
            self.connection = _own_connection(engine)
            with self.connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_lock(%s, %s)", (_LOCK_CLASS, self.holder))
        except psycopg2.Error as error:
            raise exc.OperationalError("hold", None, error, connection_invalidated=True) from error
        self._unsolicited = select.poll()
        self._unsolicited.register(self.connection.fileno(), select.POLLIN)

    def is_open(self) -> bool:
        """False as soon as the server, or the network, has ended it. The server sends nothing else unsolicited."""
        return not self.connection.closed and not self._unsolicited.poll(0)

    def close(self) -> None:
        self.connection.close()


def _own_connection(engine: Engine) -> Any:
    pooled = engine.raw_connection()
    connection: Any = pooled.driver_connection
    pooled.detach()  # the pool would end the session, or lend it to somebody else
    connection.autocommit = True
    return connection


class Holders(NamedTuple):
    alive: set[int]
    missed: set[int]
    """Those that hold leases and do not live."""
    any_open: bool
    """Whether any command is open, leased or not."""


def holders(tx: Transaction) -> Holders:
    rows = tx.read(_HOLDERS, (_LOCK_CLASS,))
    found = [row for row in rows if row.holder is not None]
    alive = {row.holder for row in found if row.is_alive}
    return Holders(alive, {row.holder for row in found if not row.is_alive}, any_open=len(found) < len(rows))


def release(tx: Transaction, gone: Collection[int]) -> int:
    """End the leases of holders that no longer live; how many there were."""
    return len(tx.write(_RELEASE, (list(gone),)))
