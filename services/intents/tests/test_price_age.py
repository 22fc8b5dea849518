"""A price is of the moment at which it was made, whatever a broker says and whenever it comes, and above zero."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chassis.fields import rfc3339
from intents.execution import store
from tip_broker_alpaca.reading import read_position
from tip_brokers.protocol import Order, Quote
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
    assert new["quoted_at"] == new["traded_at"] == new["read_at"] == now
    assert (old["quoted_at"], old["traded_at"]) == (None, now - AN_HOUR)


def save_quote(desk: Desk, traded: datetime | None, quoted: datetime | None) -> None:
    """A trade at 10 and a quote of 11 by 13, of these moments."""
    desk.execute(
        "INSERT INTO intents.quote (account_id, symbol, bid, ask, last, traded_at, quoted_at, source, read_at) "
        "VALUES (:account_id, 'ABC', 11, 13, 10, :traded, :quoted, 'paper', now()) ON CONFLICT (account_id, symbol) "
        "DO UPDATE SET traded_at = excluded.traded_at, quoted_at = excluded.quoted_at",
        traded=traded,
        quoted=quoted,
    )


def test_a_fresh_quote_counts_however_old_the_last_trade_is(desk: Desk) -> None:
    limits(desk, max_notional=1_000_000)
    save_quote(desk, datetime.now(UTC) - AN_HOUR, datetime.now(UTC))

    answer = desk.submit(create("ABC"))

    assert answer.status_code == 201, answer.json
    assert answer.json["controls"]["facts"]["reference_price"]["value"] == "12"


def test_a_fresh_quote_counts_in_the_exposure_of_other_symbols(desk: Desk, order: Order) -> None:
    desk.execute("UPDATE controls.account_limits SET max_gross_exposure = 1000000 WHERE account_id = :account_id")
    save_quote(desk, datetime.now(UTC) - AN_HOUR, datetime.now(UTC))
    desk.execute(
        "INSERT INTO intents.quote (account_id, symbol, last, traded_at, read_at) "
        "VALUES (:account_id, 'OTHER', 1, now(), now())"
    )

    assert order and desk.submit(create("OTHER")).status_code == 201


_moments = st.none() | st.integers(0, 5).map(lambda minutes: datetime(2026, 7, 1, 12, minutes, tzinfo=UTC))


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(traded=_moments, quoted=_moments, reported=_moments)
def test_the_newest_price_counts_for_limits_and_positions_alike(
    desk: Desk, traded: datetime | None, quoted: datetime | None, reported: datetime | None
) -> None:
    save_quote(desk, traded, quoted)
    desk.execute(
        "INSERT INTO intents.position (account_id, symbol, quantity, last_price, price_source, price_at, updated_at) "
        "VALUES (:account_id, 'ABC', 2, 14, 'broker', :reported, now()) "
        "ON CONFLICT (account_id, symbol) DO UPDATE SET price_at = excluded.price_at",
        reported=reported,
    )
    prices = [("10", "quote", traded), ("12", "quote", quoted), ("14", "broker", reported)]
    known = [(price, source, moment) for price, source, moment in prices if moment is not None]
    expected = max(known, key=lambda known: known[2], default=(None, None, None))

    used = desk.execute("SELECT * FROM intents_api.reference_price WHERE account_id = :account_id").mappings().all()
    shown = held(desk)

    assert [(str(row["price"]), row["source"], row["priced_at"]) for row in used] == ([expected] if known else [])
    assert (shown["last_price"], shown["price_source"]) == expected[:2]
    assert shown["price_as_of"] == (expected[2] and rfc3339(expected[2]))
