"""Exits that exclude each other, as one order at a broker that reserves a position for it."""

from collections.abc import Callable
from typing import Any

import pytest

from tip_testing.commands import cancel, create, replace
from tip_testing.waiting import eventually

from .pairs import Exits, bought, bracket, exits, limit, new_symbol, stop


@pytest.fixture(scope="module", autouse=True)
def workers(start: Callable[..., Any]) -> None:
    start("executor")
    start("reconciler")


@pytest.fixture
def resting(desk: Any, paper: Any) -> Exits:
    """A bracket whose entry is filled."""
    symbol = new_symbol(paper)
    desk.created(bracket(symbol))
    found = Exits(desk, paper, symbol)
    found.reach(entry="FILLED", take_profit="ACCEPTED", stop_loss="ACCEPTED")
    return found


def stored(exits: Exits, role: str) -> list[str]:
    """The orders that the leg has with us; one of its own is among them until it is known to be part of the other."""
    rows = exits.desk.rows("broker_order")
    return [row["client_order_id"] for row in rows if row["intent_id"] == exits.legs()[role]["id"]]


def test_the_exits_of_a_filled_bracket_are_one_order_at_the_broker(resting: Exits) -> None:
    orders, legs = resting.at_broker(), resting.legs()

    assert {kind: order["status"] for kind, order in orders.items()} == {
        "market": "filled", "limit": "new", "stop": "held",
    }  # fmt: skip
    assert orders["limit"]["order_id"] == legs["take_profit"]["broker_order_id"]
    assert orders["stop"]["order_id"] == legs["stop_loss"]["broker_order_id"]
    assert (orders["limit"]["posts"], orders["stop"]["posts"]) == (1, 0)
    eventually(lambda: stored(resting, "stop_loss") == [orders["stop"]["client_order_id"]])
    assert resting.strangers() == []


@pytest.mark.parametrize(
    ("quote", "statuses"),
    [
        (("111", "112"), {"take_profit": "FILLED", "stop_loss": "CANCELED"}),
        (("88", "89"), {"take_profit": "CANCELED", "stop_loss": "FILLED"}),
    ],
)
def test_the_exit_that_is_filled_ends_the_other(resting: Exits, quote: Any, statuses: dict[str, str]) -> None:
    resting.paper.quote(resting.symbol, *quote)

    resting.reach(**statuses)
    eventually(lambda: [row["quantity"] for row in resting.desk.rows("position")] == [0], 60)
    assert resting.strangers() == resting.uncovered() == []
    assert resting.desk.rows("intent_group")[0]["excess_quantity"] == 0


@pytest.mark.parametrize("role", ["take_profit", "stop_loss"])
def test_a_cancel_of_one_exit_ends_both_as_at_the_broker(resting: Exits, role: str) -> None:
    resting.desk.created(cancel(resting.legs()[role]["id"]))

    resting.reach(take_profit="CANCELED", stop_loss="CANCELED")
    assert {order["status"] for order in resting.at_broker().values()} == {"filled", "canceled"}
    assert resting.uncovered() == ["No order of its group closes 10 of what it has filled."]


def test_what_one_exit_has_filled_is_taken_from_the_other(resting: Exits) -> None:
    resting.paper.quote(resting.symbol, "111", "112", bid_size="4")

    resting.reach(take_profit="PARTIALLY_FILLED", stop_loss="ACCEPTED")
    eventually(lambda: resting.legs()["stop_loss"]["quantity"] == 6, 60)
    assert resting.at_broker()["stop"]["qty"] == "6" and not resting.legs()["stop_loss"]["overordered"]
    resting.paper.quote(resting.symbol, "88", "89")

    resting.reach(take_profit="CANCELED", stop_loss="FILLED")
    assert resting.legs()["stop_loss"]["filled_quantity"] == 6


def test_an_exit_is_replaced_by_one_of_the_same_pair(resting: Exits) -> None:
    resting.desk.created(replace(resting.legs()["stop_loss"]["id"], **stop("95")))
    eventually(lambda: resting.at_broker()["stop"]["stop_price"] == "95", 60)
    resting.reach(stop_loss="ACCEPTED")

    resting.paper.quote(resting.symbol, "94", "95")

    resting.reach(take_profit="CANCELED", stop_loss="FILLED")


