"""A stop becomes the leg that the broker made of it, and nothing that is said of the leg is lost."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from intents.execution.model.verdicts import OPERATOR_REQUIRED, LegFound, OrderFound, RetryLater
from tip_brokers import OrderStatus
from tip_testing.commands import cancel

from .paired_desk import NAME, PairedDesk

FILLED, HELD = OrderStatus.FILLED, OrderStatus.PENDING


@pytest.fixture
def pair(new_desk: Callable[..., Any], organization: Any) -> PairedDesk:
    return PairedDesk(new_desk(organization=organization))


def test_the_stop_is_the_leg_that_the_answer_to_the_limit_shows(pair: PairedDesk) -> None:
    pair.sent()

    assert (pair.stop["status"], pair.stop["broker_order_id"], pair.stop["reason_code"]) == ("ACCEPTED", "b2", None)
    assert pair.names() == {pair.limit.client_order_id, NAME}


def test_a_report_about_the_leg_is_the_stops_from_that_answer_on(pair: PairedDesk) -> None:
    pair.sent()

    pair.reported(pair.leg(FILLED, 10))

    assert (pair.stop["status"], pair.stop["open_actions"]) == ("FILLED", 0)
    assert pair.legs()["one"]["status"] == "PENDING_CANCEL" and pair.strangers() == []


def test_a_fill_that_was_reported_before_the_leg_was_known_is_read_with_it(pair: PairedDesk) -> None:
    pair.reported(pair.leg(FILLED, 10))
    pair.sent(pair.leg(HELD))
    assert pair.stop["status"] == "ACCEPTED"

    pair.executed(pair.leg(FILLED, 10))

    assert (pair.stop["status"], pair.stop["open_actions"]) == ("FILLED", 0)
    assert len(pair.payloads("BROKER_TRADE")) == 1 and pair.strangers() == []


def test_a_leg_that_is_as_it_was_found_settles_the_stop(pair: PairedDesk) -> None:
    pair.sent()
    assert pair.stop["open_actions"] == 1

    market = pair.executed(pair.leg())

    assert (pair.stop["status"], pair.stop["open_actions"], market.sent) == ("ACCEPTED", 0, [])
    assert pair.names() == {pair.limit.client_order_id, NAME}


def test_a_leg_that_no_answer_has_shown_is_found_and_then_read(pair: PairedDesk) -> None:
    pair.reported(pair.pair())
    assert pair.stop["status"] == "PENDING"

    pair.executed(pair.pair(pair.leg()))
    assert (pair.stop["status"], pair.stop["open_actions"]) == ("ACCEPTED", 1)
    pair.executed(pair.leg(FILLED, 10))

    assert (pair.stop["status"], pair.stop["open_actions"]) == ("FILLED", 0)
    assert pair.names() == {pair.limit.client_order_id, NAME}


def test_an_answer_that_comes_while_the_stop_searches_its_leg_shows_it(pair: PairedDesk) -> None:
    """The broker's stream has reported the Limit before its answer was recorded."""
    pair.reported(pair.pair())
    searching = pair.claim("other")

    pair.sent()
    assert pair.stop["broker_order_id"] == "b2"
    pair.answered(searching, LegFound(pair.leg()))
    pair.executed(pair.leg())

    assert (pair.stop["status"], pair.stop["open_actions"]) == ("ACCEPTED", 0)
    assert pair.names() == {pair.limit.client_order_id, NAME}


def test_a_leg_that_has_ended_while_the_stop_searched_it_leaves_no_order_to_search_for(pair: PairedDesk) -> None:
    pair.reported(pair.pair())
    searching = pair.claim("other")

    pair.sent(pair.leg(FILLED, 10))
    pair.answered(searching, LegFound(pair.leg(FILLED, 10)))

    assert pair.stop["status"] == "FILLED" and len(pair.payloads("BROKER_TRADE")) == 1
    assert pair.names() == {pair.limit.client_order_id, NAME}


def test_a_stop_that_is_canceled_while_its_limit_is_sent_is_canceled_as_the_leg(pair: PairedDesk) -> None:
    pair.desk.created(cancel(pair.stop["id"]))

    pair.sent()

    assert (pair.stop["status"], pair.stop["broker_order_id"]) == ("PENDING_CANCEL", "b2")
    pair.executed(pair.leg())
    assert pair.executed(pair.leg()).sent == ["b2"]
    assert (pair.stop["status"], pair.stop["open_actions"]) == ("CANCELED", 0)


def test_a_limit_whose_answer_shows_no_leg_leaves_the_stop_to_its_own_query(pair: PairedDesk) -> None:
    pair.answered(pair.limit, OrderFound(pair.pair()))

    assert (pair.stop["status"], pair.stop["open_actions"], pair.stop["broker_order_id"]) == ("PENDING", 1, None)


def test_a_leg_that_only_a_person_can_read_is_followed_like_any_order(pair: PairedDesk) -> None:
    pair.sent()

    pair.answered(pair.claim("other"), RetryLater(10.0, "No credential opens it.", OPERATOR_REQUIRED))

    assert (pair.stop["status"], pair.stop["open_actions"]) == ("ACCEPTED", 0)
    assert pair.names() == {pair.limit.client_order_id, NAME}


def test_a_position_that_is_read_before_the_leg_is_known_contains_its_fill_once(pair: PairedDesk) -> None:
    pair.reported(pair.pair())

    pair.read(0)
    assert pair.position() == 10
    pair.executed(pair.pair(pair.leg(FILLED, 10)))

    assert (pair.stop["status"], pair.position()) == ("FILLED", 0)
    pair.read(0)
    assert pair.position() == 0


def test_a_position_that_is_read_after_the_leg_is_known_contains_its_fill_once(pair: PairedDesk) -> None:
    pair.sent()

    pair.read(0, filled={NAME: Decimal(10)})
    pair.executed(pair.leg(FILLED, 10))

    assert (pair.stop["status"], pair.position()) == ("FILLED", 0)


def test_positions_of_other_symbols_are_read_while_a_leg_is_searched(pair: PairedDesk) -> None:
    pair.reported(pair.pair())

    pair.read(5, symbol="OTHER")

    assert pair.position() == 15
