"""Orders that fill while a request is under way, and rows of intents that somebody holds."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace as changed
from decimal import Decimal
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text

from intents.store.statement import Statement
from intents.usecases import Deps
from tip_brokers import Order
from tip_testing.commands import limit
from tip_testing.waiting import eventually

from .broker_side import accept, fill
from .conftest import Desk


def open_order(desk: Desk) -> Order:
    return accept(desk, desk.created(limit(quantity="100000"))["intent_id"], f"b-{time.monotonic_ns()}")


def intent_of(desk: Desk, order: Order) -> UUID:
    found = desk.execute(
        "SELECT intent_id FROM intents.broker_order WHERE account_id = :account_id AND client_order_id = :order",
        order=order.client_order_id,
    )
    intent_id: UUID = found.scalar_one()
    return intent_id


class Filling:
    """Fills of one order, one more each time; each a transaction of the recorder."""

    def __init__(self, desk: Desk, order: Order) -> None:
        self._desk, self._order, self.count = desk, order, 0
        self._lock = threading.Lock()

    def once(self) -> None:
        with self._lock:
            fill(self._desk, self._order, "1", "99", f"x-{self._order.client_order_id}-{self.count}")
            self._order = changed(self._order, filled_quantity=self._order.filled_quantity + Decimal(1))
            self.count += 1


def waiters(connection: Connection) -> int:
    """Sessions that wait for a lock. Queried in a transaction of its own."""
    statement = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    found: int = connection.execute(text(statement)).scalar_one()
    return found


@contextmanager
def filled_before_every_write(desk: Desk, order: Order, by: Deps | None = None) -> Iterator[Filling]:
    """Between whatever a request reads and what it then writes, the order fills some more, unless its row is locked."""
    filling, connections = Filling(desk, order), (by or desk.app.extensions["deps"]).connections
    execute = connections._execute

    def after_a_fill(statement: Statement, *arguments: Any, **named: Any) -> Any:
        if statement.name == "intents_amend":
            with desk.platform.admin() as connection:
                done = fills.submit(filling.once)
                eventually(lambda: done.done() or waiters(connection) > 0)
        return execute(statement, *arguments, **named)

    with ThreadPoolExecutor(1) as fills:
        connections._execute = after_a_fill  # type: ignore[method-assign]
        try:
            yield filling
        finally:
            connections._execute = execute  # type: ignore[method-assign]
    assert filling.count > 0


@contextmanager
def held_row(desk: Desk, intent_id: UUID) -> Iterator[Connection]:
    """The intent's row under lock, as by a recorder that does not come to its commit."""
    with desk.deps.engine.begin() as tx:
        statement = "SELECT 1 FROM intents.intent WHERE account_id = :account_id AND id = :id FOR UPDATE"
        tx.execute(text(statement), {"account_id": desk.account_id, "id": intent_id})
        yield tx
