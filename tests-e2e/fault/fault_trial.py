"""What a scenario has in hand: an account of its own, the API, the event log, the broker's ledger, the line between."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import requests
from fault_contract import OPEN_AT_BROKER, client_order_id
from fault_proxy import BrokerProxy, Fault, Request, Rule
from fault_stack import Stack, direct

SECONDS = 90.0
"""How long anything that must happen may take, on a busy machine."""
POLL_SECONDS = 0.2


class Violation(AssertionError):
    """The platform did not do what the scenario expects."""


class SetUpFailed(Exception):
    """The scenario did not come to the point it is about, so that it says nothing."""


class StreamHolds:
    """Keeps back the broker's updates of chosen accounts, for whoever must find out by asking."""

    def __init__(self) -> None:
        self._held: dict[bytes, threading.Event] = {}

    def __call__(self, message: bytes) -> bytes:
        """The proxy's filter: waits while the message is about an order that is held."""
        for name, released in list(self._held.items()):
            if name in message:
                released.wait(SECONDS)
        return message

    @contextmanager
    def holding(self, name: str) -> Iterator[None]:
        released = self._held.setdefault(name.encode(), threading.Event())
        try:
            yield
        finally:
            released.set()
            self._held.pop(name.encode(), None)


@dataclass
class Trial:
    on: Stack
    proxy: BrokerProxy
    streams: StreamHolds
    account_id: UUID
    notes: list[str] = field(default_factory=list)
    """What was seen, for the reader of a failure."""

    @property
    def key_id(self) -> str:
        """Of an account that has no credential: the pair that the platform makes for it."""
        return str(self.account_id)

    @property
    def symbol(self) -> str:
        """A symbol that no other scenario trades."""
        return f"T{self.account_id.hex[:12]}".upper()

    def note(self, line: str) -> None:
        self.notes.append(line)

    # ---- commands

    def submit(self, kind: str, payload: dict[str, Any]) -> requests.Response:
        """Sent until it is answered with more than 'try again', under one idempotency key."""
        body = {"command": {"type": kind, "payload": payload}}
        headers = {"x-api-key": self.on.api_key, "Idempotency-Key": uuid4().hex}
        return self._until_answered("POST", f"/v1/accounts/{self.account_id}/intents", body, headers)

    def _until_answered(self, method: str, path: str, body: object = None, headers: Any = None) -> requests.Response:
        deadline = time.monotonic() + SECONDS
        while True:
            answered = self.call(method, path, body, headers)
            if answered.status_code not in (429, 502, 503, 504) or time.monotonic() > deadline:
                return answered
            time.sleep(0.2)

    def call(
        self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None
    ) -> requests.Response:
        """As the organization's API key, unless other headers are given."""
        shown = headers or {"x-api-key": self.on.api_key}
        return direct().request(method, self.on.base_url + path, json=body, headers=shown, timeout=30)

    def create(self, symbol: str, quantity: str, *, limit: str | None = None, side: str = "BUY") -> str:
        """The intent's id."""
        payload = {"symbol": symbol, "order_side": side, "spec": spec(quantity, limit)}
        return str(self._accepted("CREATE", payload)["intent_id"])

    def replace(self, intent_id: str, quantity: str, *, limit: str | None = None) -> None:
        self._accepted("REPLACE", {"ref_intent_id": intent_id, "spec": spec(quantity, limit)})

    def cancel(self, intent_id: str) -> None:
        self._accepted("CANCEL", {"ref_intent_id": intent_id})

    def _accepted(self, kind: str, payload: dict[str, Any]) -> dict[str, Any]:
        answered = self.submit(kind, payload)
        if answered.status_code not in (200, 201):
            raise Violation(f"{kind} was answered {answered.status_code}: {answered.text[:300]}")
        action: dict[str, Any] = answered.json()
        return action

    def halt(self) -> None:
        """Returns when HALTED is answered."""
        self._switch("HALTED")

    def disable_symbol(self, symbol: str) -> None:
        """Returns when the control is answered."""
        path = f"/v1/controls/accounts/{self.account_id}/symbols/{symbol}"
        self.call("PUT", path, {"manually_disabled": True}).raise_for_status()

    def lift_halt(self) -> None:
        self._switch("ACTIVE")

    def _switch(self, trading_state: str) -> None:
        path = f"/v1/controls/accounts/{self.account_id}"
        self.call("PUT", path, {"trading_state": trading_state}).raise_for_status()

    # ---- what the platform says

    def state(self, intent_id: str) -> dict[str, Any]:
        answered = self._until_answered("GET", f"/v1/accounts/{self.account_id}/intents/{intent_id}")
        answered.raise_for_status()
        state: dict[str, Any] = answered.json()["state"]
        return state

    def status(self, intent_id: str) -> str:
        return str(self.state(intent_id)["status"])

    def filled(self, intent_id: str) -> Decimal:
        return Decimal(self.state(intent_id)["filled_quantity"])

    def actions(self, intent_id: str) -> list[dict[str, Any]]:
        path = f"/v1/accounts/{self.account_id}/intents/{intent_id}/actions?limit=500"
        answered = self._until_answered("GET", path)
        answered.raise_for_status()
        actions: list[dict[str, Any]] = answered.json()["data"]
        return actions

    def events(self, intent_id: str, kind: str = "BROKER_ORDER") -> list[dict[str, Any]]:
        """The payloads of the intent's events so far, in the order of the log, as a subscriber gets them."""
        url = f"{self.on.events_url}/v1/accounts/{self.account_id}/events?resume_after_sequence=0"
        with direct().get(url, headers={"x-api-key": self.on.api_key}, stream=True, timeout=30) as answered:
            answered.raise_for_status()
            found = [event.get(kind.lower()) for event in _replayed(answered)]
        return [payload for payload in found if payload and payload["intent_id"] == intent_id]

    def reason_codes(self, intent_id: str) -> list[str]:
        return [event["reason_code"] for event in self.events(intent_id) if event.get("reason_code")]

    def traded(self, intent_id: str) -> Decimal:
        return sum((Decimal(event["quantity"]) for event in self.events(intent_id, "BROKER_TRADE")), Decimal(0))

    # ---- what the broker has

    def orders(self, intent_id: str) -> list[dict[str, Any]]:
        """The orders of the intent at the broker, in any account there, oldest first."""
        names = {client_order_id(action["id"]) for action in self.actions(intent_id)}
        answered = self.on.at_broker("GET", "/ledger")
        answered.raise_for_status()
        rows = [json.loads(line) for line in answered.text.splitlines()]
        return [row for row in rows if row["client_order_id"] in names]

    def filled_at_broker(self, intent_id: str) -> Decimal:
        return sum((Decimal(order["filled_qty"]) for order in self.orders(intent_id)), Decimal(0))

    def open_orders(self, intent_id: str) -> list[dict[str, Any]]:
        return [order for order in self.orders(intent_id) if order["status"] in OPEN_AT_BROKER]

    def quote(self, symbol: str, *, ask: str, size: str | None = None) -> None:
        body = {"bid": "1", "ask": ask, "bid_size": None, "ask_size": size}
        given = {name: value for name, value in body.items() if value is not None}
        self.on.at_broker("PUT", f"/quotes/{symbol}", json=given).raise_for_status()

    # ---- the line between

    def mine(self, request: Request) -> bool:
        """Whether it was sent under the pair of an account without a credential."""
        return request.key_id == self.key_id

    def on_line(self, method: str, fault: Fault, *, count: int | None = None, key_id: str | None = None) -> Rule:
        """Let the fault act on this account's requests."""
        wanted = key_id or self.key_id
        return self.proxy.on(method, fault, when=lambda request: request.key_id == wanted, count=count)

    def posts(self, key_id: str) -> list[Request]:
        """New orders that came under this key, whether the broker got them or not."""
        requests = list(self.proxy.requests)
        return [request for request in requests if request.method == "POST" and request.key_id == key_id]

    # ---- facts

    def wait(self, fact: Callable[[], Any], what: str, seconds: float = SECONDS) -> Any:
        """The first true answer; a Violation if there is none."""
        deadline = time.monotonic() + seconds
        while True:
            if found := fact():
                return found
            if time.monotonic() > deadline:
                raise Violation(f"not within {seconds:g} s: {what}")
            time.sleep(POLL_SECONDS)

    def wait_for_status(self, intent_id: str, *wanted: str, seconds: float = SECONDS) -> str:
        def reached() -> str | None:
            status = self.status(intent_id)
            return status if status in wanted else None

        try:
            return str(self.wait(reached, f"status {' or '.join(wanted)}", seconds))
        except Violation as violation:
            raise Violation(f"{violation}; it is {self.state(intent_id)}") from None

    def expect(self, holds: object, otherwise: str) -> None:
        if not holds:
            raise Violation(otherwise)

    def expect_fills_agree(self, intent_id: str) -> None:
        """In the end: the intent, its trades and the broker's ledger say the same."""
        try:
            self.wait(lambda: self.filled(intent_id) == self.filled_at_broker(intent_id), "the same fills")
            self.wait(lambda: self.filled(intent_id) == self.traded(intent_id), "the same fills")
        except Violation:
            here, trades, there = self.filled(intent_id), self.traded(intent_id), self.filled_at_broker(intent_id)
            raise Violation(f"filled {there} at the broker, {here} in the intent, {trades} in its trades") from None
        self.note(f"filled {self.filled(intent_id)} here and at the broker")


def spec(quantity: str, limit: str | None) -> dict[str, Any]:
    if limit is None:
        return {"Market": {"quantity": quantity, "time_in_force": "GTC"}}
    return {"Limit": {"quantity": quantity, "limit_price": limit, "time_in_force": "GTC"}}


def _replayed(answered: requests.Response) -> Iterator[dict[str, Any]]:
    """What an account's stream replays, until it says that this was all."""
    kind = ""
    for line in answered.iter_lines(decode_unicode=True):
        name, _, value = line.partition(": ")
        if name == "event":
            kind = value
        if kind in ("replay_complete", "end"):
            return
        if name == "data" and kind != "heartbeat":
            yield json.loads(value)
