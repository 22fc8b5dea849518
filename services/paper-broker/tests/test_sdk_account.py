"""Money, positions, executions and keys, through the official SDK."""

from decimal import Decimal

import pytest
import requests
from alpaca.common.exceptions import APIError
from alpaca.trading.models import TradeActivity


def test_new_key_pair_has_its_own_account_with_cash(shared_broker, client):
    account, other = client.get_account(), shared_broker.client().get_account()

    assert (account.cash, account.buying_power, account.status.value) == ("100000", "100000", "ACTIVE")
    assert account.id != other.id


def test_same_key_with_another_secret_is_another_account(client):
    other = type(client)(client.url, client.key, "another secret")

    assert other.get_account().id != client.get_account().id


def test_trades_move_cash_and_position(client, symbol):
    client.order(symbol, qty="10")
    client.quote(symbol, "110", "112")
    client.order(symbol, side="sell", qty="4")

    account, position = client.get_account(), client.get_open_position(symbol)

    assert Decimal(account.cash) == Decimal(100_000) - 10 * 101 + 4 * 110
    assert (position.qty, position.avg_entry_price, position.side.value) == ("6", "101", "long")
    assert (position.current_price, position.unrealized_pl) == ("111", "60.00")
    assert Decimal(account.equity) == Decimal(account.cash) + 6 * 111


def test_closed_position_is_gone(client, symbol):
    client.order(symbol, qty="0.5")
    client.order(symbol, qty="0.5", side="sell")

    with pytest.raises(APIError) as gone:
        client.get_open_position(symbol)

    assert (gone.value.status_code, client.get_all_positions()) == (404, [])


def test_short_sale_is_a_negative_position_whose_proceeds_cannot_be_spent(client, symbol):
    client.order(symbol, side="sell", qty="10")

    account, position = client.get_account(), client.get_open_position(symbol)

    assert (position.qty, position.side.value, position.avg_entry_price) == ("-10", "short", "99")
    assert (account.cash, account.buying_power) == ("100990", "99010")


def test_order_beyond_the_buying_power_is_refused_and_open_orders_count(client, symbol):
    first = client.order(symbol, type="limit", limit_price="90", qty="1000")
    second = client.order(symbol, qty="100")

    assert (first.status_code, second.status_code) == (200, 403)
    assert second.json()["code"] == 40310000
    assert second.json()["message"] == "insufficient buying power"
    client.cancel_orders()
    assert client.order(symbol, qty="100").status_code == 200


def test_more_than_is_held_cannot_be_sold_and_open_orders_count(client, symbol):
    client.order(symbol, qty="10")
    client.order(symbol, side="sell", type="limit", limit_price="200", qty="8")

    answer = client.order(symbol, side="sell", qty="3")

    assert answer.status_code == 403
    assert answer.json()["message"] == "insufficient qty available for order (requested: 3, available: 2)"
    assert client.get_open_position(symbol).qty_available == "2"


def test_executions_are_account_activities_in_pages(client, symbol):
    for _ in range(5):
        client.order(symbol)

    first = client.get("/account/activities/FILL", {"page_size": 3, "direction": "asc"})
    rest = client.get("/account/activities", {"page_token": first[-1]["id"], "direction": "asc"})
    newest = client.get("/account/activities/FILL", {"page_size": 1})

    assert [TradeActivity(account_id=client.get_account().id, **item).qty for item in first] == [1, 1, 1]
    ids = [item["execution_id"] for item in first + rest]
    assert len(set(ids)) == 5
    assert newest[0]["execution_id"] == ids[-1]


def test_market_is_always_open_and_every_symbol_an_asset(client):
    assert client.get_clock().is_open
    assert client.get_asset("AAPL").fractionable
    assert client.raw("GET", "/v2/assets/no such").status_code == 404


def test_bad_keys_are_refused_as_alpaca_does(shared_broker):
    invalid = shared_broker.client("INVALID-key").raw("GET", "/v2/account")
    forbidden = shared_broker.client("FORBIDDEN-key").raw("GET", "/v2/account")
    missing = requests.get(shared_broker.url + "/v2/account", timeout=60)

    assert (invalid.status_code, forbidden.status_code, missing.status_code) == (401, 403, 401)
    assert invalid.json() == {"code": 40110000, "message": "request is not authorized"}


def test_basic_authorization_names_the_same_account(client):
    answer = requests.get(client.url + "/v2/account", auth=(client.key, "secret"), timeout=60)

    assert answer.json()["id"] == str(client.get_account().id)


def test_secret_reaches_neither_log_nor_disk(start):
    broker = start()
    client = broker.client("visible-key")
    client.headers["APCA-API-SECRET-KEY"] = "do-not-write-me"
    client.order("SIM.OPEN")
    client.raw("POST", "/v2/orders", data=b"do-not-write-me")
    broker.stop()

    written = broker.log.read_bytes() + b"".join(
        path.read_bytes() for path in broker.log.parent.parent.rglob("*") if path.is_file()
    )
    assert b"do-not-write-me" not in written
