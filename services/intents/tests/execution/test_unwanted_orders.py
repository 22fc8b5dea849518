"""Orders that surface, double or stay open after their intent has ended are shown, counted and canceled."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from uuid import uuid4

import pytest

from intents.brokers import OrderStatus
from intents.execution.model.inputs import DispatchResult
from intents.execution.model.settlement import Settlement
from intents.execution.model.verdicts import Decided, Rejected
from intents.model import Status, Update

from .settlements import FIRST, NOW, SECOND, begun, execution, leased, notes, order, replacing, reported, settle, traded

SYSTEM_CANCELS = "An order is open at the broker that the intent does not ask for; the system cancels it."


def given_up(status: Status = Status.PENDING_CANCEL) -> Settlement:
    """Perhaps sent, not found at the broker, ended."""
    token, one = uuid4(), begun(Status.SUBMITTED)
    one.intent, one.progress.lease_token = replace(one.intent, status=status, outcome="unknown"), token
    gone = Decided(Update.CANCELED, "NOT_FOUND_AT_BROKER", "gone")
    settle(one, [DispatchResult(leased(token, started_before=NOW - timedelta(minutes=1)), gone)])
    assert one.intent.status is Status.CANCELED and one.orders[FIRST].status == "MISSING"
    return one


@pytest.mark.parametrize("status", [OrderStatus.PENDING, OrderStatus.WORKING])
def test_an_order_that_surfaces_after_the_end_is_shown_once_and_to_be_canceled(status):
    one = given_up()

    for _ in range(2):
        settle(one, [reported(order(status, 4), execution(1, 4))])

    assert one.orders[FIRST].unwanted and one.intent.status is Status.CANCELED
    assert [event["payload"].get("reason") for event in one.events].count(SYSTEM_CANCELS) == 1
    assert one.intent.filled_quantity == 4 == traded(one)
    assert one.intent.reason_code == "ORDER_AFTER_END", "the broker has it after all"

    settle(one, [reported(order(OrderStatus.CANCELED, 4))])
    assert notes(one)[-1] == ("ORDER_AFTER_END", "b1"), "that it is gone is an event as well"
    assert one.events[-1]["payload"]["reason"] == "The order has ended as CANCELED."


def test_an_order_that_surfaces_ended_is_not_to_be_canceled():
    one = given_up()

    settle(one, [reported(order(OrderStatus.FILLED, 10), execution(1, 10))])

    assert not one.orders[FIRST].unwanted and one.intent.status is Status.FILLED
    assert one.intent.reason_code is None, "it was filled, whatever was believed before"


def test_an_order_that_surfaces_canceled_takes_back_that_it_was_not_found():
    one = given_up()

    settle(one, [reported(order(OrderStatus.CANCELED))])

    assert not one.orders[FIRST].unwanted and one.intent.status is Status.CANCELED
    assert one.intent.reason_code == "ORDER_AFTER_END" and notes(one)[-1] == ("ORDER_AFTER_END", "b1")


@pytest.mark.parametrize("sent_before", [True, False])
def test_a_refusal_is_of_its_own_request_and_not_of_one_sent_before(sent_before):
    """The first request may still be on its way when the second one is refused."""
    token, one = uuid4(), begun(Status.SUBMITTED)
    one.progress.lease_token = token
    started = NOW - timedelta(minutes=1) if sent_before else None
    settle(one, [DispatchResult(leased(token, started_before=started), Rejected("INSUFFICIENT_BUYING_POWER", "no"))])
    assert one.intent.status is Status.REJECTED

    settle(one, [reported(order(OrderStatus.WORKING))])

    assert one.orders[FIRST].unwanted == sent_before
    assert ("ORDER_AFTER_END" in [code for code, _ in notes(one)]) == sent_before


def test_a_late_word_of_an_ended_order_does_not_make_it_unwanted():
    one = begun(Status.ACCEPTED)

    settle(one, [reported(order(OrderStatus.CANCELED)), reported(order(OrderStatus.WORKING))])

    assert not one.orders[FIRST].unwanted and notes(one) == [(None, "b1")]


def test_a_second_order_under_one_client_order_id_is_shown_canceled_and_its_fills_count():
    one = begun(Status.ACCEPTED)
    settle(one, [reported(order(OrderStatus.WORKING, 6), execution(1, 6))])

    settle(one, [reported(order(OrderStatus.WORKING, 3, number="b9"), execution(2, 3))])

    second = one.orders[f"{FIRST}#b9"]
    assert second.unwanted and second.filled_quantity == 3 and not one.orders[FIRST].unwanted
    assert ("DUPLICATE_ORDER", "b9") in notes(one)
    assert one.intent.filled_quantity == 9 == traded(one) and one.intent.broker_order_id == "b1"


def test_an_order_that_stays_open_after_its_intent_is_filled_is_to_be_canceled():
    """Fills of a replaced order came late: the new one asks for more than is left."""
    one = replacing()
    settle(one, [reported(replace(order(OrderStatus.WORKING, name=SECOND, number="b2"), quantity=Decimal(12)))])
    settle(one, [reported(order(OrderStatus.REPLACED, 5), execution(1, 5))])
    assert one.is_overordered, "12 are open and 10 are left of 15"

    settle(one, [reported(replace(order(OrderStatus.WORKING, 10, name=SECOND, number="b2"), quantity=Decimal(12)))])

    assert one.intent.status is Status.FILLED and one.orders[SECOND].unwanted
    assert ("ORDER_AFTER_END", "b2") in notes(one)


@pytest.mark.parametrize("number", ["b1", "b9"], ids=["replaced", "duplicate"])
def test_an_order_for_which_the_fills_of_another_leave_nothing_is_to_be_canceled(number):
    """The old order, or a second one under its id, has filled everything; that is seen when the new one is open."""
    one = replacing()
    settle(one, [reported(replace(order(OrderStatus.WORKING, name=SECOND, number="b2"), quantity=Decimal(15)))])
    assert one.intent.quantity == 15 and not one.is_overordered

    settle(one, [reported(order(OrderStatus.REPLACED, 15, number=number), execution(1, 15))])

    assert one.intent.status is Status.FILLED and one.intent.filled_quantity == 15
    assert one.orders[SECOND].unwanted and notes(one)[-1] == ("ORDER_AFTER_END", "b2")


def test_a_replacement_in_flight_when_its_intent_ends_may_still_surface():
    one = replacing()
    settle(one, [reported(order(OrderStatus.FILLED, 10), execution(1, 10))])
    assert one.intent.status is Status.FILLED and one.orders[SECOND].status == "MISSING"

    settle(one, [reported(order(OrderStatus.WORKING, name=SECOND, number="b2"))])

    assert one.orders[SECOND].unwanted and ("ORDER_AFTER_END", "b2") in notes(one)
