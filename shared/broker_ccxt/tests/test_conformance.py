"""The published kit, run by the unmodified library against an exchange on loopback."""

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from tip_brokers import Broker, BrokerSettings, Capabilities, find
from tip_testing.broker_conformance import Conformance
from tip_testing.loopback_exchange import KEY, SECRET, LoopbackExchange

QUOTES = {"binance": "USDT", "kraken": "USD"}
SECONDS = {"connect_seconds": 1.0, "read_seconds": 1.5}


@dataclass
class ExchangeMarket:
    can: Capabilities
    broker: Broker
    stranger: Broker | None
    resting: str
    filling: str
    halving: str | None
    refusing: str | None
    silent: str | None
    at: Callable[[str], Broker] | None
    doubling: str | None = None
    late: str | None = None
    full_pages: Mapping[str, Callable[[int], bytes]] = field(default_factory=dict)


def connection_to(exchange: LoopbackExchange) -> Any:
    settings = BrokerSettings({"CCXT_ADDRESSES": f"{exchange.id}={exchange.url}"}, **SECONDS)
    return find(f"ccxt:{exchange.id}").connect("live", settings)


@pytest.mark.parametrize("name", QUOTES)
class TestExchange(Conformance):
    @pytest.fixture
    def market(self, name: str) -> Iterator[ExchangeMarket]:
        exchange = LoopbackExchange(name)
        connection = connection_to(exchange)
        ours = connection.account({"apiKey": KEY, "secret": SECRET})

        def at(address: str) -> Broker:
            """Its markets are known by then: what is tested is how it takes the answers to its own requests."""
            ours.account_id()
            connection._address, connection._here = address, threading.local()
            return ours

        symbols = {
            role: f"{coin}/{QUOTES[name]}"
            for role, coin in {
                "resting": "OPEN", "filling": "FILL", "halving": "HALF", "refusing": "REJECT", "silent": "SILENT",
            }.items()
        }  # fmt: skip
        stranger = connection.account({"apiKey": "stranger", "secret": SECRET})
        yield ExchangeMarket(find(f"ccxt:{name}").capabilities, ours, stranger, at=at, **symbols)
        exchange.stop()
