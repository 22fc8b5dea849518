"""The real process on a free port, spoken to by the official SDK."""

import asyncio
import itertools
import json
import re
import signal
import threading
import uuid
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from tip_testing.processes import Running
from tip_testing.processes import start as start_process
from tip_testing.waiting import eventually

with warnings.catch_warnings():
    # alpaca-py 0.44 still imports the legacy client of websockets, which says so on import.
    warnings.filterwarnings("ignore", message="websockets.legacy is deprecated", category=DeprecationWarning)
    warnings.filterwarnings("ignore", message="websockets.client.* is deprecated", category=DeprecationWarning)
    from alpaca.trading.client import TradingClient
    from alpaca.trading.stream import TradingStream

STARTED = re.compile(r"paper_broker_started address=\('[^']+', (\d+)\)")
TOKEN = "for-tests-only-0123456789"
OPERATOR = {"Authorization": f"Bearer {TOKEN}"}
QUICK = {
    "PAPER_BROKER_OPERATOR_TOKEN": TOKEN,
    "PAPER_BROKER_PORT": "0",
    "PAPER_BROKER_TICK_MILLIS": "0",
    "PAPER_BROKER_HANG_MILLIS": "300",
    "PAPER_BROKER_SLOW_MILLIS": "300",
    "PAPER_BROKER_SETTLE_MILLIS": "100",
}


class Client(TradingClient):
    """The SDK's client, unchanged, beside the raw requests a test needs to see statuses and to move the market."""

    def __init__(self, url: str, key: str, secret: str = "secret") -> None:
        super().__init__(key, secret, url_override=url)
        self.url, self.key = url, key
        self.headers = {"APCA-API-KEY-ID": key, "APCA-API-SECRET-KEY": secret}

    def raw(self, method: str, path: str, **arguments: Any) -> requests.Response:
        return requests.request(method, self.url + path, headers=self.headers | OPERATOR, timeout=60, **arguments)

    def order(self, symbol: str, **fields: Any) -> requests.Response:
        wanted = {"side": "buy", "type": "market", "time_in_force": "day", "qty": "1", "symbol": symbol, **fields}
        return self.raw("POST", "/v2/orders", json={name: value for name, value in wanted.items() if value is not None})

    def by_client_id(self, client_order_id: str) -> dict[str, Any]:
        answer = self.raw("GET", "/v2/orders:by_client_order_id", params={"client_order_id": client_order_id})
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def quote(self, symbol: str, bid: str, ask: str, **sizes: str) -> None:
        self.raw("PUT", f"/sim/quotes/{symbol}", json={"bid": bid, "ask": ask, **sizes}).raise_for_status()


class Listener:
    """The SDK's stream, unchanged, collecting its messages in a thread."""

    def __init__(self, url: str, key: str) -> None:
        self.raw: list[dict[str, Any]] = []
        self._stream = TradingStream(key, "secret", url_override=url.replace("http", "ws") + "/stream", raw_data=True)
        self._stream.subscribe_trade_updates(self._receive)
        self._thread = threading.Thread(target=self._stream.run, daemon=True)
        self._thread.start()

    async def _receive(self, message: dict[str, Any]) -> None:
        self.raw.append(message["data"])

    def events(self) -> list[str]:
        return [message["event"] for message in self.raw]

    def wait(self, *events: str) -> list[dict[str, Any]]:
        eventually(lambda: self.events() == list(events) or len(self.events()) > len(events))
        assert self.events() == list(events)
        return self.raw

    def close(self) -> None:
        loop = self._stream._loop
        asyncio.run_coroutine_threadsafe(self._stream.stop_ws(), loop).result()
        # The SDK checks its stop flag only every five seconds unless a message or a close wakes it.
        asyncio.run_coroutine_threadsafe(self._stream.close(), loop).result()
        self._thread.join(5)


class Broker:
    """One paper broker process."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.log = folder / "broker.log"
        folder.mkdir(parents=True, exist_ok=True)
        environment = {**QUICK, "PAPER_BROKER_DATA": str(folder / "data"), **settings}
        self.process = start_process("-m", "paper_broker", environment=environment, log=self.log, ready=self._port)
        self.url = f"http://127.0.0.1:{self._port(self.process)}"

    def _port(self, process: Running) -> str | None:
        started = STARTED.search(process.output())
        return started and started.group(1)

    def client(self, key: str | None = None) -> Client:
        return Client(self.url, key or f"key-{uuid.uuid4()}")

    def ledger(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.sim("GET", "/ledger").text.splitlines()]

    def sim(self, method: str, path: str, **arguments: Any) -> requests.Response:
        """As its operator."""
        return requests.request(method, f"{self.url}/sim{path}", headers=OPERATOR, timeout=60, **arguments)

    def faults(self, **settings: Any) -> requests.Response:
        return self.sim("PUT", "/faults", json=settings)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        return self.process.end(how, 30)


@pytest.fixture(scope="session")
def shared_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """One broker for all tests that do not restart it: each has its own account and its own symbols."""
    broker = Broker(tmp_path_factory.mktemp("broker"), PAPER_BROKER_SEED="tests")
    yield broker
    assert broker.stop() == 0
    assert "Traceback" not in broker.log.read_text()


@pytest.fixture
def client(shared_broker: Broker) -> Client:
    return shared_broker.client()


@pytest.fixture
def symbol(client: Client) -> str:
    """A symbol nobody else trades, quoted 99 at 101 without limit."""
    name = "T" + uuid.uuid4().hex[:8].upper()
    client.quote(name, "99", "101")
    return name


@pytest.fixture
def listen(shared_broker: Broker) -> Iterator[Callable[[Client], Listener]]:
    listeners: list[Listener] = []

    def start(client: Client) -> Listener:
        listener = Listener(client.url, client.key)
        listeners.append(listener)
        eventually(lambda: listener._stream._running)
        # Running means that `listen` was sent. Whatever had reached the broker's loop when it answered one request is
        # done when it answers the next.
        for _ in range(3):
            client.get_clock()
        return listener

    yield start
    for listener in listeners:
        listener.close()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Broker]]:
    """Start brokers of one's own: `start("name", SETTING="value")`; the same name finds the same data again."""
    brokers: list[Broker] = []
    numbers = itertools.count()

    def run(name: str = "own", **settings: str) -> Broker:
        data = {"PAPER_BROKER_DATA": str(tmp_path / name)}
        broker = Broker(tmp_path / f"run-{next(numbers)}", **{**data, **settings})
        brokers.append(broker)
        return broker

    yield run
    for broker in brokers:
        broker.stop(signal.SIGKILL)
