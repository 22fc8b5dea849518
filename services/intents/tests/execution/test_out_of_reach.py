"""Orders and commands that no credential can query: the intent says so, and an operator settles them."""

from intents.execution.model.inputs import BrokerReport, OutOfReach, Resolution
from intents.model import Status
from tip_brokers import OrderStatus

from .settlements import (
    ACCOUNT,
    FIRST,
    INTENT,
    NOW,
    begun,
    execution,
    order,
    reported,
    settle,
)


def test_an_order_that_no_credential_can_query_says_so_once():
    settlement = begun(Status.ACCEPTED)

    for _ in range(2):
        settle(settlement, [OutOfReach(ACCOUNT, FIRST)])

    assert settlement.intent.status is Status.ACCEPTED and settlement.intent.reason_code == "OPERATOR_REQUIRED"
    assert len(settlement.events) == 1
    settle(settlement, [reported(order(OrderStatus.FILLED, 10), execution(1, 10))])
    assert settlement.intent.status is Status.FILLED and settlement.intent.reason_code is None


def test_an_order_that_is_lost_says_why_it_needs_an_operator():
    settlement = begun(Status.ACCEPTED)

    settle(settlement, [OutOfReach(ACCOUNT, FIRST, "It is lost.")])

    assert [event["payload"]["reason"] for event in settlement.events] == ["It is lost."]


def test_an_order_that_can_be_queried_again_needs_no_operator():
    settlement = begun(Status.ACCEPTED)
    settle(settlement, [OutOfReach(ACCOUNT, FIRST)])

    settle(settlement, [BrokerReport(ACCOUNT, order(OrderStatus.WORKING), NOW, is_current_state=True)])

    assert (
        settlement.intent.status is Status.ACCEPTED
        and settlement.intent.reason_code is None
        and len(settlement.events) == 2
    )


def test_what_an_operator_has_found_not_to_be_there_has_failed_and_may_surface():
    settlement = begun(Status.SUBMITTED)

    settle(settlement, [Resolution(ACCOUNT, INTENT, FIRST, "not in the broker's list of the day")])

    assert settlement.intent.status is Status.FAILED and settlement.intent.reason_code == "RESOLVED_BY_OPERATOR"
    assert settlement.progress.open_actions == 0 and settlement.orders[FIRST].status == "MISSING"
    settle(settlement, [reported(order(OrderStatus.FILLED, 10), execution(1, 10))])
    assert settlement.intent.status is Status.FILLED and settlement.intent.filled_quantity == 10
