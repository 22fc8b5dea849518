"""The shortest way to the database, for the one path where every round trip counts.

A thread keeps one connection in autocommit, where a statement is a transaction of one round trip, and the server keeps
the plans of the statements. SQLAlchemy's pool would ping at every checkout and its statements would be planned anew.
"""

import select
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import psycopg2
from psycopg2 import extras
from sqlalchemy import Engine, exc

from chassis import db, tenancy

_NOT_PREPARED = "26000"


class Statement(NamedTuple):
    """A statement with $1 … $n, prepared on a connection when it is first used there."""

    name: str
    types: tuple[str, ...]
    sql: str

    @property
    def prepare(self) -> str:
        return f"PREPARE {self.name} ({', '.join(self.types)}) AS {self.sql}"

    @property
    def execute(self) -> str:
        # Of an array the driver writes the elements only, and what type they are is for us to say.
        values = (f"%s::{one}" if one.endswith("[]") else "%s" for one in self.types)
        return f"EXECUTE {self.name} ({', '.join(values)})"


class Uncertain(exc.OperationalError):
    """The connection was lost while something was being committed: nobody knows whether it was."""


class Direct:
    """A connection for each thread that asks, made when first needed and again after it was lost."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._here = threading.local()

    def read(self, statement: Statement, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """The rows. A connection found dead is replaced and asked again: a read may be repeated."""
        try:
            return self._execute(statement, values)
        except exc.OperationalError as error:
            if not error.connection_invalidated or self._in_transaction:
                raise
            return self._execute(statement, values)

    def write(self, statement: Statement, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Never repeated: after a lost connection nobody knows whether it was done, and it is Uncertain."""
        try:
            return self._execute(statement, values)
        except exc.DBAPIError as error:
            if self._in_transaction:
                raise
            raise _as_uncertain(error) from error.orig

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Everything this thread does inside is one transaction; an error takes it back. One inside another is it."""
        if self._in_transaction:
            yield
            return
        self._plain("; ".join(["BEGIN", *self._settings()]))
        self._here.in_transaction = True
        try:
            yield
            self._commit()
        except BaseException:
            self._roll_back()
            raise
        finally:
            self._here.in_transaction = False

    def limit_lock_wait(self, seconds: float) -> None:
        """How long each lock may be waited for from now to the end of the transaction, instead of what all wait."""
        wait_ms = int(seconds * 1000)
        statement_ms = wait_ms + db.STATEMENT_TIMEOUT_MS
        self._plain(f"SET LOCAL lock_timeout = {wait_ms}; SET LOCAL statement_timeout = {statement_ms}")

    @contextmanager
    def waiting_at_most(self, seconds: float) -> Iterator[None]:
        """Transactions that this thread begins inside wait no longer for a lock, instead of as long as all wait."""
        self._here.lock_wait_ms = int(seconds * 1000)
        try:
            yield
        finally:
            self._here.lock_wait_ms = None

    def _settings(self) -> Iterator[str]:
        """What is said at the beginning of a transaction. Sent with its first words it costs no round trip."""
        scope, lock_wait_ms = tenancy.scope(), getattr(self._here, "lock_wait_ms", None)
        if scope is not None:
            yield scope
        if lock_wait_ms is not None:
            yield f"SET LOCAL lock_timeout = {lock_wait_ms}"

    @property
    def _in_transaction(self) -> bool:
        return bool(getattr(self._here, "in_transaction", False))

    def _roll_back(self) -> None:
        cursor = getattr(self._here, "cursor", None)
        if cursor is not None:
            try:
                cursor.execute("ROLLBACK")
            except psycopg2.Error:
                self._drop()

    def _commit(self) -> None:
        try:
            self._plain("COMMIT")
        except exc.DBAPIError as error:
            raise _as_uncertain(error) from error.orig

    def _plain(self, words: str) -> None:
        cursor = self._cursor()
        try:
            cursor.execute(words)
        except psycopg2.Error as error:
            raise self._translated(error) from error

    def _execute(self, statement: Statement, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        cursor = self._cursor()
        try:
            if statement.name not in self._here.prepared:
                cursor.execute(statement.prepare)
                self._here.prepared.add(statement.name)
            words = "; ".join([*([] if self._in_transaction else self._settings()), statement.execute])
            cursor.execute(words, values)
            rows: list[tuple[Any, ...]] = cursor.fetchall()
        except psycopg2.Error as error:
            raise self._translated(error) from error
        return rows

    def _cursor(self) -> Any:
        cursor = getattr(self._here, "cursor", None)
        if cursor is not None and not self._in_transaction and _was_left(cursor.connection):
            self._drop()
            cursor = None
        return self._connect() if cursor is None or cursor.connection.closed else cursor

    def _connect(self) -> Any:
        try:
            pooled = self._engine.raw_connection()
        except psycopg2.Error as error:  # as its driver says it: only `Engine.connect` would translate
            raise exc.OperationalError("connect", None, error, connection_invalidated=True) from error
        connection: Any = pooled.driver_connection
        pooled.detach()
        connection.autocommit = True
        extras.register_uuid(conn_or_curs=connection)  # type: ignore[no-untyped-call]
        self._here.cursor, self._here.prepared = connection.cursor(), set()
        return self._here.cursor

    def _translated(self, error: psycopg2.Error) -> exc.DBAPIError:
        """As SQLAlchemy would have it, so that errors are answered alike everywhere; without any values."""
        cursor = self._here.cursor
        lost = bool(cursor.connection.closed) or error.pgcode == _NOT_PREPARED
        if lost:
            self._drop()
        names = (ancestor.__name__ for ancestor in type(error).__mro__)
        kind: type[exc.DBAPIError] = next(getattr(exc, name) for name in names if hasattr(exc, name))
        if error.pgcode == _NOT_PREPARED:
            kind = exc.OperationalError
        return kind("a prepared statement of intents", None, error, connection_invalidated=lost)

    def _drop(self) -> None:
        cursor, self._here.cursor = getattr(self._here, "cursor", None), None
        if cursor is not None and not cursor.connection.closed:
            cursor.connection.close()


def _was_left(connection: Any) -> bool:
    """Whether the server has said something unasked, which is that it goes. After a write it is too late to look."""
    if connection.closed:
        return True
    waiting = select.poll()
    waiting.register(connection.fileno(), select.POLLIN)
    return bool(waiting.poll(0))


def _as_uncertain(error: exc.DBAPIError) -> exc.DBAPIError:
    orig = error.orig
    if not error.connection_invalidated or orig is None or getattr(orig, "pgcode", None) == _NOT_PREPARED:
        return error
    return Uncertain(error.statement, None, orig, connection_invalidated=True)
