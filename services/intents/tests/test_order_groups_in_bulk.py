"""Order groups among what is canceled or closed as a whole: no exit is armed again or left, no close is doubled."""

from collections.abc import Callable

import pytest

from intents.execution.order_groups import tend_order_groups
from tip_testing.identity_fixtures import Organization

from .conftest import Desk
from .grouping import Broker, bracket, filled_bracket, one_cancels_other, one_triggers_other
from .test_bulk_operations import cancel_all, nothing_left, operation, run
from .test_close_positions import close, closing_orders, market, reconciled

__all__ = ["nothing_left"]


@pytest.fixture
def desk(new_desk: Callable[..., Desk], organization: Organization) -> Desk:
    """At a broker that does not reserve a position for the first order that closes it."""
    return new_desk(organization=organization, broker="fix")


def until_over(desk: Desk, broker: Broker) -> None:
    """What scheduler and executors do until nothing moves."""
    for _ in range(3):
        run(desk)
        broker.send()
        tend_order_groups(desk.deps)
    run(desk)


@pytest.mark.parametrize("body", [bracket(), one_cancels_other(), one_triggers_other()])
def test_canceling_all_ends_a_group_of_which_nothing_is_filled(desk: Desk, body) -> None:
    desk.created(body)
    broker = Broker(desk)
    broker.send()
    sent = set(broker.orders)

    answer = cancel_all(desk)
    until_over(desk, broker)

    assert set(broker.statuses().values()) == {"CANCELED"} and set(broker.orders) == sent, "nothing was sent for it"
    assert operation(desk, answer)["status"] == "COMPLETED"


def test_canceling_all_takes_both_exits_away_and_arms_none_again(desk: Desk) -> None:
    broker = filled_bracket(desk)

    answer = cancel_all(desk)
    until_over(desk, broker)

    assert broker.statuses() == {"entry": "FILLED", "take_profit": "CANCELED", "stop_loss": "CANCELED"}
    assert broker.left("take_profit") == broker.left("stop_loss") == 0
    assert operation(desk, answer)["status"] == "COMPLETED"


def test_an_entry_that_is_filled_while_all_is_canceled_is_said_to_be_uncovered(desk: Desk) -> None:
    desk.created(bracket())
    broker = Broker(desk)
    broker.send()
    cancel_all(desk)
    run(desk)

    broker.fill("entry", "10")
    until_over(desk, broker)

    assert broker.statuses()["entry"] == "FILLED"
    assert {broker.statuses()[role] for role in ("take_profit", "stop_loss")} == {"CANCELED"}
    reasons = {row["payload"].get("reason_code") for row in desk.rows("account_event")}
    assert "GROUP_UNCOVERED" in reasons, "a position without its stop is never silent"


def test_closing_positions_cancels_the_exits_first_and_closes_once(desk: Desk) -> None:
    broker = filled_bracket(desk)
    reconciled(desk)

    answer = close(desk)
    until_over(desk, broker)
    reconciled(desk)
    until_over(desk, broker)

    assert closing_orders(desk) == [("AAPL", "SELL", market("10"), "CLOSE_POSITIONS")]
    assert broker.left("take_profit") == broker.left("stop_loss") == 0
    assert operation(desk, answer)["refusals"] == []


def test_an_exit_that_is_filled_while_positions_are_closed_leaves_nothing_to_close(desk: Desk) -> None:
    broker = filled_bracket(desk)
    reconciled(desk)
    answer = close(desk)
    run(desk)

    broker.fill("stop_loss", "10")
    until_over(desk, broker)
    reconciled(desk)
    until_over(desk, broker)

    assert closing_orders(desk) == []
    assert broker.statuses() == {"entry": "FILLED", "take_profit": "CANCELED", "stop_loss": "FILLED"}
    assert operation(desk, answer)["status"] == "COMPLETED"
