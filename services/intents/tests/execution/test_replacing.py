"""A REPLACE is done when its own order is shown; whose an order is that replaced another."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from uuid import uuid4

import pytest

from intents.execution.client_order_id import client_order_id
from intents.execution.model.inputs import DispatchResult
from intents.execution.model.locked_intent import BrokerOrder, Command
from intents.execution.model.settlement import Settlement
from intents.execution.model.verdicts import OrderFound, Rejected
from intents.model import Status
from tip_brokers import Order, OrderStatus

from .settlements import CHANGE, NOW, SECOND, begun, execution, leased, order, replacing, reported, settle, spec, traded


@pytest.mark.parametrize(("filled", "code"), [(8, None), (9, "OVERFILLED")])
def test_a_replacement_to_less_than_is_filled_fills_the_intent(filled, code):
    settlement = replacing("8")
    settle(settlement, [reported(order(OrderStatus.WORKING, filled), execution(1, filled))])

    settle(settlement, [reported(replace(order(OrderStatus.WORKING, name=SECOND, number="b2"), quantity=Decimal(1)))])

    assert settlement.intent.status is Status.FILLED and settlement.intent.reason_code == code
    assert settlement.progress.open_actions == 0 and settlement.orders[SECOND].unwanted, (
        "what the broker holds open is canceled"
    )


def test_a_replacement_is_done_when_its_order_is_shown():
    settlement = replacing()

    settle(settlement, [reported(order(OrderStatus.WORKING, name=SECOND, number="b2", replaces="b1"))])

    assert (
        settlement.intent.status is Status.ACCEPTED
        and settlement.intent.quantity == 15
        and settlement.intent.broker_order_id == "b2"
    )
    assert settlement.progress.open_actions == 0 and settlement.progress.done_sequence == 2


def test_what_has_replaced_an_order_is_queried_at_once_before_it_is_taken_for_the_replacement():
    """The broker's id alone does not show whose it is."""
    settlement, later = replacing(), NOW + timedelta(minutes=1)
    settlement.progress.next_attempt_at = later

    settle(settlement, [reported(order(OrderStatus.REPLACED, replaced_by="b2"))])
    assert settlement.intent.status is Status.PENDING_REPLACE and settlement.progress.next_attempt_at == NOW

    settle(settlement, [reported(order(OrderStatus.PENDING, name=SECOND, number="b2", replaces="b1"))])
    assert (
        settlement.intent.status is Status.ACCEPTED
        and settlement.intent.quantity == 15
        and settlement.intent.broker_order_id == "b2"
    )


def test_a_replacement_only_taken_in_is_not_done():
    settlement = replacing()

    settle(settlement, [reported(order(OrderStatus.PENDING, name=SECOND, number="b2", replaces="b1"))])

    assert settlement.intent.status is Status.PENDING_REPLACE and settlement.intent.broker_order_id == "b1"


def test_a_late_fill_of_a_replaced_order_counts_towards_the_intent():
    settlement = replacing()
    settle(settlement, [reported(order(OrderStatus.WORKING, name=SECOND, number="b2", replaces="b1"))])

    settle(settlement, [reported(order(OrderStatus.REPLACED, 3), execution(1, 3))])

    assert settlement.intent.filled_quantity == 3 and settlement.intent.status is Status.PARTIALLY_FILLED
    assert settlement.intent.broker_order_id == "b2"


def test_an_order_replaced_by_somebody_else_is_no_longer_ours():
    settlement = begun(Status.ACCEPTED)

    settle(settlement, [reported(order(OrderStatus.REPLACED, replaced_by="b9"))])

    assert settlement.intent.status is Status.CANCELED and settlement.intent.reason_code == "REPLACED_ELSEWHERE"


def test_a_replacement_rejected_after_it_was_accepted_ends_the_intent_with_its_fills():
    """The exchange refuses what the broker had taken: nothing is open any more."""
    settlement = replacing()
    settle(settlement, [reported(order(OrderStatus.REPLACED, 4), execution(1, 4))])
    settle(settlement, [reported(order(OrderStatus.WORKING, name=SECOND, number="b2"))])
    assert settlement.intent.status is Status.PARTIALLY_FILLED

    settle(settlement, [reported(order(OrderStatus.REJECTED, name=SECOND, number="b2"))])

    assert settlement.intent.status is Status.REJECTED and settlement.intent.filled_quantity == 4
    assert settlement.intent.reason_code == "BROKER_REJECTED"


