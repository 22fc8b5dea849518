"""OKX on loopback, as one of the exchanges that nothing proves."""

from collections.abc import Iterator
from typing import Any

import pytest

from tip_brokers import BrokerSettings, find
from tip_testing.loopback_exchange import KEY, SECRET, LoopbackExchange


@pytest.fixture
def exchange() -> Iterator[LoopbackExchange]:
    made = LoopbackExchange("okx", accounts=2)
    yield made
    made.stop()


@pytest.fixture
def connection(exchange: LoopbackExchange) -> Any:
    settings = BrokerSettings({"CCXT_ADDRESSES": f"okx={exchange.url}"}, connect_seconds=1, read_seconds=5)
    return find("ccxt:okx").connect("live", settings)


@pytest.fixture
def secret() -> dict[str, str]:
    return {"apiKey": KEY, "secret": SECRET, "password": "any"}


@pytest.fixture
def account(connection: Any, secret: dict[str, str]) -> Any:
    return connection.account(secret)
