"""The gateway's tables and the only SQL on them. A function takes the connection first and decides nothing."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any, NamedTuple
from uuid import UUID

import psycopg2
from psycopg2.extensions import connection as Connection  # noqa: N812 - a class in spite of its name
from psycopg2.extras import execute_values, register_uuid

from tip_broker_fix.gateway.codec import Field
from tip_broker_fix.gateway.orders import ENDED, SENT, UNSEEN, Change, Order
from tip_broker_fix.gateway.session import Outgoing, Sent

_NAMES = [column.name for column in fields(Order)]
_COLUMNS = ", ".join(_NAMES)
_UPDATES = ", ".join(f"{name} = excluded.{name}" for name in _NAMES)
_values = attrgetter(*_NAMES)  # astuple copies every value
_SELECT = f"SELECT {_COLUMNS} FROM fix.order WHERE session = %s"  # noqa: S608 - the columns are our own words
_BY_NAME = f"{_SELECT} AND client_order_id = ANY(%s)"
_BY_STATUS = f"{_SELECT} AND status = %s"
_OF_ACCOUNT = (
    f"{_SELECT} AND account = %s AND status <> ALL(%s) AND (%s::timestamptz IS NULL OR created_at > %s) "
    "ORDER BY created_at LIMIT %s"
)
_LIMITS = "-c statement_timeout=4000 -c lock_timeout=1000 -c idle_in_transaction_session_timeout=5000 -c timezone=UTC"
_KEEPALIVE = {
    "keepalives_idle": 10,
    "keepalives_interval": 3,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
_CLOSED = tuple(UNSEEN | ENDED)
KEPT = timedelta(days=7)
"""How long messages are kept for whoever looks into what was sent."""
FORGOTTEN = 1000  # at once
register_uuid()  # type: ignore[no-untyped-call]


class LeaseLost(Exception):
    """Another gateway owns the session by now. Nothing was written."""


class Numbers(NamedTuple):
    next_out: int
    next_in: int


class Execution(NamedTuple):
    position: int
    order_id: str
    exec_id: str
    client_order_id: str
    symbol: str
    side: str
    quantity: Any
    price: Any
    occurred_at: datetime


def connect(url: str) -> Connection:
    options: dict[str, Any] = {"options": _LIMITS, "application_name": "fix-gateway", **_KEEPALIVE}
    made: Connection = psycopg2.connect(url, connect_timeout=3, **options)
    return made


def take_lease(tx: Connection, session: str, owner: UUID, seconds: float) -> Numbers | None:
    """Own the session, if nobody else does; where its numbers stand."""
    with tx.cursor() as cursor:
        cursor.execute("INSERT INTO fix.session (name) VALUES (%s) ON CONFLICT DO NOTHING", (session,))
        cursor.execute(
            "UPDATE fix.session SET owner = %s, lease_until = now() + %s * interval '1 second' "
            "WHERE name = %s AND (owner = %s OR lease_until < now()) RETURNING next_out, next_in",
            (owner, seconds, session, owner),
        )
        row = cursor.fetchone()
        return Numbers(*row) if row else None


def keep_numbers(tx: Connection, session: str, owner: UUID, seconds: float, numbers: Numbers) -> None:
    """Also renews the lease: whoever lost it writes nothing."""
    with tx.cursor() as cursor:
        cursor.execute(
            "UPDATE fix.session SET next_out = %s, next_in = %s, lease_until = now() + %s * interval '1 second' "
            "WHERE name = %s AND owner = %s",
            (*numbers, seconds, session, owner),
        )
        if cursor.rowcount != 1:
            raise LeaseLost


def give_back_lease(tx: Connection, session: str, owner: UUID) -> None:
    with tx.cursor() as cursor:
        cursor.execute(
            "UPDATE fix.session SET owner = NULL, lease_until = '-infinity' WHERE name = %s AND owner = %s",
            (session, owner),
        )


def keep_messages(tx: Connection, session: str, sent: Iterable[Outgoing]) -> None:
    rows = [(session, out.number, out.type, json.dumps(out.body), out.sent_at) for out in sent]
    if rows:
        with tx.cursor() as cursor:
            execute_values(cursor, "INSERT INTO fix.message (session, number, type, body, sent_at) VALUES %s", rows)


def messages(tx: Connection, session: str, first: int, last: int, since: datetime) -> list[Sent]:
    with tx.cursor() as cursor:
        cursor.execute(
            "SELECT number, type, body, sent_at FROM fix.message "
            "WHERE session = %s AND number BETWEEN %s AND %s AND sent_at >= %s ORDER BY number",
            (session, first, last, since),
        )
        return [Sent(number, kind, _body(body), at) for number, kind, body, at in cursor]


def message(tx: Connection, session: str, number: int) -> Sent | None:
    with tx.cursor() as cursor:
        cursor.execute(
            "SELECT number, type, body, sent_at FROM fix.message WHERE session = %s AND number = %s", (session, number)
        )
        row = cursor.fetchone()
        return Sent(row[0], row[1], _body(row[2]), row[3]) if row else None


def forget_messages(tx: Connection, now: datetime) -> int:
    """Some of those that are old; how many."""
    with tx.cursor() as cursor:
        cursor.execute(
            "DELETE FROM fix.message WHERE ctid = ANY(ARRAY(SELECT ctid FROM fix.message WHERE sent_at < %s LIMIT %s))",
            (now - KEPT, FORGOTTEN),
        )
        return cursor.rowcount


def _body(rows: Any) -> tuple[Field, ...]:
    return tuple((tag, value) for tag, value in rows)


def orders(tx: Connection, session: str, names: Sequence[str]) -> dict[str, Order]:
    found = _orders(tx, _BY_NAME, (session, list(names)))
    return {order.client_order_id: order for order in found}


def unanswered(tx: Connection, session: str) -> list[Order]:
    return _orders(tx, _BY_STATUS, (session, SENT))


def account_orders(
    tx: Connection, session: str, account: str, *, only_open: bool, after: datetime | None, limit: int
) -> list[Order]:
    """Oldest first."""
    closed = list(_CLOSED if only_open else UNSEEN)
    return _orders(tx, _OF_ACCOUNT, (session, account, closed, after, after, limit))


def _orders(tx: Connection, query: str, parameters: Sequence[Any]) -> list[Order]:
    with tx.cursor() as cursor:
        cursor.execute(query, parameters)
        return [Order(*row) for row in cursor]


def keep_orders(tx: Connection, session: str, changed: Iterable[Order]) -> None:
    rows = [(session, *_values(order)) for order in changed]
    if rows:
        with tx.cursor() as cursor:
            execute_values(
                cursor,
                f"INSERT INTO fix.order (session, {_COLUMNS}) VALUES %s "  # noqa: S608 - our own words
                f"ON CONFLICT (session, client_order_id) DO UPDATE SET {_UPDATES}",
                rows,
            )


def keep_executions(tx: Connection, session: str, changes: Iterable[Change]) -> None:
    """Each once, however often it is reported."""
    rows = [
        (session, change.order.order_id or "", change.fill.exec_id, change.order.account, change.order.client_order_id,
         change.order.symbol, change.order.side, change.fill.quantity, change.fill.price, change.at)
        for change in changes if change.fill
    ]  # fmt: skip
    if rows:
        with tx.cursor() as cursor:
            execute_values(
                cursor,
                "INSERT INTO fix.execution (session, order_id, exec_id, account, client_order_id, symbol, side, "
                "quantity, price, occurred_at) VALUES %s ON CONFLICT DO NOTHING",
                rows,
            )


def executions(
    tx: Connection, session: str, account: str, *, after: datetime | None, position: int, limit: int
) -> list[Execution]:
    with tx.cursor() as cursor:
        cursor.execute(
            "SELECT position, order_id, exec_id, client_order_id, symbol, side, quantity, price, occurred_at "
            "FROM fix.execution WHERE session = %s AND account = %s AND position > %s "
            "AND (%s::timestamptz IS NULL OR occurred_at > %s) ORDER BY position LIMIT %s",
            (session, account, position, after, after, limit),
        )
        return [Execution(*row) for row in cursor]


class Holding(NamedTuple):
    symbol: str
    quantity: Any
    cost: Any
    last_price: Any


def holdings(tx: Connection, session: str, account: str) -> list[Holding]:
    """What the fills of this session come to. `cost`: what was paid for it, less what was received."""
    with tx.cursor() as cursor:
        cursor.execute(
            "SELECT symbol, sum(signed), sum(signed * average), (array_agg(average ORDER BY updated_at DESC))[1] FROM ("
            "SELECT symbol, CASE side WHEN 'buy' THEN filled ELSE -filled END AS signed, "
            "coalesce(average, 0) AS average, updated_at FROM fix.order "
            "WHERE session = %s AND account = %s AND filled > 0) AS filled GROUP BY symbol ORDER BY symbol",
            (session, account),
        )
        return [Holding(*row) for row in cursor]