THIRD_ACTION = uuid4()
THIRD = client_order_id(THIRD_ACTION)


def replacing_again() -> Settlement:
    """One REPLACE was given up and may still arrive; the next one is being sent."""
    settlement = begun(Status.PENDING_REPLACE, Command(THIRD_ACTION, 3, "REPLACE", spec("30")), done_sequence=2)
    settlement.orders[SECOND] = BrokerOrder(SECOND, 2, None, "MISSING", set(), *[Decimal(0)] * 3)
    settlement.orders[THIRD] = BrokerOrder(THIRD, 3, None, "STARTED", set(), *[Decimal(0)] * 3)
    return settlement


def refused_again(settlement: Settlement, *shown: Order) -> None:
    settlement.progress.lease_token = uuid4()
    given = leased(settlement.progress.lease_token, action_id=THIRD_ACTION, type="REPLACE")
    settle(settlement, [DispatchResult(given, Rejected("BROKER_REFUSED", "cannot replace it", shown))])


@pytest.mark.parametrize("reported_before", [True, False])
def test_what_a_late_replacement_has_made_of_an_order_is_not_taken_for_the_next_one(reported_before):
    settlement, replaced = replacing_again(), order(OrderStatus.REPLACED, replaced_by="b2")
    if reported_before:
        settle(settlement, [reported(replaced)])
        assert settlement.intent.status is Status.PENDING_REPLACE, "which of the two it was is not known yet"
    refused_again(settlement, *([] if reported_before else [replaced]))

    assert settlement.intent.status is Status.CANCELED and settlement.intent.reason_code == "REPLACED_LATE"
    assert settlement.intent.quantity == 10 and settlement.progress.open_actions == 0
    settle(settlement, [reported(order(OrderStatus.WORKING, name=SECOND, number="b2"))])
    assert settlement.orders[SECOND].unwanted and settlement.orders[THIRD].broker_order_id is None


def test_a_replacement_is_done_although_an_earlier_one_was_given_up():
    settlement = replacing_again()
    settle(settlement, [reported(order(OrderStatus.REPLACED, replaced_by="b3"))])

    settle(settlement, [reported(order(OrderStatus.PENDING, name=THIRD, number="b3", replaces="b1"))])

    assert (
        settlement.intent.status is Status.ACCEPTED
        and settlement.intent.quantity == 30
        and settlement.intent.broker_order_id == "b3"
    )
    assert not any(known.unwanted for known in settlement.orders.values())


def test_an_order_replaced_by_somebody_else_is_not_taken_for_a_replacement_that_was_refused():
    token, settlement = uuid4(), replacing()
    settlement.progress.lease_token = token
    gone = order(OrderStatus.REPLACED, replaced_by="theirs")

    settle(
        settlement,
        [DispatchResult(leased(token, action_id=CHANGE, type="REPLACE"), Rejected("ORDER_NOT_OPEN", "no", (gone,)))],
    )

    assert settlement.intent.status is Status.CANCELED and settlement.intent.reason_code == "REPLACED_ELSEWHERE"
    assert settlement.intent.quantity == 10 and settlement.orders[SECOND].broker_order_id is None


def test_the_answer_to_a_replacement_brings_the_last_fills_of_the_old_order():
    token, settlement = uuid4(), replacing()
    settlement.progress.lease_token = token
    old = order(OrderStatus.REPLACED, 4, replaced_by="b2")
    new = replace(order(OrderStatus.PENDING, name=SECOND, number="b2", replaces="b1"), quantity=Decimal(11))

    settle(settlement, [DispatchResult(leased(token, action_id=CHANGE, type="REPLACE"), OrderFound(new, (old,)))])

    assert settlement.intent.filled_quantity == 4 == traded(settlement) and settlement.intent.broker_order_id == "b2"
    assert settlement.progress.open_actions == 0 and not settlement.is_overordered
