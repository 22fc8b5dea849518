"""A halt or a deletion that cancels what is open: its event makes one bulk operation for each account, once."""

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import event

from intents import usecases
from intents.usecases.feed_consumer import CANCELS_AT_ONCE, CancelsAhead
from tip_testing.commands import limit

from .broker_side import accepted
from .conftest import Desk
from .test_feed_consumer import drain, publish

ACTOR = {"type": "user", "id": "risk-manager"}


def halt(desk: Desk, **scope: str) -> None:
    switch = {"control": "account_switch" if scope else "organization_switch", "version": 1, "deleted": False}
    publish(desk, "controls", "control.updated", **scope, **switch, cancel_open=True, actor=ACTOR)


def cancels(desk: Desk) -> list[tuple[str, str, str]]:
    found = [row for row in desk.rows("action") if row["type"] == "CANCEL"]
    return [(row["actor_type"], row["actor_id"], row["reason"]) for row in found]


def open_order(desk: Desk) -> None:
    intent_id = desk.created(limit())["intent_id"]
    accepted(desk, intent_id, f"b-{intent_id}")


def test_a_halt_that_cancels_makes_one_operation_under_the_id_of_its_event(desk: Desk) -> None:
    open_order(desk)
    halt(desk, account_id=str(desk.account_id))

    drain(desk)
    desk.execute("UPDATE intents.feed_position SET position = position - 1 WHERE source = 'controls'")
    drain(desk)

    [operation] = desk.rows("bulk_operation")
    assert operation["id"] in {row["id"] for row in desk.rows("account_event")}
    usecases.run_bulk_operations(desk.deps)
    assert cancels(desk) == [("user", "risk-manager", "TRADING_HALTED")]


def test_a_halt_of_an_organization_cancels_on_each_of_its_accounts_and_no_other(new_desk: Callable[..., Desk]) -> None:
    desk = new_desk()
    same, foreign = new_desk(organization=desk.organization), new_desk()
    for each in (desk, same, foreign):
        open_order(each)
    halt(desk)

    drain(desk)
    while usecases.run_bulk_operations(desk.deps):
        pass

    assert [len(cancels(each)) for each in (desk, same, foreign)] == [1, 1, 0]
    assert {row["id"] for each in (desk, same) for row in each.rows("bulk_operation")} == {
        row["id"] for row in desk.rows("account_event") if row["type"] == "CONTROL"
    }


def test_a_halt_is_begun_before_what_others_changed_earlier_is_consumed(new_desk: Callable[..., Desk]) -> None:
    busy, desk = new_desk(), new_desk()
    drain(desk)
    for _ in range(CANCELS_AT_ONCE + 2):
        halt(busy)
    halt(desk, account_id=str(desk.account_id))
    ahead = CancelsAhead(desk.deps)

    assert ahead.begin() == CANCELS_AT_ONCE

    [operation] = desk.rows("bulk_operation")
    assert (operation["reason"], desk.rows("account_event")) == ("TRADING_HALTED", [])
    assert [ahead.begin(), ahead.begin()] == [3, 0]
    drain(desk)
    assert [row["id"] for row in desk.rows("bulk_operation")] == [row["id"] for row in desk.rows("account_event")]
    assert len(busy.rows("bulk_operation")) == CANCELS_AT_ONCE + 2


def test_a_halt_of_many_accounts_takes_as_many_statements_as_one_of_few(new_desk: Callable[..., Desk]) -> None:
    """The feed is consumed in order: whoever halts next waits for it, other organizations, too."""
    few, many = new_desk(), new_desk()
    for _ in range(8):
        new_desk(organization=many.organization)
    drain(few)

    assert statements(few, lambda: halt(few)) == statements(few, lambda: halt(many))


def statements(desk: Desk, publish_one: Callable[[], None]) -> int:
    """How many consuming one event takes."""
    publish_one()
    sent, engine = list[object](), desk.deps.engine

    def note(_connection: object, _cursor: object, statement: object, *_: object) -> None:
        sent.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    drain(desk)
    event.remove(engine, "before_cursor_execute", note)
    return len(sent)


@pytest.mark.parametrize("more", [{}, {"cancel_open": False}], ids=["before the field existed", "not wanted"])
def test_a_halt_that_does_not_cancel_leaves_orders_open(desk: Desk, more: Any) -> None:
    switch = {"control": "account_switch", "version": 1, "deleted": False, **more}
    publish(desk, "controls", "control.updated", account_id=str(desk.account_id), **switch)

    drain(desk)

    assert desk.rows("bulk_operation") == []


def test_an_operation_of_a_deleted_account_ends(new_desk: Callable[..., Desk]) -> None:
    desk = new_desk()
    open_order(desk)
    halt(desk, account_id=str(desk.account_id))
    drain(desk)
    desk.execute("UPDATE accounts.account SET deleted_at = now() WHERE id = :account_id")

    while usecases.run_bulk_operations(desk.deps):
        pass

    assert [row["status"] for row in desk.rows("bulk_operation")] == ["COMPLETED"]
