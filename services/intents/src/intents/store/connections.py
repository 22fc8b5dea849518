"""Prepared statements on connections of their own, for the paths where every round trip counts.

They are in autocommit, where a statement is a transaction of one round trip, and the server keeps the plans of the
statements. SQLAlchemy's statements would be planned anew.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import psycopg2
from psycopg2 import extras
from sqlalchemy import Engine, exc

from chassis import db, tenancy
from intents.store.statement import Row, Statement, Transaction, row_maker

_NOT_PREPARED = "26000"
MOST = 12
"""Of one process: one for each thread of a web process, its batches included; those of an executor share them."""
PLAN_BY_KEYS = "; ".join(
    ["SET plan_cache_mode = force_generic_plan"]
    + [f"SET enable_{way} = off" for way in ("seqscan", "bitmapscan", "hashjoin", "mergejoin")]
)
"""Our few statements are large: planning one anew takes longer than running it. And each reaches its rows by a key: a
plan made while the tables were still empty must not read all of them when they no longer are."""


class CommitOutcomeUnknown(exc.OperationalError):
    """The connection was lost during a commit: nobody knows whether it was done."""


class _Session:
    """A connection, opened when first needed and again after it was lost, and what is prepared on it."""

    __slots__ = ("cursor", "make_row")

    def __init__(self) -> None:
        self.cursor: Any = None
        self.make_row: dict[str, Callable[[Sequence[Any]], Row] | None] = {}


class PreparedConnections:
    """A few connections that all threads of a process share: a thread has one for a statement, or for a transaction.

    One for each thread would be too many: an executor has dozens, and what all processes may hold together is bounded.
    The thread-local holds the connection and nothing that changes what a call means.
    """

    def __init__(self, engine: Engine, most: int = MOST) -> None:
        self._engine = engine
        self._idle: list[_Session] = []  # the one that was used last is used next
        self._free = threading.BoundedSemaphore(most)
        self._local = threading.local()

    def autocommit(self, lock_wait_s: float | None = None) -> Transaction:
        """Each statement commits by itself, in one round trip.

        A read is repeated after a lost connection. A write raises CommitOutcomeUnknown instead.
        """
        return _Autocommit(self, lock_wait_s)

    @contextmanager
    def begin(self, lock_wait_s: float | None = None) -> Iterator["OpenTransaction"]:
        """BEGIN … COMMIT; any exception rolls back. CommitOutcomeUnknown if the COMMIT is not answered."""
        self.require_no_open_transaction()
        with self._session():
            self._local.opening = ["BEGIN", *_settings(lock_wait_s)]  # sent with the first statement, in its round trip
            self._local.in_transaction = True
            try:
                yield OpenTransaction(self)
                self._commit()
            except BaseException:
                self._roll_back()
                raise
            finally:
                self._local.in_transaction, self._local.opening = False, []

    @contextmanager
    def _session(self) -> Iterator[None]:
        """Have a connection in this thread."""
        if not self._free.acquire(timeout=db.POOL_TIMEOUT_S):
            raise exc.TimeoutError("all prepared connections are in use")
        try:
            self._local.session = self._idle.pop()
        except IndexError:
            self._local.session = _Session()
        try:
            yield
        finally:
            self._idle.append(self._local.session)
            self._local.session = None
            self._free.release()

    def require_no_open_transaction(self) -> None:
        """Whoever has begun a transaction passes it on: a statement beside it would commit at another time."""
        if self._in_transaction:
            raise RuntimeError("this thread has an open transaction: use it")

    def send(self, command: str) -> None:
        """Run a command that has no result."""
        cursor = self._cursor()
        try:
            cursor.execute("; ".join([*self._take_opening(), command]))
        except psycopg2.Error as error:
            raise self._translated(error) from error

    def _execute(
        self,
        statement: Statement,
        values: Sequence[Any],
        settings: Sequence[str] = (),
        first: tuple[Statement, Sequence[Any]] | None = None,
        then: Sequence[str] = (),
    ) -> list[Row]:
        """Run the statement; in the same round trip, before it, the settings, the `first` one and what comes `then`."""
        cursor = self._cursor()
        earlier, earlier_values = ([first[0]], first[1]) if first else ([], ())
        try:
            for each in (*earlier, statement):
                self._prepare(cursor, each)
            before = [*self._take_opening(), *settings, *(each.execute for each in earlier), *then]
            cursor.execute("; ".join([*before, statement.execute]), [*earlier_values, *values])
            return self._named(statement, cursor)
        except psycopg2.Error as error:
            raise self._translated(error) from error

    def _prepare(self, cursor: Any, statement: Statement) -> None:
        if statement.name not in self._local.session.make_row:
            cursor.execute(statement.prepare)
            self._local.session.make_row[statement.name] = None

    def _take_opening(self) -> list[str]:
        """What begins the transaction, if nothing was sent in it yet."""
        opening, self._local.opening = self._opening, []
        return opening

    @property
    def _opening(self) -> list[str]:
        return getattr(self._local, "opening", [])

    def _named(self, statement: Statement, cursor: Any) -> list[Row]:
        made = self._local.session.make_row
        make_row = made[statement.name]
        if make_row is None:
            columns = tuple(column.name for column in cursor.description)
            make_row = made[statement.name] = row_maker(columns)
        return [make_row(values) for values in cursor.fetchall()]

    @property
    def _in_transaction(self) -> bool:
        return bool(getattr(self._local, "in_transaction", False))

    def _commit(self) -> None:
        if self._opening or not self._in_transaction:
            return
        try:
            self.send("COMMIT")
        except exc.DBAPIError as error:
            raise _as_unknown(error) from error.orig

    def _commit_with(
        self, last: tuple[Statement, Sequence[Any]], read: Statement, read_values: Sequence[Any]
    ) -> list[Row]:
        try:
            rows = self._execute(read, read_values, first=last, then=["COMMIT"])
        except exc.DBAPIError as error:
            raise _as_unknown(error) from error.orig
        self._local.in_transaction = False
        return rows

    def _roll_back(self) -> None:
        cursor = self._local.session.cursor
        if cursor is not None and not self._opening:
            try:
                cursor.execute("ROLLBACK")
            except psycopg2.Error:
                self._drop()

    def _cursor(self) -> Any:
        cursor = self._local.session.cursor
        is_idle = not self._in_transaction or self._opening
        if cursor is not None and is_idle and db.closed_by_server(cursor.connection):
            self._drop()
            cursor = None
        return self._connect() if cursor is None or cursor.connection.closed else cursor

    def _connect(self) -> Any:
        try:
            pooled = self._engine.raw_connection()
        except psycopg2.Error as error:  # the driver's own error: only `Engine.connect` would translate it
            raise exc.OperationalError("connect", None, error, connection_invalidated=True) from error
        connection: Any = pooled.driver_connection
        pooled.detach()
        connection.autocommit = True
        extras.register_uuid(conn_or_curs=connection)  # type: ignore[no-untyped-call]
        session = self._local.session
        session.cursor, session.make_row = connection.cursor(), {}
        try:
            session.cursor.execute(PLAN_BY_KEYS)
        except psycopg2.Error as error:
            translated = self._translated(error)
            self._drop()  # without these settings nobody may use it
            raise translated from error
        return session.cursor

    def _translated(self, error: psycopg2.Error) -> exc.DBAPIError:
        """The error that SQLAlchemy would raise, so that errors are answered alike everywhere; without any values."""
        cursor = self._local.session.cursor
        lost = bool(cursor.connection.closed) or error.pgcode == _NOT_PREPARED
        if lost:
            self._drop()
        names = (ancestor.__name__ for ancestor in type(error).__mro__)
        kind: type[exc.DBAPIError] = next(getattr(exc, name) for name in names if hasattr(exc, name))
        if error.pgcode == _NOT_PREPARED:
            kind = exc.OperationalError
        return kind("a prepared statement of intents", None, error, connection_invalidated=lost)

    def _drop(self) -> None:
        session = self._local.session
        cursor, session.cursor = session.cursor, None
        if cursor is not None and not cursor.connection.closed:
            cursor.connection.close()


class _Autocommit:
    def __init__(self, connections: PreparedConnections, lock_wait_s: float | None) -> None:
        self._connections, self._lock_wait_s = connections, lock_wait_s

    def read(self, statement: Statement, values: Sequence[Any]) -> list[Row]:
        with self._alone():
            try:
                return self._execute(statement, values)
            except exc.OperationalError as error:
                if not error.connection_invalidated:
                    raise
                return self._execute(statement, values)

    def write(self, statement: Statement, values: Sequence[Any]) -> list[Row]:
        with self._alone():
            try:
                return self._execute(statement, values)
            except exc.DBAPIError as error:
                raise _as_unknown(error) from error.orig

    def _alone(self) -> AbstractContextManager[None]:
        self._connections.require_no_open_transaction()
        return self._connections._session()

    def _execute(self, statement: Statement, values: Sequence[Any]) -> list[Row]:
        return self._connections._execute(statement, values, _settings(self._lock_wait_s))


class OpenTransaction:
    """What `begin` gives: statements that commit together."""

    def __init__(self, connections: PreparedConnections) -> None:
        self._connections = connections

    def read(self, statement: Statement, values: Sequence[Any]) -> list[Row]:
        return self._connections._execute(statement, values)

    def write(self, statement: Statement, values: Sequence[Any]) -> list[Row]:
        return self._connections._execute(statement, values)

    def write_after(self, first: Statement, statement: Statement, values: Sequence[Any]) -> list[Row]:
        """Run both with the same values in one round trip; the rows of the second."""
        return self._connections._execute(statement, values, first=(first, values))

    def write_last(
        self, statement: Statement, values: Sequence[Any], read: Statement, read_values: Sequence[Any]
    ) -> list[Row]:
        """Run the statement, commit, and read: in one round trip; the rows of `read`. Nothing may follow.

        So what the statement locks is not locked while this process waits for a processor.
        """
        return self._connections._commit_with((statement, values), read, read_values)

    def limit_lock_wait(self, seconds: float) -> None:
        """Until the transaction ends, wait so long for each lock instead of the role's own limit."""
        wait_ms = int(seconds * 1000)
        statement_ms = wait_ms + db.STATEMENT_TIMEOUT_MS
        self._connections.send(f"SET LOCAL lock_timeout = {wait_ms}; SET LOCAL statement_timeout = {statement_ms}")


def _settings(lock_wait_s: float | None) -> list[str]:
    """What holds for one transaction. Sent with its first statement it costs no round trip."""
    settings = [] if (scope := tenancy.scope()) is None else [scope]
    if lock_wait_s is not None:
        settings.append(f"SET LOCAL lock_timeout = {int(lock_wait_s * 1000)}")
    return settings


def _as_unknown(error: exc.DBAPIError) -> exc.DBAPIError:
    orig = error.orig
    if not error.connection_invalidated or orig is None or getattr(orig, "pgcode", None) == _NOT_PREPARED:
        return error
    return CommitOutcomeUnknown(error.statement, None, orig, connection_invalidated=True)
