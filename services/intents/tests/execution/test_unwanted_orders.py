"""Orders that surface, double or stay open after their intent has ended are shown, counted and canceled."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from uuid import uuid4

import pytest

from intents.execution.model.inputs import DispatchResult
from intents.execution.model.settlement import Settlement
from intents.execution.model.verdicts import Decided, Rejected
from intents.model import Status, Update
from tip_brokers import OrderStatus

from .settlements import FIRST, NOW, SECOND, begun, execution, leased, notes, order, replacing, reported, settle, traded

SYSTEM_CANCELS = "An order is open at the broker that the intent does not ask for; the system cancels it."


def given_up(status: Status = Status.PENDING_CANCEL) -> Settlement:
    """Perhaps sent, not found at the broker, ended."""
    token, settlement = uuid4(), begun(Status.SUBMITTED)
    settlement.intent, settlement.progress.lease_token = (
        replace(settlement.intent, status=status, outcome="unknown"),
        token,
    )
    gone = Decided(Update.CANCELED, "NOT_FOUND_AT_BROKER", "gone")
    settle(settlement, [DispatchResult(leased(token, started_before=NOW - timedelta(minutes=1)), gone)])
    assert settlement.intent.status is Status.CANCELED and settlement.orders[FIRST].status == "MISSING"
    return settlement


@pytest.mark.parametrize("status", [OrderStatus.PENDING, OrderStatus.WORKING])
def test_an_order_that_surfaces_after_the_end_is_shown_once_and_to_be_canceled(status):
    settlement = given_up()

    for _ in range(2):
        settle(settlement, [reported(order(status, 4), execution(1, 4))])

    assert settlement.orders[FIRST].unwanted and settlement.intent.status is Status.CANCELED
    assert [event["payload"].get("reason") for event in settlement.events].count(SYSTEM_CANCELS) == 1
    assert settlement.intent.filled_quantity == 4 == traded(settlement)
    assert settlement.intent.reason_code == "ORDER_AFTER_END", "the broker has it after all"

    settle(settlement, [reported(order(OrderStatus.CANCELED, 4))])
    assert notes(settlement)[-1] == ("ORDER_AFTER_END", "b1"), "that it is gone is an event as well"
    assert settlement.events[-1]["payload"]["reason"] == "The order has ended as CANCELED."


def test_an_order_that_surfaces_ended_is_not_to_be_canceled():
    settlement = given_up()

    settle(settlement, [reported(order(OrderStatus.FILLED, 10), execution(1, 10))])

    assert not settlement.orders[FIRST].unwanted and settlement.intent.status is Status.FILLED
    assert settlement.intent.reason_code is None, "it was filled, whatever was believed before"


def test_an_order_that_surfaces_canceled_takes_back_that_it_was_not_found():
    settlement = given_up()

    settle(settlement, [reported(order(OrderStatus.CANCELED))])

    assert not settlement.orders[FIRST].unwanted and settlement.intent.status is Status.CANCELED
    assert settlement.intent.reason_code == "ORDER_AFTER_END" and notes(settlement)[-1] == ("ORDER_AFTER_END", "b1")


@pytest.mark.parametrize("sent_before", [True, False])
def test_a_refusal_is_of_its_own_request_and_not_of_one_sent_before(sent_before):
    """The first request may still be on its way when the second one is refused."""
    token, settlement = uuid4(), begun(Status.SUBMITTED)
    settlement.progress.lease_token = token
    started = NOW - timedelta(minutes=1) if sent_before else None
    settle(
        settlement, [DispatchResult(leased(token, started_before=started), Rejected("INSUFFICIENT_BUYING_POWER", "no"))]
    )
    assert settlement.intent.status is Status.REJECTED

    settle(settlement, [reported(order(OrderStatus.WORKING))])

    assert settlement.orders[FIRST].unwanted == sent_before
    assert ("ORDER_AFTER_END" in [code for code, _ in notes(settlement)]) == sent_before


def test_a_late_word_of_an_ended_order_does_not_make_it_unwanted():
    settlement = begun(Status.ACCEPTED)

    settle(settlement, [reported(order(OrderStatus.CANCELED)), reported(order(OrderStatus.WORKING))])

    assert not settlement.orders[FIRST].unwanted and notes(settlement) == [(None, "b1")]


def test_a_second_order_under_one_client_order_id_is_shown_canceled_and_its_fills_count():
    settlement = begun(Status.ACCEPTED)
    settle(settlement, [reported(order(OrderStatus.WORKING, 6), execution(1, 6))])

    settle(settlement, [reported(order(OrderStatus.WORKING, 3, number="b9"), execution(2, 3))])

    second = settlement.orders[f"{FIRST}#b9"]
    assert second.unwanted and second.filled_quantity == 3 and not settlement.orders[FIRST].unwanted
    assert ("DUPLICATE_ORDER", "b9") in notes(settlement)
    assert settlement.intent.filled_quantity == 9 == traded(settlement) and settlement.intent.broker_order_id == "b1"


def test_an_order_that_stays_open_after_its_intent_is_filled_is_to_be_canceled():
    """Fills of a replaced order came late: the new one asks for more than is left."""
    settlement = replacing()
    settle(settlement, [reported(replace(order(OrderStatus.WORKING, name=SECOND, number="b2"), quantity=Decimal(12)))])
    settle(settlement, [reported(order(OrderStatus.REPLACED, 5), execution(1, 5))])
    assert settlement.is_overordered, "12 are open and 10 are left of 15"

    settle(
        settlement, [reported(replace(order(OrderStatus.WORKING, 10, name=SECOND, number="b2"), quantity=Decimal(12)))]
    )

    assert settlement.intent.status is Status.FILLED and settlement.orders[SECOND].unwanted
    assert ("ORDER_AFTER_END", "b2") in notes(settlement)


@pytest.mark.parametrize("number", ["b1", "b9"], ids=["replaced", "duplicate"])
def test_an_order_for_which_the_fills_of_another_leave_nothing_is_to_be_canceled(number):
    """The old order, or a second one under its id, has filled everything; that is seen when the new one is open."""
    settlement = replacing()
    settle(settlement, [reported(replace(order(OrderStatus.WORKING, name=SECOND, number="b2"), quantity=Decimal(15)))])
    assert settlement.intent.quantity == 15 and not settlement.is_overordered

    settle(settlement, [reported(order(OrderStatus.REPLACED, 15, number=number), execution(1, 15))])

    assert settlement.intent.status is Status.FILLED and settlement.intent.filled_quantity == 15
    assert settlement.orders[SECOND].unwanted and notes(settlement)[-1] == ("ORDER_AFTER_END", "b2")


def test_a_replacement_in_flight_when_its_intent_ends_may_still_surface():
    settlement = replacing()
    settle(settlement, [reported(order(OrderStatus.FILLED, 10), execution(1, 10))])
    assert settlement.intent.status is Status.FILLED and settlement.orders[SECOND].status == "MISSING"

    settle(settlement, [reported(order(OrderStatus.WORKING, name=SECOND, number="b2"))])

    assert settlement.orders[SECOND].unwanted and ("ORDER_AFTER_END", "b2") in notes(settlement)
