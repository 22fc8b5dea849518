"""Orders beyond the specification's four kinds, from submit to the broker's storage and back."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from tip_testing.commands import create, replace
from tip_testing.waiting import eventually


@pytest.fixture(scope="module", autouse=True)
def processes(start: Callable[..., Any]) -> None:
    for kind in ("reconciler", "scheduler", "executor"):
        start(kind)


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


def test_a_trail_that_no_price_can_have_is_the_brokers_to_reject(desk, paper, reaches):
    paper.quote("TRAILS", "100", "100")

    state = reaches(
        desk.created(create("TRAILS", side="SELL", TrailingStop={"quantity": "2", "trail_amount": "100"})), "REJECTED"
    )

    assert state["reason_code"] == "BROKER_REFUSED"
