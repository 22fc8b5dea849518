"""The paper broker's process, for all that speak Alpaca's API."""

import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from functools import partial
from pathlib import Path
from uuid import uuid4

import requests

from tip_brokers import Broker, BrokerDescription, BrokerSettings
from tip_brokers.simulator import Simulator
from tip_testing.broker_simulators.alpaca_pages import FULL_PAGES, short_listings
from tip_testing.processes import Running, running

SYMBOL = "CONFORM"
MOVED = "CONFORMMOVED"
_STARTED = re.compile(r"paper_broker_started address=\('[^']+', (\d+)\)")
_OPERATOR_TOKEN = "for-tests-only-0123456789"
_ENVIRONMENT = {
    "PAPER_BROKER_PORT": "0",
    "PAPER_BROKER_OPERATOR_TOKEN": _OPERATOR_TOKEN,
    "PAPER_BROKER_TICK_MILLIS": "0",
    "PAPER_BROKER_HANG_MILLIS": "6000",
    "PAPER_BROKER_SETTLE_MILLIS": "100",
    "PAPER_BROKER_CASH": "1000000000",
    "PAPER_BROKER_SEED": "tests",
}


@contextmanager
def simulator(broker: BrokerDescription) -> Iterator[Simulator]:
    with paper_broker() as address, short_listings():
        yield Simulator(
            settings=_settings(broker, address),
            secret={"key_id": uuid4().hex, "secret_key": "for-tests-only"},
            unknown_secret={"key_id": "INVALID", "secret_key": "for-tests-only"},
            resting="SIM.OPEN",
            filling=SYMBOL,
            halving="SIM.PARTIAL50",
            refusing="SIM.REJECT",
            silent="SIM.TIMEOUT_AFTER_ACCEPT",
            doubling="SIM.DUPLICATE_EVENT",
            late="SIM.LATE_FILL",
            at=lambda address: _connected(broker, address),
            full_pages=FULL_PAGES,
            move=partial(_move, address),
        )


@contextmanager
def paper_broker() -> Iterator[str]:
    """Its address. The market does not move there, and `SYMBOL` is bought at 10."""
    with tempfile.TemporaryDirectory(prefix="tip-paper-") as folder:
        environment = _ENVIRONMENT | {"PAPER_BROKER_DATA": str(Path(folder, "data"))}
        log = Path(folder, "paper.log")
        with running("-m", "paper_broker", environment=environment, log=log, ready=_port) as process:
            address = f"http://127.0.0.1:{_port(process)}"
            _quote(address, "9", "10")
            yield address


def _port(process: Running) -> str | None:
    found = _STARTED.search(process.output())
    return found and found[1]


def _move(address: str, price: Decimal) -> str:
    _quote(address, str(price), str(price), MOVED)
    return MOVED


def _quote(address: str, bid: str, ask: str, symbol: str = SYMBOL) -> None:
    headers = {"Authorization": f"Bearer {_OPERATOR_TOKEN}"}
    body = {"bid": bid, "ask": ask}
    requests.put(f"{address}/sim/quotes/{symbol}", json=body, headers=headers, timeout=60).raise_for_status()


def _settings(broker: BrokerDescription, address: str) -> Mapping[str, str]:
    return {setting.variable: address for setting in broker.settings}


def _connected(broker: BrokerDescription, address: str) -> Broker:
    settings = BrokerSettings(_settings(broker, address), connect_seconds=5, read_seconds=2)
    return broker.connect("paper", settings).account({"key_id": "k", "secret_key": "s"})
