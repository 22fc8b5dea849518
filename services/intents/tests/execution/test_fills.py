"""Whatever comes late, twice or out of order: a fill counts once."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intents.execution.model.inputs import DispatchResult
from intents.execution.model.settlement import Settlement
from intents.execution.model.verdicts import Decided, OrderFound
from intents.model import Status, Update
from tip_brokers import Execution, OrderStatus

from .settlements import NOW, TOTAL, begun, execution, leased, order, reported, settle, stories, traded


@given(stories())
@settings(max_examples=300, deadline=None)
def test_in_any_order_and_however_often_a_fill_counts_once(story):
    inputs, total = story
    settlement = begun()

    for report in inputs:
        settle(settlement, [report])
        assert settlement.intent.filled_quantity <= total

    assert settlement.intent.filled_quantity == traded(settlement) == total
    assert (settlement.intent.status is Status.FILLED) == (total >= TOTAL)
    assert settlement.intent.average_fill_price == 5


def prices(settlement: Settlement) -> list[Decimal | None]:
    """At which trades are logged; positions move at the same."""
    trades = [event["payload"]["price"] for event in settlement.events if event["type"] == "BROKER_TRADE"]
    logged = [None if price is None else Decimal(price) for price in trades]
    assert [change["price"] for change in settlement.position_changes] == logged
    return logged


@given(stories(unpriced=True))
@settings(max_examples=300, deadline=None)
def test_where_an_order_is_shown_without_a_price_a_fill_has_its_own_price_or_none(story):
    inputs, total = story
    settlement = begun()

    settle(settlement, inputs)

    assert settlement.intent.filled_quantity == traded(settlement) == total
    assert {*prices(settlement), settlement.intent.average_fill_price} <= {5, None}


def test_what_is_filled_after_fills_without_a_price_has_the_price_of_the_order():
    """A listing shows no average price, and what is shown of the order by itself does."""
    settlement = begun(Status.ACCEPTED)

    settle(settlement, [reported(replace(order(OrderStatus.WORKING, 5), average_price=None))])
    settle(settlement, [reported(replace(order(OrderStatus.FILLED, 10), average_price=Decimal(20)))])

    assert prices(settlement) == [None, 20]
    assert settlement.intent.average_fill_price == 20


def test_after_a_price_for_all_that_is_filled_what_follows_has_its_own_again():
    settlement = begun(Status.ACCEPTED)

    for filled, average in ((2, 10), (4, None), (6, 20), (8, 30)):
        price = None if average is None else Decimal(average)
        settle(settlement, [reported(replace(order(OrderStatus.WORKING, filled), average_price=price))])

    assert prices(settlement) == [10, None, 20, 60]


def test_what_updates_before_an_execution_have_missed_has_the_price_of_the_order_after_fills_without_one():
    settlement = begun(Status.ACCEPTED)
    shown = replace(order(OrderStatus.FILLED, 10), average_price=Decimal(20))

    settle(settlement, [reported(replace(order(OrderStatus.WORKING, 4), average_price=None))])
    settle(settlement, [reported(shown, execution(1, 5))])

    assert prices(settlement) == [None, 20, 5]


def test_what_an_order_shows_beyond_an_execution_that_is_known_is_a_trade_without_a_name():
    """The log has each execution once: a second trade under its id could not be written at all."""
    settlement = begun(Status.ACCEPTED)

    settle(settlement, [reported(order(OrderStatus.WORKING, total), execution(1, 4)) for total in (4, 9)])

    trades = [
        (event["execution_id"], event["payload"]["quantity"])
        for event in settlement.events
        if event["type"] == "BROKER_TRADE"
    ]
    assert trades == [("e1", "4"), (None, "5")]


@pytest.mark.parametrize("missed", [0, 3])
def test_a_trade_that_bears_the_name_of_an_execution_is_that_execution(missed):
    """Updates before it did not come: what they would have shown is a trade without a name."""
    settlement = begun(Status.ACCEPTED)

    settle(settlement, [reported(order(OrderStatus.WORKING, missed + 2), execution(7, 2))])

    trades = [
        (event["execution_id"], event["payload"]["quantity"])
        for event in settlement.events
        if event["type"] == "BROKER_TRADE"
    ]
    assert trades == ([(None, "3")] if missed else []) + [("e7", "2")]
    assert settlement.intent.filled_quantity == traded(settlement) == missed + 2
    assert settlement.intent.average_fill_price == 5


def test_a_fill_shown_under_two_ids_counts_once():
    """A stream and an account's activities need not name a fill alike."""
    settlement = begun(Status.ACCEPTED)

    for number in (1, 2):
        settle(settlement, [reported(order(OrderStatus.WORKING, 4), execution(number, 4))])

    assert settlement.intent.filled_quantity == traded(settlement) == 4