def test_the_limit_of_a_pair_is_replaced_and_its_stop_stays(resting: Exits) -> None:
    resting.desk.created(replace(resting.legs()["take_profit"]["id"], **limit("105")))
    eventually(lambda: resting.at_broker()["limit"]["limit_price"] == "105", 60)
    resting.reach(take_profit="ACCEPTED", stop_loss="ACCEPTED")

    resting.paper.quote(resting.symbol, "88", "89")

    resting.reach(take_profit="CANCELED", stop_loss="FILLED")


@pytest.mark.parametrize("first", ["limit", "stop"])
def test_two_exits_of_a_position_are_one_order(first: str, desk: Any, paper: Any, reaches: Callable[..., Any]) -> None:
    symbol = new_symbol(paper)
    bought(desk, symbol, reaches)
    both = [limit("110"), stop("90")] if first == "limit" else [stop("90"), limit("110")]

    desk.created(create(symbol, side="SELL", OneCancelsOther=dict(zip(("one", "other"), both, strict=True))))

    found = Exits(desk, paper, symbol)
    found.reach(one="ACCEPTED", other="ACCEPTED")
    assert {kind: found.at_broker()[kind]["status"] for kind in ("limit", "stop")} == {"limit": "new", "stop": "held"}


@pytest.mark.parametrize("symbol", ["SIM.TIMEOUT_AFTER_ACCEPT", "SIM.ERROR500_AFTER_ACCEPT"])
def test_a_pair_of_which_the_answer_was_lost_is_found_and_not_sent_again(symbol: str, desk: Any, paper: Any) -> None:
    desk.created(bracket(symbol))

    found = Exits(desk, paper, symbol)
    found.reach(entry="FILLED", take_profit="ACCEPTED", stop_loss="ACCEPTED")
    account = {row["broker_account"] for row in desk.rows("broker_login")}
    orders = [order for order in paper.ledger() if order["symbol"] == symbol and order["account_id"] in account]
    assert {order["kind"]: order["posts"] for order in orders} == {"market": 1, "limit": 1, "stop": 0}
    assert len(orders) == 3


def test_a_stop_whose_limit_the_broker_refuses_is_sent_by_itself(desk: Any, paper: Any) -> None:
    """There is no position that the pair could close; the stop alone may sell short."""
    symbol = new_symbol(paper)

    desk.created(exits(symbol))

    found = Exits(desk, paper, symbol)
    found.reach(one="REJECTED", other="ACCEPTED")
    assert {kind: order["status"] for kind, order in found.at_broker().items()} == {"stop": "new"}


def test_a_stop_that_is_canceled_before_its_limit_is_sent_does_not_go_with_it(
    desk: Any, paper: Any, reaches: Callable[..., Any], hold_back: Callable[..., Any]
) -> None:
    symbol = new_symbol(paper)
    bought(desk, symbol, reaches)
    found = Exits(desk, paper, symbol)
    with hold_back():
        desk.created(exits(symbol))
        assert found.legs()["other"]["reason_code"] == "WAITING_FOR_SIBLING"
        busy = desk.submit(replace(found.legs()["other"]["id"], **stop("95")))
        desk.created(cancel(found.legs()["other"]["id"]))

    found.reach(one="ACCEPTED", other="CANCELED")
    assert busy.status_code == 409
    assert {kind: order["status"] for kind, order in found.at_broker().items()} == {"market": "filled", "limit": "new"}


def test_a_limit_that_is_canceled_before_it_is_sent_leaves_the_stop(
    desk: Any, paper: Any, reaches: Callable[..., Any], hold_back: Callable[..., Any]
) -> None:
    symbol = new_symbol(paper)
    bought(desk, symbol, reaches)
    found = Exits(desk, paper, symbol)
    with hold_back():
        desk.created(exits(symbol))
        desk.created(cancel(found.legs()["one"]["id"]))

    found.reach(one="CANCELED", other="ACCEPTED")
    assert {kind: order["status"] for kind, order in found.at_broker().items()} == {"market": "filled", "stop": "new"}


def test_both_exits_of_a_deleted_account_end_in_a_refusal(
    desk: Any, paper: Any, reaches: Callable[..., Any], hold_back: Callable[..., Any]
) -> None:
    symbol = new_symbol(paper)
    bought(desk, symbol, reaches)
    with hold_back():
        desk.created(exits(symbol))
        desk.execute("UPDATE accounts.account SET deleted_at = now() WHERE id = :account_id")

    found = Exits(desk, paper, symbol)
    found.reach(one="DENIED", other="DENIED")
    assert {leg["reason_code"] for leg in found.legs().values()} == {"ACCOUNT_NOT_FOUND"}
    assert set(found.at_broker()) == {"market"}
