"""What an exchange trades is read seldom, by one thread, and never waited for."""

import threading
from typing import Any

import pytest

from tip_broker_ccxt import connection
from tip_brokers import BrokerSettings, NotSent, find
from tip_testing.broker_conformance import Hostile
from tip_testing.broker_conformance.bounds import ends
from tip_testing.loopback_exchange import KEY, SECRET, LoopbackExchange

OURS = {"apiKey": KEY, "secret": SECRET}


@pytest.fixture
def exchange() -> Any:
    made = LoopbackExchange("binance")
    yield made
    made.stop()


def connect(address: str) -> Any:
    settings = BrokerSettings({"CCXT_ADDRESSES": f"binance={address}"}, connect_seconds=1, read_seconds=2)
    return find("ccxt:binance").connect("live", settings)


def test_markets_that_cannot_be_read_again_are_used_as_they_were(
    exchange: LoopbackExchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    way = connect(exchange.url)
    assert way.account(OURS).positions() == []
    monkeypatch.setattr(connection, "MARKETS_SECONDS", 0.0)
    monkeypatch.setattr(exchange, "loses_markets", True)

    assert way.account(OURS).positions() == []


def test_while_one_thread_reads_markets_the_others_do_not_wait() -> None:
    accepted = threading.Event()

    def silent() -> Any:
        accepted.set()
        threading.Event().wait(1.5)
        yield b""

    with Hostile(silent) as hostile:
        way = connect(hostile.address)
        reading = threading.Thread(target=lambda: ends(way.account(OURS).positions))
        reading.start()
        assert accepted.wait(60)

        with pytest.raises(NotSent, match="markets_not_loaded"):
            way.account(OURS).positions()
        reading.join()
