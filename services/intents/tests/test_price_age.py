"""A price is of the moment at which it was made, whatever a broker says and whenever it comes, and above zero."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from chassis.fields import rfc3339
from intents.brokers.alpaca.reading import read_position
from intents.brokers.protocol import Order, Quote
from intents.execution import store
from tip_testing.commands import create

from .broker_side import accept, fill
from .conftest import Desk
from .test_controls import limits

AN_HOUR = timedelta(hours=1)


def held(desk: Desk) -> Any:
    answer = desk.client.get(f"/v1/accounts/{desk.account_id}/positions", headers=desk.headers)
    [position] = answer.json["data"]
    return position


def codes(desk: Desk) -> list[str]:
    """Why a market order is refused."""
    return [reason["code"] for reason in desk.submit(create("ABC")).json.get("reasons", [])]


@pytest.fixture
def order(desk: Desk) -> Order:
    """At the broker, on an account whose limit needs a price from then on."""
    found = accept(desk, desk.created(create("ABC", "20"))["intent_id"], "b1")
    limits(desk, max_notional=1_000_000)
    return found


def test_a_fill_that_comes_late_is_no_new_price(desk: Desk, order: Order) -> None:
    made_at = datetime.now(UTC) - AN_HOUR

    fill(desk, order, "5", "25", "e1", made_at)

    assert (held(desk)["last_price"], held(desk)["price_as_of"]) == ("25", rfc3339(made_at))
    assert codes(desk) == ["REFERENCE_PRICE_UNKNOWN"]


def test_an_older_price_replaces_no_newer_one(desk: Desk, order: Order) -> None:
    fill(desk, order, "5", "26", "e1")
    fill(desk, replace(order, filled_quantity=Decimal(5)), "5", "27", "e2", datetime.now(UTC) - AN_HOUR)

    assert (held(desk)["quantity"], held(desk)["last_price"]) == ("10", "26")
    assert codes(desk) == []


def test_a_fill_of_the_future_is_of_now(desk: Desk, order: Order) -> None:
    fill(desk, order, "5", "26", "e1", datetime.now(UTC) + AN_HOUR)

    assert held(desk)["price_as_of"] <= rfc3339(datetime.now(UTC))


@pytest.mark.parametrize("price", ["0", "-1"])
def test_a_price_that_is_not_above_zero_is_none(desk: Desk, order: Order, price: str) -> None:
    fill(desk, order, "5", price, "e1")

    assert held(desk)["last_price"] is None
    assert codes(desk) == ["REFERENCE_PRICE_UNKNOWN"]
    assert read_position({"symbol": "ABC", "qty": "1", "current_price": price}).last_price is None


def test_a_quote_of_the_future_is_as_old_as_its_reading(desk: Desk) -> None:
    now = datetime.now(UTC)
    read = [
        Quote("ABC", Decimal(9), Decimal(11), Decimal(10), now + AN_HOUR, now + AN_HOUR),
        Quote("OLD", None, None, Decimal(10), None, now - AN_HOUR),
    ]

    with desk.deps.engine.begin() as tx:
        store.save_quotes(tx, desk.account_id, ["ABC", "OLD"], read, "paper", now)

    new, old = sorted(desk.rows("quote"), key=lambda row: str(row["symbol"]))
    assert new["quoted_at"] == new["traded_at"] < now + AN_HOUR
    assert (old["quoted_at"], old["traded_at"]) == (None, now - AN_HOUR)
