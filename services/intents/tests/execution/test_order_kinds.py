"""Orders beyond the specification's four kinds, from submit to the broker's storage and back."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from tip_testing.commands import cancel, create, replace
from tip_testing.waiting import eventually


@pytest.fixture(scope="module", autouse=True)
def processes(start: Callable[..., Any]) -> None:
    for kind in ("reconciler", "scheduler", "executor"):
        start(kind)


def priced(desk: Any, body: Any) -> Any:
    """The action, once a price was read at the broker: its want is a refusal meanwhile."""

    def made() -> Any:
        answer = desk.submit(body)
        return answer.json if answer.status_code == 201 else None

    return eventually(made)


def test_a_trailing_stop_trails_is_replaced_and_fills(desk, paper, orders, events, reaches):
    paper.quote("TRAILS", "100", "100")
    reaches(desk.created(create("TRAILS", "2")), "FILLED")
    stop = desk.created(create("TRAILS", side="SELL", TrailingStop={"quantity": "2", "trail_percent": "20"}))
    reaches(stop, "ACCEPTED")
    paper.quote("TRAILS", "120", "120")

    desk.created(replace(stop["intent_id"], TrailingStop={"quantity": "2", "trail_percent": "10"}))
    reaches(stop, "ACCEPTED")
    old, new = eventually(
        lambda: [order for order in orders() if order["kind"] == "trailing_stop"][1:] and orders()[-2:]
    )
    assert (old["trail_percent"], new["trail_percent"], new["stop_price"]) == ("20", "10", "108.000000000")
    paper.quote("TRAILS", "108", "108")

    state = reaches(stop, "FILLED")
    assert (state["filled_quantity"], Decimal(state["average_fill_price"])) == ("2", 108)
    shown = [event["payload"] for event in events() if event["type"] == "BROKER_ORDER"][-1]
    assert (shown["order_kind"], shown["trail_percent"], shown["stop_price"]) == ("TrailingStop", "10", None)


def test_an_order_by_its_notional_is_filled_when_the_broker_says_so(desk, paper, orders, events, reaches):
    paper.quote("MONEY", "3", "3", ask_size="100")
    order = priced(desk, create("MONEY", Market={"notional": "1000"}))

    state = reaches(order, "PARTIALLY_FILLED")
    assert (state["filled_quantity"], Decimal(state["leaves_quantity"]) > 0) == ("100", True)
    paper.quote("MONEY", "3", "3")

    state = reaches(order, "FILLED")
    assert (state["filled_quantity"], state["leaves_quantity"], state["reason_code"]) == ("333.333333333", "0", None)
    [kept] = desk.rows("intent")
    assert kept["quantity"] == kept["filled_quantity"] == Decimal("333.333333333")
    shown = [event["payload"] for event in events() if event["type"] == "BROKER_ORDER"]
    assert [payload["status"] for payload in shown] == ["ACCEPTED", "PARTIALLY_FILLED", "FILLED"]
    assert (shown[-1]["quantity"], shown[-1]["notional"]) == ("333.333333333", "1000")
    [position] = eventually(lambda: [row for row in desk.rows("position") if row["symbol"] == "MONEY"])
    assert position["quantity"] == Decimal("333.333333333")


def test_what_is_left_of_an_order_by_its_notional_is_canceled(desk, paper, reaches):
    paper.quote("MONEY", "3", "3", ask_size="100")
    order = priced(desk, create("MONEY", Market={"notional": "1000"}))
    reaches(order, "PARTIALLY_FILLED")

    desk.created(cancel(order["intent_id"]))

    state = reaches(order, "CANCELED")
    assert (state["filled_quantity"], state["leaves_quantity"]) == ("100", "0")


def test_extended_hours_reach_the_broker_and_stay_with_a_replacement(desk, orders, reaches):
    body = create("SIM.OPEN", Limit={"quantity": "2", "limit_price": "90"})
    body["command"]["payload"]["extended_hours"] = True
    order = desk.created(body)
    reaches(order, "ACCEPTED")
    desk.created(replace(order["intent_id"], Limit={"quantity": "2", "limit_price": "91"}))
    regular = desk.created(create("SIM.OPEN", Limit={"quantity": "2", "limit_price": "90"}))
    reaches(regular, "ACCEPTED")

    eventually(lambda: len(orders()) == 3)

    assert [order["extended_hours"] for order in orders() if order["replaces"]] == [1]
    assert sorted(order["extended_hours"] for order in orders()) == [0, 1, 1]


def test_a_trail_that_no_price_can_have_is_the_brokers_to_reject(desk, paper, reaches):
    paper.quote("TRAILS", "100", "100")

    state = reaches(
        desk.created(create("TRAILS", side="SELL", TrailingStop={"quantity": "2", "trail_amount": "100"})), "REJECTED"
    )

    assert state["reason_code"] == "BROKER_REFUSED"
