"""The database engine, with every time-out that Postgres leaves off by default."""

import select
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Engine, MetaData, create_engine, event, text
from sqlalchemy.exc import DBAPIError, InvalidatePoolError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from chassis import tenancy

# A statement must end well before gunicorn gives up on its worker, a lock wait well before the statement does.
STATEMENT_TIMEOUT_MS = 4_000
LOCK_TIMEOUT_MS = 1_000
IDLE_IN_TRANSACTION_MS = 5_000
POOL_TIMEOUT_S = 3

TIME_LIMITS_MS = {
    "statement_timeout": STATEMENT_TIMEOUT_MS,
    "lock_timeout": LOCK_TIMEOUT_MS,
    "idle_in_transaction_session_timeout": IDLE_IN_TRANSACTION_MS,
}
"""Set for every role (`migrations`) and by our engines."""

_EACH = "each statement is a transaction"
_SESSION = " ".join(f"-c {name}={value}" for name, value in TIME_LIMITS_MS.items()) + " -c timezone=UTC"
_KEEPALIVE = {
    "keepalives_idle": 10,
    "keepalives_interval": 3,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
    "connect_timeout": 3,
}

# SQLSTATE classes that mean "the database could not do it now", never "the request is wrong".
_PASSING = ("08", "53", "57", "58", "40", "55P03", "25P03", "25006")

NAMING = {
    "ix": "%(table_name)s_%(column_0_N_name)s_idx",
    "uq": "%(table_name)s_%(column_0_N_name)s_key",
    "ck": "%(table_name)s_%(constraint_name)s_check",
    "fk": "%(table_name)s_%(column_0_N_name)s_fkey",
    "pk": "%(table_name)s_pkey",
}


def metadata(schema: str) -> MetaData:
    """The tables of one service, named as Postgres itself would name their constraints."""
    return MetaData(schema=schema, naming_convention=NAMING)


def with_driver(url: str) -> str:
    """The address with our driver named: SQLAlchemy's own default is another one."""
    return url.replace("postgresql://", "postgresql+psycopg2://", 1)


def engine(url: str, *, pool_size: int, name: str) -> Engine:
    """An engine for one process; `name` shows in pg_stat_activity."""
    made = create_engine(
        with_driver(url),
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=POOL_TIMEOUT_S,
        pool_recycle=1_800,
        hide_parameters=True,  # an error may be logged, its parameters may not
        connect_args={"options": _SESSION, "application_name": name, **_KEEPALIVE},
    )
    event.listen(made, "checkout", _discard_if_closed)
    event.listen(made, "begin", _note_scope)
    event.listen(made, "before_cursor_execute", _send_scope, retval=True)
    return made


@contextmanager
def reading(database: Engine) -> Iterator[Connection]:
    """A connection whose every statement is a transaction of its own: one round trip, and one moment, each.

    Several statements that must see the same moment, and whatever writes, need `begin()`.
    """
    with database.connect() as connection:
        info = connection.info
        driver: Any = connection.connection.driver_connection
        driver.autocommit = info[_EACH] = True  # not by SQLAlchemy, which would tell the server
        try:
            yield connection
        finally:
            info.pop(_EACH, None)  # a lost connection has none any more
            if not driver.closed:
                driver.autocommit = False


@contextmanager
def in_one_message(database: Engine) -> Iterator[Connection]:
    """A connection whose every message is a transaction of its own, for one that writes by one or several statements.

    What they lock is free again before this process is given a processor.
    """
    with reading(database) as connection:
        yield connection


def closed_by_server(connection: Any) -> bool:
    """Whether the server has closed an unused connection of the driver. One that is open costs no round trip."""
    if connection.closed:
        return True
    unsolicited = select.poll()
    unsolicited.register(connection.fileno(), select.POLLIN)
    return bool(unsolicited.poll(0)) and not _answers(connection)


def _answers(connection: Any) -> bool:
    """Something unsolicited has come: a farewell, or only that a setting has changed."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        if not connection.autocommit:
            connection.rollback()
    except connection.Error:
        return False
    return True


def _discard_if_closed(connection: Any, record: Any, _proxy: Any) -> None:
    if record.info.setdefault("was_used", False) and closed_by_server(connection):
        raise InvalidatePoolError
    record.info["was_used"] = True


def _note_scope(connection: Connection) -> None:
    connection.info["scope"] = tenancy.scope()


def _send_scope(
    connection: Connection, _cursor: Any, statement: str, parameters: Any, _context: Any, _many: bool
) -> tuple[str, Any]:
    """Send whom the transaction serves with its first statement, which is every statement of `reading`."""
    scope = connection.info.get("scope") if _EACH in connection.info else connection.info.pop("scope", None)
    return (f"{scope}; {statement}" if scope else statement), parameters


def is_unavailable(error: BaseException) -> bool:
    """Whether the database was out of reach or overloaded, so that the same request may succeed later."""
    if isinstance(error, PoolTimeout):
        return True
    if not isinstance(error, DBAPIError):
        return False
    state = _sqlstate(error)
    if state is None:
        return error.connection_invalidated or isinstance(error, OperationalError)
    return state.startswith(_PASSING)


def is_lock_timeout(error: BaseException) -> bool:
    """Whether another transaction held a lock for longer than this one was allowed to wait."""
    return _sqlstate(error) == "55P03"


def log_fields(error: BaseException) -> dict[str, str | None]:
    """What a log line says of an unavailable database: no SQLSTATE where no connection was had, or it was lost."""
    return {"error": type(error).__name__, "sqlstate": _sqlstate(error)}


def _sqlstate(error: BaseException) -> str | None:
    return getattr(error.orig, "pgcode", None) if isinstance(error, DBAPIError) else None


def was_committing(error: BaseException) -> bool:
    """Whether the connection was lost where no statement was under way: then it was the COMMIT, done or not."""
    return isinstance(error, DBAPIError) and error.connection_invalidated and error.statement is None


def ping(database: Engine) -> None:
    with reading(database) as connection:
        connection.execute(text("SELECT 1"))
