"""Who owns a session, and what is kept of it."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import uuid4

import psycopg2
import pytest

from tip_broker_fix.gateway import store
from tip_broker_fix.gateway.orders import Change, Fill, Order
from tip_broker_fix.gateway.session import Outgoing

NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
ONE, OTHER = uuid4(), uuid4()
ORDER = Order("tip-1", "ACC1", "OPEN", "buy", "limit", "day", Decimal(10), NOW, NOW, order_id="B1", status="new")


@pytest.fixture
def tx(fix_database: str) -> Iterator[Any]:
    with closing(store.connect(fix_database)) as connection:
        yield connection


@pytest.fixture
def name(tx: Any) -> str:
    """A session that the first one owns, for no time at all."""
    made = uuid4().hex
    with tx:
        assert store.take_lease(tx, made, ONE, 0.0) == (1, 1)
    return made


def test_a_session_has_one_owner_and_the_next_one_goes_on_where_it_stopped(tx: Any, name: str) -> None:
    with tx:
        store.keep_numbers(tx, name, ONE, 0.0, store.Numbers(7, 9))
    with tx:
        assert store.take_lease(tx, name, OTHER, 60.0) == (7, 9)
    with tx:
        assert store.take_lease(tx, name, ONE, 60.0) is None


def test_whoever_has_lost_the_session_writes_nothing(tx: Any, name: str) -> None:
    with tx:
        store.take_lease(tx, name, OTHER, 60.0)

    with pytest.raises(store.LeaseLost):
        _keep_one(tx, name)

    assert store.message(tx, name, 1) is None


def _keep_one(tx: Any, name: str) -> None:
    with tx:
        store.keep_messages(tx, name, [Outgoing(1, "D", ((58, "late"),), NOW)])
        store.keep_numbers(tx, name, ONE, 60.0, store.Numbers(2, 1))


def test_a_session_that_is_given_back_is_free_at_once(tx: Any, name: str) -> None:
    with tx:
        store.keep_numbers(tx, name, ONE, 60.0, store.Numbers(2, 2))
    with tx:
        store.give_back_lease(tx, name, ONE)
    with tx:
        assert store.take_lease(tx, name, OTHER, 60.0) == (2, 2)


def test_an_execution_is_kept_once(tx: Any, name: str) -> None:
    fill = Change(ORDER, "fill", NOW, "E1", Fill("E1", Decimal(10), Decimal(20)))
    for _ in range(2):
        with tx:
            store.keep_executions(tx, name, [fill, fill])

    found = store.executions(tx, name, "ACC1", after=None, position=0, limit=10)
    assert [execution.exec_id for execution in found] == ["E1"]


def test_positions_and_their_value_are_what_was_filled(tx: Any, name: str) -> None:
    bought = replace(ORDER, filled=Decimal(10), average=Decimal(20))
    sold = replace(bought, client_order_id="tip-2", side="sell", filled=Decimal(4), average=Decimal(25))
    with tx:
        store.keep_orders(tx, name, [bought, replace(sold, updated_at=NOW + timedelta(seconds=1))])

    assert store.holdings(tx, name, "ACC1") == [("OPEN", 6, 100, 25)]


def test_old_messages_are_forgotten(tx: Any, name: str) -> None:
    with tx:
        store.keep_messages(tx, name, [Outgoing(number, "D", ((58, "x"),), NOW) for number in (1, 2)])
    with tx:
        assert store.forget_messages(tx, NOW + store.KEPT + timedelta(seconds=1)) == 2
    assert store.message(tx, name, 1) is None


@pytest.mark.parametrize("statement", ["DELETE FROM fix.order", "DROP TABLE fix.message", "DELETE FROM fix.execution"])
def test_the_gateway_may_do_no_more_than_it_needs(tx: Any, statement: str) -> None:
    with pytest.raises(psycopg2.errors.InsufficientPrivilege), tx, tx.cursor() as cursor:
        cursor.execute(statement)
