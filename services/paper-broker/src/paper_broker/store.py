"""SQLite, write-ahead logged. One writer; each `write` is one transaction and, on a file, one fsync."""

import fcntl
import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from types import NoneType
from typing import IO, Any, get_args, get_type_hints

from paper_broker.model import Changes, Event, Order, Position, Quote
from paper_broker.model.state import State

FILE_NAME = "paper-broker.sqlite3"
LOCK_NAME = "paper-broker.lock"
LEDGER_PAGE = 1_000
SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS accounts (id TEXT PRIMARY KEY, cash TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS positions (
    account_id TEXT NOT NULL, symbol TEXT NOT NULL, qty TEXT NOT NULL, cost TEXT NOT NULL,
    PRIMARY KEY (account_id, symbol)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS events (
    id INTEGER PRIMARY KEY, account_id TEXT NOT NULL, order_id TEXT NOT NULL, kind TEXT NOT NULL, at TEXT NOT NULL,
    symbol TEXT NOT NULL, side TEXT NOT NULL, order_status TEXT NOT NULL, cum_qty TEXT NOT NULL,
    leaves_qty TEXT NOT NULL, execution_id TEXT, qty TEXT, price TEXT);
CREATE INDEX IF NOT EXISTS executions ON events (account_id, id) WHERE execution_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS execution_ids ON events (execution_id) WHERE execution_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS order_executions ON events (order_id) WHERE execution_id IS NOT NULL;
CREATE TABLE IF NOT EXISTS posts (
    account_id TEXT NOT NULL, client_order_id TEXT NOT NULL, posts INTEGER NOT NULL, refused INTEGER NOT NULL,
    PRIMARY KEY (account_id, client_order_id)) WITHOUT ROWID;
"""
LEDGER = """
SELECT o.sequence, o.account_id, o.client_order_id, o.id AS order_id, o.symbol, o.side, o.kind,
       o.limit_price, o.stop_price, o.trail_price, o.trail_percent, o.extended_hours, o.qty, o.filled_qty, o.status,
       o.created_at, o.updated_at, o.replaces, o.replaced_by, coalesce(p.posts, 0) AS posts,
       coalesce(p.refused, 0) AS refused,
       (SELECT json_group_array(json_object('id', execution_id, 'qty', qty, 'price', price, 'at', at))
          FROM (SELECT * FROM events WHERE order_id = o.id AND execution_id IS NOT NULL ORDER BY id)) AS executions
  FROM orders o LEFT JOIN posts p USING (account_id, client_order_id)
 WHERE o.sequence > ? ORDER BY o.sequence LIMIT ?
"""
SUMMARY = """
SELECT (SELECT count(*) FROM orders) AS orders,
       (SELECT count(*) FROM (SELECT DISTINCT account_id, client_order_id FROM orders)) AS client_order_ids,
       (SELECT coalesce(sum(posts), 0) FROM posts) AS posts,
       (SELECT coalesce(sum(refused), 0) FROM posts) AS refused_posts,
       (SELECT count(*) FROM posts WHERE posts > 1) AS client_order_ids_posted_again,
       (SELECT count(*) FROM events WHERE execution_id IS NOT NULL) AS executions
"""
EXECUTIONS = """
SELECT id, execution_id, order_id, at, kind, symbol, side, order_status, cum_qty, leaves_qty, qty, price FROM events
 WHERE account_id = :account_id AND execution_id IS NOT NULL
   AND (:after IS NULL OR at > :after) AND (:until IS NULL OR at <= :until)
"""
PAGE_START = "(SELECT max(id) FROM events WHERE execution_id = :execution_id AND account_id = :account_id)"
OLDEST_FIRST = EXECUTIONS + f" AND id > coalesce({PAGE_START}, 0) ORDER BY id LIMIT :limit"
NEWEST_FIRST = EXECUTIONS + f" AND id < coalesce({PAGE_START}, 9223372036854775807) ORDER BY id DESC LIMIT :limit"
PUT_POSTS = """
INSERT INTO posts VALUES (?, ?, 1, ?)
ON CONFLICT DO UPDATE SET posts = posts + 1, refused = refused + excluded.refused
"""

Row = dict[str, Any]


class InUse(Exception):
    """Another process serves this data directory; two writers would each believe their own memory."""


def _lock(path: Path) -> IO[str]:
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.open("w", encoding="utf-8")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise InUse(str(path.parent)) from None
    return file


@dataclass(slots=True)
class Batch:
    """Commands that share one transaction. `posts` says for each submission whether it was turned away."""

    changes: list[Changes] = field(default_factory=list)
    posts: list[tuple[str, str, bool]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.changes or self.posts)


class Columns:
    """Rows of a frozen dataclass: one text column per field, except whole numbers and flags."""

    def __init__(self, noun: type, table: str, key: str, unique: str = "") -> None:
        hints = get_type_hints(noun)
        self.noun, self.table = noun, table
        self.names = [column.name for column in fields(noun)]
        self._readers = [_reader(hints[name]) for name in self.names]
        typed = {name: f"{name} {'INTEGER' if hints[name] in (int, bool) else 'TEXT'}" for name in self.names}
        columns = ", ".join(typed.values())
        self.additions = {name: f"ALTER TABLE {table} ADD COLUMN {column}" for name, column in typed.items()}
        """By column, what adds it to a table that was made before there was one."""
        self.schema = f"CREATE TABLE IF NOT EXISTS {table} ({columns}, PRIMARY KEY ({key}){unique});"
        updates = ", ".join(f"{name} = excluded.{name}" for name in self.names if name != key)
        marks = ", ".join("?" * len(self.names))
        self.put = f"INSERT INTO {table} VALUES ({marks}) ON CONFLICT ({key}) DO UPDATE SET {updates}"  # noqa: S608

    def write(self, item: object) -> list[object]:
        return [_written(getattr(item, name)) for name in self.names]

    def read(self, row: tuple[Any, ...]) -> Any:
        values = zip(self._readers, row, strict=True)
        return self.noun(*(None if value is None else reader(value) for reader, value in values))


def _written(value: object) -> object:
    if isinstance(value, Decimal):
        return str(value)
    return stamp(value) if isinstance(value, datetime) else value


def stamp(moment: datetime) -> str:
    """Text that sorts as the moments do."""
    return moment.isoformat(timespec="microseconds")


def _reader(hint: Any) -> Any:
    kinds = [kind for kind in get_args(hint) or (hint,) if kind is not NoneType]
    return datetime.fromisoformat if kinds[0] is datetime else kinds[0]


ORDERS = Columns(Order, "orders", "sequence", ", UNIQUE (id)")
QUOTES = Columns(Quote, "quotes", "symbol")


class Store:
    """The broker's own storage. Used by one thread at a time."""

    def __init__(self, data: str, *, in_memory: bool) -> None:
        self.in_memory = in_memory
        self._lock = None if in_memory else _lock(Path(data) / LOCK_NAME)
        path = ":memory:" if in_memory else str(Path(data) / FILE_NAME)
        self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        for pragma in ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL", "PRAGMA busy_timeout=5000"):
            self._db.execute(pragma)
        self._db.executescript(SCHEMA + ORDERS.schema + QUOTES.schema)
        self._add_columns()

    def _add_columns(self) -> None:
        """What orders have got since the data was made."""
        known = {row[1] for row in self._db.execute("PRAGMA table_info(orders)")}
        for name, addition in ORDERS.additions.items():
            if name not in known:
                self._db.execute(addition)

    def close(self) -> None:
        self._db.close()
        if self._lock:
            self._lock.close()

    def seed(self, wanted: str | None, drawn: str) -> str:
        """The seed this data was made with; `wanted` or else `drawn` becomes it the first time."""
        self._db.execute("INSERT OR IGNORE INTO meta VALUES ('seed', ?)", (wanted or drawn,))
        row = self._db.execute("SELECT value FROM meta WHERE name = 'seed'").fetchone()
        return str(row[0])

    def load(self, state: State) -> None:
        read = self._db.execute
        state.load(
            accounts=[(row[0], Decimal(row[1])) for row in read("SELECT id, cash FROM accounts")],
            positions=[
                (row[0], Position(row[1], Decimal(row[2]), Decimal(row[3])))
                for row in read("SELECT account_id, symbol, qty, cost FROM positions")
            ],
            orders=(ORDERS.read(row) for row in read("SELECT * FROM orders ORDER BY sequence")),
            quotes=[QUOTES.read(row) for row in read("SELECT * FROM quotes ORDER BY rowid")],
            events=read("SELECT coalesce(max(id), 0) FROM events").fetchone()[0],
        )

    def write(self, batch: Batch) -> None:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            self._put(batch)
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def _put(self, batch: Batch) -> None:
        many = self._db.executemany
        orders = {order.id: order for changes in batch.changes for order in changes.orders.values()}
        many(ORDERS.put, map(ORDERS.write, orders.values()))
        quotes = {quote.symbol: quote for changes in batch.changes for quote in changes.quotes.values()}
        many(QUOTES.put, map(QUOTES.write, quotes.values()))
        accounts = {key: cash for changes in batch.changes for key, cash in changes.accounts.items()}
        many("INSERT OR REPLACE INTO accounts VALUES (?, ?)", ((key, str(cash)) for key, cash in accounts.items()))
        positions = {key: item for changes in batch.changes for key, item in changes.positions.items()}
        many(
            "INSERT OR REPLACE INTO positions VALUES (?, ?, ?, ?)",
            ((key[0], key[1], str(item.qty), str(item.cost)) for key, item in positions.items()),
        )
        events = (event for changes in batch.changes for event in changes.events)
        many("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", map(_event_row, events))
        many(PUT_POSTS, batch.posts)

    def executions(self, query: Row, *, oldest_first: bool) -> list[Row]:
        return list(self._rows(OLDEST_FIRST if oldest_first else NEWEST_FIRST, query))

    def ledger(self, after: int) -> list[Row]:
        """The next page of every order ever accepted: how often its client order id was sent, what was executed."""
        rows = self._rows(LEDGER, (after, LEDGER_PAGE))
        return [{**row, "executions": json.loads(row["executions"])} for row in rows]

    def positions(self) -> list[Row]:
        return list(self._rows("SELECT account_id, symbol, qty FROM positions ORDER BY account_id, symbol", ()))

    def answers(self) -> bool:
        return bool(self._db.execute("SELECT 1").fetchone())

    def summary(self) -> Row:
        return next(self._rows(SUMMARY, ()))

    def _rows(self, sql: str, parameters: Any) -> Iterator[Row]:
        cursor = self._db.execute(sql, parameters)
        names = [column[0] for column in cursor.description]
        return (dict(zip(names, row, strict=True)) for row in cursor)


def _event_row(event: Event) -> tuple[object, ...]:
    order = event.order
    return (
        event.id,
        order.account_id,
        order.id,
        event.kind,
        stamp(event.at),
        order.symbol,
        order.side,
        order.status,
        str(order.filled_qty),
        str(order.remaining),
        event.execution_id,
        _written(event.qty),
        _written(event.price),
    )
