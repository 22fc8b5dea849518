"""What an account holds is answered as the rest of the API writes it."""

import pytest

from tip_testing.commands import create

from .broker_side import accept, fill
from .conftest import Desk


def held(desk: Desk, **columns: str) -> None:
    """A position of -4.50 ABC that the broker reported at 12:00, at a price of 22."""
    row = {
        "quantity": "-4.50", "average_entry_price": "20", "last_price": "22", "price_at": "2026-01-05 12:00:00+00",
        "price_source": "broker", "market_value": "-1", "updated_at": "2026-01-05 12:00:00+00",
        "reconciled_at": "2026-01-05 13:00:00+01",
    } | columns  # fmt: skip
    names, values = ", ".join(row), ", ".join(f"'{value}'" for value in row.values())
    desk.execute(f"INSERT INTO intents.position (account_id, symbol, {names}) VALUES (:account_id, 'ABC', {values})")


def positions(desk: Desk) -> list[dict[str, str]]:
    answer = desk.client.get(f"/v1/accounts/{desk.account_id}/positions", headers=desk.headers)
    found: list[dict[str, str]] = answer.json["data"]
    return found


def test_a_short_position_is_negative_and_its_moments_are_in_utc(desk: Desk) -> None:
    held(desk)

    noon = "2026-01-05T12:00:00.000000Z"
    assert positions(desk) == [
        {
            "symbol": "ABC", "quantity": "-4.50", "average_entry_price": "20", "last_price": "22",
            "market_value": "-99.00", "unrealized_profit": "-9.00", "updated_at": noon, "reconciled_at": noon,
            "as_of": noon, "source": "broker", "price_as_of": noon, "price_source": "broker",
        }
    ]  # fmt: skip


def test_what_a_position_is_worth_follows_from_the_newest_price(desk: Desk) -> None:
    held(desk)
    desk.execute(
        "INSERT INTO intents.quote (account_id, symbol, last, traded_at, source, read_at) "
        "VALUES (:account_id, 'ABC', 30, '2026-01-05 12:05:00+00', 'paper', '2026-01-05 12:05:01+00')"
    )

    [shown] = positions(desk)
    assert (shown["last_price"], shown["market_value"], shown["unrealized_profit"]) == ("30", "-135.00", "-45.00")
    assert (shown["price_source"], shown["price_as_of"]) == ("quote", "2026-01-05T12:05:00.000000Z")
    assert shown["as_of"] == "2026-01-05T12:00:00.000000Z", "the quantity is not newer for it"


def test_a_fill_makes_what_the_broker_reported_before_it_unknown(desk: Desk) -> None:
    order = accept(desk, desk.created(create("ABC", "20"))["intent_id"], "b1")
    held(desk)

    fill(desk, order, "5", "25", "e1")

    [shown] = positions(desk)
    assert (shown["quantity"], shown["source"], shown["last_price"], shown["price_source"]) == (
        "0.50", "fill", "25", "fill",
    )  # fmt: skip
    assert (shown["market_value"], shown["average_entry_price"], shown["unrealized_profit"]) == ("12.50", None, None)


def test_a_balance_that_the_broker_has_not_given_yet_is_null(desk: Desk) -> None:
    answer = desk.client.get(f"/v1/accounts/{desk.account_id}/balances", headers=desk.headers)

    nothing = dict.fromkeys(("currency", "cash", "equity", "buying_power", "updated_at", "as_of", "source"))
    assert answer.json == {"account_id": str(desk.account_id), **nothing}


def test_an_account_nobody_traded_on_has_no_positions_and_no_balance_yet(new_desk):
    desk = new_desk()
    path = f"/v1/accounts/{desk.account_id}"

    assert desk.client.get(f"{path}/positions", headers=desk.headers).json["data"] == []
    assert desk.client.get(f"{path}/balances", headers=desk.headers).json["cash"] is None


@pytest.mark.parametrize("what", ["positions", "balances", "quotes/ABC"])
def test_holdings_of_another_organization_are_not_found(what, desk, new_desk):
    stranger = new_desk()

    answer = stranger.client.get(f"/v1/accounts/{desk.account_id}/{what}", headers=stranger.headers)

    assert answer.status_code == 404
