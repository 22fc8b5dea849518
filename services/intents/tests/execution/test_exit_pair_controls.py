"""Controls that change before two exits are sent as one order decide about each of them."""

from collections.abc import Callable
from typing import Any

import pytest

from tip_testing.commands import cancel, create
from tip_testing.waiting import eventually

from ..test_controls import limits
from .pairs import Exits, bought, limit, new_symbol, stop

COLLAR = 1500  # basis points, which the stop at 70 is outside of and the limit at 110 is not


@pytest.fixture(scope="module", autouse=True)
def workers(start: Callable[..., Any]) -> None:
    start("executor")
    start("reconciler")


def test_a_stop_that_is_refused_before_the_pair_is_sent_ends_and_its_limit_goes_alone(
    desk: Any, paper: Any, reaches: Callable[..., Any], hold_back: Callable[..., Any]
) -> None:
    found = Exits(desk, paper, new_symbol(paper))
    bought(desk, found.symbol, reaches)
    with hold_back():
        desk.created(create(found.symbol, side="SELL", OneCancelsOther={"one": limit("110"), "other": stop("70")}))
        limits(desk, price_collar_bps=COLLAR)

    found.reach(one="ACCEPTED", other="DENIED")
    assert found.legs()["other"]["reason_code"] == "PRICE_OUTSIDE_COLLAR"
    assert {kind: order["status"] for kind, order in found.at_broker().items()} == {"market": "filled", "limit": "new"}


@pytest.fixture
def delayed(desk: Any, paper: Any, hold_back: Callable[..., Any]) -> Exits:
    """A bracket whose stop a control delays since its entry was submitted."""
    found = Exits(desk, paper, new_symbol(paper))
    exits = {"take_profit": limit("110"), "stop_loss": stop("70")}
    with hold_back():
        desk.created(create(found.symbol, Bracket={"entry": {"Market": {"quantity": "10"}}, **exits}))
        limits(desk, price_collar_bps=COLLAR)
    found.reach(entry="FILLED")
    eventually(lambda: found.legs()["take_profit"]["reason_code"] == "PRICE_OUTSIDE_COLLAR", 60)
    return found


def test_exits_of_which_controls_delay_the_stop_wait_and_are_then_one_order(delayed: Exits) -> None:
    assert (delayed.legs()["take_profit"]["status"], set(delayed.at_broker())) == ("PENDING", {"market"})

    delayed.desk.execute("DELETE FROM controls.account_limits WHERE account_id = :account_id")

    delayed.reach(take_profit="ACCEPTED", stop_loss="ACCEPTED")
    statuses = {kind: order["status"] for kind, order in delayed.at_broker().items()}
    assert statuses == {"market": "filled", "limit": "new", "stop": "held"}


def test_a_cancel_of_a_stop_that_controls_delay_lets_the_limit_go(delayed: Exits) -> None:
    delayed.desk.created(cancel(delayed.legs()["stop_loss"]["id"]))

    delayed.reach(take_profit="ACCEPTED", stop_loss="CANCELED")
    assert set(delayed.at_broker()) == {"market", "limit"}