@given(st.permutations(["fill", "canceled", "canceled again"]))
def test_a_fill_before_or_after_the_end_of_a_canceled_order_is_kept(story):
    settlement = begun(Status.ACCEPTED)
    inputs = {
        "fill": reported(order(OrderStatus.WORKING, 4), execution(1, 4)),
        "canceled": reported(order(OrderStatus.CANCELED, 0)),
        "canceled again": reported(order(OrderStatus.CANCELED, 4)),
    }

    settle(settlement, [inputs[name] for name in story])

    assert settlement.intent.status is Status.CANCELED and settlement.intent.filled_quantity == 4 == traded(settlement)


def test_more_than_was_ordered_is_shown():
    settlement = begun(Status.ACCEPTED)

    settle(
        settlement,
        [
            reported(order(OrderStatus.FILLED, 10), execution(1, 10)),
            reported(order(OrderStatus.FILLED, 12), execution(2, 2)),
        ],
    )

    assert settlement.intent.status is Status.FILLED and settlement.intent.filled_quantity == 12


def test_what_is_filled_beyond_the_request_says_so():
    settlement = begun(Status.ACCEPTED)

    settle(settlement, [reported(order(OrderStatus.FILLED, 12), execution(1, 12))])

    assert settlement.intent.status is Status.FILLED and settlement.intent.reason_code == "OVERFILLED"


def positions_of(settlement: Settlement) -> list[str]:
    return [event["payload"]["quantity"] for event in settlement.events if event["type"] == "BROKER_POSITION"]


def standing(number: int, quantity: int, position: int) -> Execution:
    return replace(execution(number, quantity), position_quantity=Decimal(position))


def test_a_fill_that_was_in_the_answer_already_still_brings_its_position():
    token, settlement = uuid4(), begun()
    settlement.progress.lease_token = token
    settle(settlement, [DispatchResult(leased(token), OrderFound(order(OrderStatus.FILLED, 10)))])
    assert [(move["moved"], move["stands"]) for move in settlement.position_changes] == [(10, None)] and positions_of(
        settlement
    ) == []

    for _ in range(2):
        settle(settlement, [reported(order(OrderStatus.FILLED, 10), standing(1, 10, position=25))])

    assert positions_of(settlement) == ["25"] and settlement.position_changes[-1]["stands"] == 25
    assert settlement.intent.filled_quantity == traded(settlement) == 10


def test_a_position_reported_late_does_not_replace_a_later_one():
    settlement = begun(Status.ACCEPTED)

    settle(
        settlement,
        [
            reported(order(OrderStatus.FILLED, 10), standing(2, 4, position=10)),
            reported(order(OrderStatus.WORKING, 6), standing(1, 6, position=6)),
        ],
    )

    assert positions_of(settlement) == ["10"] and settlement.position_changes[-1]["stands"] == 10


def test_a_fill_of_what_was_thought_unsent_is_kept():
    token, settlement = uuid4(), begun(Status.SUBMITTED)
    settlement.progress.lease_token = token
    denied = Decided(Update.DENIED, "TRADING_HALTED", "halted")
    settle(settlement, [DispatchResult(leased(token, started_before=NOW - timedelta(minutes=1)), denied)])
    assert (
        settlement.intent.status is Status.DENIED
        and settlement.progress.open_actions == 0
        and settlement.unsent_orders == []
    )

    settle(settlement, [reported(order(OrderStatus.WORKING, 4), execution(1, 4))])

    assert settlement.intent.status is Status.DENIED and settlement.intent.filled_quantity == 4 == traded(settlement)


def test_the_same_execution_id_on_two_orders_is_two_executions():
    settlement = begun(Status.ACCEPTED)

    settle(settlement, [reported(order(OrderStatus.WORKING, 3), execution(1, 3))])
    settle(settlement, [reported(order(OrderStatus.WORKING, 3, number="b9"), execution(1, 3))])

    assert settlement.intent.filled_quantity == 6 == traded(settlement)
