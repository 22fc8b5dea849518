"""The exchange on loopback, in the dialect of the exchange under check."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tip_brokers import Broker, BrokerDescription, BrokerSettings
from tip_brokers.simulator import NoSimulator, Simulator
from tip_testing.loopback_exchange import KEY, SECRET, LoopbackExchange

QUOTES = {"binance": "USDT", "kraken": "USD", "okx": "USDT"}
_OURS = {"apiKey": KEY, "secret": SECRET, "password": "any"}
_READ_SECONDS = 1.5


@contextmanager
def simulator(broker: BrokerDescription) -> Iterator[Simulator]:
    name = broker.name.partition(":")[2]
    if name not in QUOTES:
        raise NoSimulator(f"the loopback exchange speaks {', '.join(QUOTES)}, not {name}")
    exchange = LoopbackExchange(name)
    try:
        yield _simulator(broker, exchange, QUOTES[name])
    finally:
        exchange.stop()


def _simulator(broker: BrokerDescription, exchange: LoopbackExchange, quote: str) -> Simulator:
    settings = {"CCXT_ADDRESSES": f"{exchange.id}={exchange.url}"}
    return Simulator(
        settings=settings,
        secret=_OURS,
        unknown_secret={**_OURS, "apiKey": "stranger"},
        resting=f"OPEN/{quote}",
        filling=f"FILL/{quote}",
        halving=f"HALF/{quote}",
        refusing=f"REJECT/{quote}",
        silent=f"SILENT/{quote}",
        at=lambda address: _moved(broker, BrokerSettings(settings, read_seconds=_READ_SECONDS), address),
        read_seconds=_READ_SECONDS,
    )


def _moved(broker: BrokerDescription, settings: BrokerSettings, address: str) -> Broker:
    """Its markets are known by then: what is checked is how it takes the answers to its own requests."""
    connection: Any = broker.connect("live", settings)
    account: Broker = connection.account(_OURS)
    account.account_id()
    connection._address, connection._here = address, threading.local()
    return account
