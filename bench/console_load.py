"""Orders for the console's benchmark: at a steady rate, or ten thousand at once; and a bare reader of their events."""

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

import httpx

from bench.harness import meanwhile
from tip_testing.commands import batch, limit

BATCH = 100
SETTLED_S = 900
ORDER = limit("AAPL", "10", "1.00")
"""Far below any price, so that it stays open."""
EVENTS_OF_AN_ORDER = 2
"""The command, and the broker's acceptance."""


@dataclass(frozen=True)
class Desk:
    """An account, and the key that trades on it."""

    base: str
    account: str
    key: str

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=f"{self.base}/v1/accounts/{self.account}", headers={"x-api-key": self.key})

    def fill(self, count: int) -> None:
        """So many open orders, all of them at the broker."""
        with self.client() as client:
            for _ in range(count // BATCH):
                client.post("/intents/batch", json=batch(*[ORDER] * BATCH), timeout=60).raise_for_status()
            deadline = time.monotonic() + SETTLED_S
            while client.get("/orders", params={"status": "PENDING", "limit": "1"}, timeout=60).json()["data"]:
                if time.monotonic() > deadline:
                    raise SystemExit("bench: the orders are not at the broker yet")
                time.sleep(1)

    def trading(self, events_a_second: float) -> AbstractContextManager[None]:
        """Orders come at that rate while the block lasts."""
        return meanwhile(partial(self._trade, events_a_second / EVENTS_OF_AN_ORDER))

    def _trade(self, orders_a_second: float, stop: threading.Event) -> None:
        with self.client() as client, ThreadPoolExecutor(16) as pool:
            due = time.monotonic()
            while not stop.wait(max(0.0, due - time.monotonic())):
                pool.submit(client.post, "/intents", json=ORDER, timeout=30)
                due += 1 / orders_a_second


@dataclass
class Reader:
    """A bare client of the event stream."""

    desk: Desk
    events: int = 0
    ages_ms: list[float] = field(default_factory=list)
    """Of commands: from being recorded to being read here."""

    @contextmanager
    def reading(self) -> Iterator[None]:
        opened, stop = threading.Event(), threading.Event()
        thread = threading.Thread(target=self._read, args=(opened, stop))
        thread.start()
        opened.wait(30)
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def _read(self, opened: threading.Event, stop: threading.Event) -> None:
        types = "EVENT_TYPE_INTENT_ACTION,EVENT_TYPE_BROKER_ORDER"
        query = {"subscriptions": types}
        with self.desk.client() as client, client.stream("GET", "/events", params=query, timeout=30) as answer:
            opened.set()
            for line in answer.iter_lines():
                if stop.is_set():
                    return
                if line.startswith("data:"):
                    self._received(json.loads(line[5:]))

    def _received(self, event: dict[str, Any]) -> None:
        self.events += "occurred_at" in event
        if "intent_action" in event:
            self.ages_ms.append(1000 * (time.time() - datetime.fromisoformat(event["occurred_at"]).timestamp()))
