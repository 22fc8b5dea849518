"""What an account holds is answered as the rest of the API writes it."""

import pytest

from .conftest import Desk


def test_a_short_position_is_negative_and_its_moments_are_in_utc(desk: Desk) -> None:
    desk.execute(
        "INSERT INTO intents.position (account_id, symbol, quantity, market_value, updated_at, reconciled_at) "
        "VALUES (:account_id, 'ABC', -4.50, -99, '2026-01-05 13:00:00+01', '2026-01-05 12:00:00.25+00')"
    )

    answer = desk.client.get(f"/v1/accounts/{desk.account_id}/positions", headers=desk.headers)

    assert answer.json == {
        "account_id": str(desk.account_id),
        "data": [
            {
                "symbol": "ABC", "quantity": "-4.50", "average_entry_price": None, "last_price": None,
                "market_value": "-99", "unrealized_profit": None,
                "updated_at": "2026-01-05T12:00:00.000000Z", "reconciled_at": "2026-01-05T12:00:00.250000Z",
            }
        ],
    }  # fmt: skip


def test_a_balance_that_the_broker_has_not_given_yet_is_null(desk: Desk) -> None:
    answer = desk.client.get(f"/v1/accounts/{desk.account_id}/balances", headers=desk.headers)

    nothing = dict.fromkeys(("currency", "cash", "equity", "buying_power", "updated_at"))
    assert answer.json == {"account_id": str(desk.account_id), **nothing}


def test_an_account_nobody_traded_on_has_no_positions_and_no_balance_yet(new_desk):
    desk = new_desk()
    path = f"/v1/accounts/{desk.account_id}"

    assert desk.client.get(f"{path}/positions", headers=desk.headers).json["data"] == []
    assert desk.client.get(f"{path}/balances", headers=desk.headers).json["cash"] is None


@pytest.mark.parametrize("what", ["positions", "balances"])
def test_holdings_of_another_organization_are_not_found(what, desk, new_desk):
    stranger = new_desk()

    answer = stranger.client.get(f"/v1/accounts/{desk.account_id}/{what}", headers=stranger.headers)

    assert answer.status_code == 404
