"""The gateway as its callers meet it: whose orders it shows, where they go, and what it takes."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import psycopg2
import pytest
import requests

from tip_broker_fix.gateway.credentials import secret_key
from tip_brokers import Refused, Unreachable
from tip_testing.broker_conformance import limit
from tip_testing.fix_acceptor import Acceptor, Gateway
from tip_testing.fix_acceptor.gateway import ACCOUNT_KEY, PASSWORD
from tip_testing.waiting import eventually

from .conftest import broker_at, new_account

GOOD = {
    "client_order_id": "tip-1", "symbol": "OPEN", "side": "buy", "type": "limit", "qty": "1", "limit_price": "5",
    "time_in_force": "day",
}  # fmt: skip


@pytest.fixture(scope="module")
def gateway(acceptor: Acceptor, start_gateway: Callable[..., Gateway]) -> Gateway:
    made = start_gateway(acceptor.port)
    eventually(made.is_ready)
    return made


def headers(account: str) -> dict[str, str]:
    return {"APCA-API-KEY-ID": account, "APCA-API-SECRET-KEY": secret_key(ACCOUNT_KEY, account)}


def test_a_direct_order_goes_to_the_destination_of_the_credential(gateway: Gateway, acceptor: Acceptor) -> None:
    broker = broker_at(gateway.url, account=new_account(), destination="XNAS")
    sent = {strategy: broker.create(replace(limit("OPEN"), route_strategy=strategy)) for strategy in ("AUTO", "DIRECT")}

    market = acceptor.market()
    found = {strategy: market.find(order.client_order_id) for strategy, order in sent.items()}
    assert {strategy: chain and chain.destination for strategy, chain in found.items()} == {
        "AUTO": "",
        "DIRECT": "XNAS",
    }


def test_a_direct_order_without_a_destination_is_not_sent(gateway: Gateway) -> None:
    broker, wanted = broker_at(gateway.url, account=new_account()), replace(limit("OPEN"), route_strategy="DIRECT")

    with pytest.raises(Refused) as refusal:
        broker.create(wanted)

    assert refusal.value.code == "NO_DESTINATION" and broker.find(wanted.client_order_id, "OPEN") is None


def test_an_account_sees_and_changes_no_order_of_another(gateway: Gateway) -> None:
    made = broker_at(gateway.url, account=new_account()).create(limit("OPEN"))
    other = broker_at(gateway.url, account=new_account())

    assert other.find(made.client_order_id, "OPEN") is None and list(other.open_orders()) == []
    with pytest.raises(Refused):
        other.cancel(made.broker_order_id)


@pytest.mark.parametrize(
    "change",
    [
        {"client_order_id": None}, {"client_order_id": "a\x01b"}, {"client_order_id": "x" * 65},
        {"symbol": "A\x0111=9"}, {"symbol": ""}, {"symbol": 7}, {"side": "hold"}, {"side": ["buy"]},
        {"type": "iceberg"}, {"qty": "0"}, {"qty": 1}, {"qty": "NaN"}, {"qty": "1e5"}, {"qty": "-1"},
        {"limit_price": "1\x01"}, {"time_in_force": {}}, {"destination": "X\x01Y"}, {"destination": 1},
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused(gateway: Gateway, change: dict[str, Any]) -> None:
    refused = requests.post(f"{gateway.url}/v2/orders", json=GOOD | change, headers=headers("ACC1"), timeout=60)

    assert refused.status_code == 400


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"[" * 10_000, b"\xff"])
def test_what_is_no_order_is_refused(gateway: Gateway, body: bytes) -> None:
    assert requests.post(f"{gateway.url}/v2/orders", data=body, headers=headers("ACC1"), timeout=60).status_code == 400


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v2/orders?after=never", 400), ("/v2/orders?after=2026-01-05", 400), ("/v2/orders?limit=-1", 200),
        ("/v2/orders/%01", 404), ("/v2/orders:by_client_order_id", 404), ("/nothing", 404),
        ("/v2/account/activities/FILL?page_token=x", 400),
    ],
)  # fmt: skip
def test_a_query_that_cannot_be_meant_does_no_harm(gateway: Gateway, path: str, status: int) -> None:
    assert requests.get(gateway.url + path, headers=headers("ACC1"), timeout=60).status_code == status


def test_no_secret_is_in_the_log_or_the_tables(gateway: Gateway, fix_database: str) -> None:
    broker_at(gateway.url, account="ACC1").create(limit("OPEN"))
    with psycopg2.connect(fix_database) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT string_agg(m::text, '') FROM fix.message m")
        kept = cursor.fetchone()[0] + gateway.process.output()

    assert "tip-" in kept
    assert not [word for word in (PASSWORD, ACCOUNT_KEY, secret_key(ACCOUNT_KEY, "ACC1")) if word in kept]


def test_a_gateway_that_the_broker_does_not_let_in_sends_nothing(
    acceptor: Acceptor, start_gateway: Callable[..., Gateway]
) -> None:
    stranger = start_gateway(acceptor.port, FIX_SENDER="STRANGER")

    with pytest.raises(Unreachable):
        broker_at(stranger.url, account="ACC1").create(limit("OPEN"))
