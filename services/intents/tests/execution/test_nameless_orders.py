"""Orders that a broker shows without a client order id."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from intents.execution import recorder
from intents.execution.model.inputs import BrokerReport
from intents.execution.reconciliation import AccountReconciliation
from tip_brokers import Order, OrderStatus
from tip_testing.commands import create

from ..broker_side import accept, fill
from .showing import Shows, unanswered
from .test_reconciliation import known_open_orders


def nameless(order: Order, **more: Any) -> Order:
    shown = replace(order, **more)
    return replace(shown, client_order_id=shown.broker_order_id, is_nameless=True)


def record(desk: Any, order: Order) -> None:
    recorder.record(desk.deps.connections, [BrokerReport(desk.account_id, order, datetime.now(UTC), None)])


def of_another(desk: Any, broker_order_id: str) -> None:
    """It is recorded as somebody else's."""
    desk.execute(
        "INSERT INTO intents.broker_order (account_id, client_order_id, broker_order_id, status, filled_quantity)"
        f" VALUES (:account_id, '{broker_order_id}', '{broker_order_id}', 'WORKING', 0)"
    )


def of_others(desk: Any) -> list[str]:
    return [row["payload"]["broker_order_id"] for row in desk.rows("account_event") if row["type"] == "BROKER_ORDER"
            and row["payload"]["reason_code"] == "PLACED_ELSEWHERE"]  # fmt: skip


def test_an_order_of_ours_that_was_answered_after_its_account_was_read_is_nobody_elses(desk):
    made = accept(desk, desk.created(create("ABC"))["intent_id"], "b1")

    record(desk, nameless(made))
    record(desk, nameless(made, broker_order_id="b2"))

    assert of_others(desk) == ["b2"]


def test_an_order_of_ours_that_ended_after_its_account_was_read_is_nobody_elses(desk):
    made = accept(desk, desk.created(create("ABC", "10"))["intent_id"], "b1")
    fill(desk, made, "10", "1", "e1")

    record(desk, nameless(made))
    record(desk, nameless(made, broker_order_id="b2"))

    assert [row["status"] for row in desk.rows("intent")] == ["FILLED"]
    assert of_others(desk) == ["b2"]


def test_an_order_of_ours_that_was_taken_for_somebody_elses_is_reported_as_such_no_more(desk):
    made = accept(desk, desk.created(create("ABC", "10"))["intent_id"], "b1")
    of_another(desk, "b1")

    record(desk, nameless(made, filled_quantity=Decimal(4), average_price=Decimal(1)))

    assert of_others(desk) == []


def test_once_an_operator_has_said_that_an_order_never_arrived_orders_of_its_symbol_are_somebody_elses(desk):
    made = accept(desk, desk.created(create("ABC"))["intent_id"], "b1")
    unanswered(desk, "MISSING")
    account = AccountReconciliation(desk.account_id, Shows(nameless(made)), known_open_orders(desk))

    recorder.record(desk.deps.connections, account.differences())

    assert of_others(desk) == ["b1"]


def test_while_an_answer_is_to_come_an_order_of_its_symbol_may_be_ours(desk):
    made = accept(desk, desk.created(create("ABC"))["intent_id"], "b1")
    unanswered(desk)

    record(desk, nameless(made))
    record(desk, nameless(made, broker_order_id="b2", symbol="XYZ"))

    assert of_others(desk) == ["b2"]


def test_an_order_of_others_that_is_known_moves_on_while_an_answer_is_to_come(desk):
    made = accept(desk, desk.created(create("ABC"))["intent_id"], "b1")
    record(desk, nameless(made, broker_order_id="b2"))
    unanswered(desk)

    record(desk, nameless(made, broker_order_id="b2", status=OrderStatus.CANCELED))

    assert of_others(desk) == ["b2", "b2"]


def test_an_order_that_is_named_by_the_id_that_the_broker_has_too_is_not_nameless(desk):
    """As in a session of FIX."""
    made = accept(desk, desk.created(create("ABC"))["intent_id"], "b1")
    unanswered(desk)

    record(desk, replace(made, client_order_id="b2", broker_order_id="b2"))

    assert of_others(desk) == ["b2"]


def test_what_is_filled_counts_for_the_intent_also_where_its_order_was_taken_for_somebody_elses(desk):
    made = accept(desk, desk.created(create("ABC", "10"))["intent_id"], "b1")
    of_another(desk, "b1")
    shown = Shows(nameless(made, filled_quantity=Decimal(4), average_price=Decimal(1)))

    found = AccountReconciliation(desk.account_id, shown, known_open_orders(desk)).differences()
    recorder.record(desk.deps.connections, found)

    assert [row["filled_quantity"] for row in desk.rows("intent")] == [4]
