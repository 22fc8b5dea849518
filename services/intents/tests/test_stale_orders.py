"""An order that has been open for too long is canceled by the platform, whatever happens to others."""

from threading import Event

import pytest
from sqlalchemy import Connection, text

from intents.execution import stale
from tip_brokers import Order
from tip_testing.commands import create

from .broker_side import accept
from .conftest import Desk
from .filling import filled_before_every_write, held_row, intent_of, open_order


@pytest.fixture(autouse=True)
def nothing_else_is_stale(admin: Connection) -> None:
    """One run finds the stale orders of all accounts, also those that the tests before left open."""
    admin.execute(text("DELETE FROM controls.symbol_time"))


@pytest.fixture
def order(desk: Desk) -> Order:
    """An order at the broker, too large to be filled by any test."""
    return open_order(desk)


def set_stale(desk: Desk) -> None:
    desk.execute("UPDATE intents.intent SET accepted_at = now() - interval '1 hour' WHERE account_id = :account_id")
    desk.execute(
        "INSERT INTO controls.symbol_time (account_id, symbol, organization_id, stale_order_millis) "
        "VALUES (:account_id, 'AAPL', :organization_id, 1000)",
        organization_id=desk.organization.id,
    )


def test_orders_of_a_deleted_account_do_not_keep_others_from_being_canceled(new_desk, monkeypatch):
    monkeypatch.setattr(stale, "BATCH", 1)
    deleted, living = new_desk(), new_desk()
    for desk in (deleted, living):
        accept(desk, desk.created(create("SIM.OPEN"))["intent_id"], f"b-{desk.account_id}")
        desk.execute("UPDATE intents.intent SET accepted_at = now() - interval '1 hour' WHERE account_id = :account_id")
        desk.execute(
            "INSERT INTO controls.symbol_time (account_id, symbol, organization_id, stale_order_millis) "
            "VALUES (:account_id, 'SIM.OPEN', :organization_id, 1000)",
            organization_id=desk.organization.id,
        )
    deleted.execute("UPDATE accounts.account SET deleted_at = now() WHERE id = :account_id")

    assert stale.cancel_stale(living.deps) == 1

    assert [row["status"] for row in living.rows("intent")] == ["PENDING_CANCEL"]


def test_a_stale_order_is_canceled_though_it_is_filling(desk: Desk, order: Order) -> None:
    set_stale(desk)

    with filled_before_every_write(desk, order, by=desk.deps):
        assert stale.cancel_stale(desk.deps) == 1

    assert [row["status"] for row in desk.rows("intent")] == ["PENDING_CANCEL"]


def test_a_stale_order_whose_row_is_held_keeps_no_other_from_being_canceled(desk: Desk, order: Order) -> None:
    other = open_order(desk)
    set_stale(desk)

    with held_row(desk, intent_of(desk, order)):
        assert stale.cancel_stale(desk.deps) == 1

    assert {row["id"]: row["status"] for row in desk.rows("intent")} == {
        intent_of(desk, order): "ACCEPTED",
        intent_of(desk, other): "PENDING_CANCEL",
    }


def test_a_scheduler_that_is_to_stop_cancels_no_more(desk: Desk, order: Order) -> None:
    set_stale(desk)
    stop = Event()
    stop.set()

    assert stale.cancel_stale(desk.deps, stop) == 0

    assert [row["status"] for row in desk.rows("intent")] == ["ACCEPTED"]
