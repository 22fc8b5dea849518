"""Clients: every command is sent until it is answered, and every answer is written down before the next command."""

import json
import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import urllib3

ENDED = ("intent_terminal", "intent_busy", "invalid")


@dataclass
class ClientLog:
    """What the platform has promised. Nobody kills the clients, so that what is written is not lost."""

    path: Path
    lines: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._file = self.path.open("a")

    def write(self, record: Mapping[str, Any]) -> None:
        with self._lock:
            self._file.write(json.dumps(record) + "\n")
            self._file.flush()
            self.lines += 1


@dataclass
class Client:
    """One thread of load: intents of all sorts, each with its own story."""

    base_url: str
    api_key: str
    accounts: tuple[UUID, ...]
    log: ClientLog
    dice: random.Random
    patience: float = 120.0
    retries: int = 0

    def __post_init__(self) -> None:
        # Not requests: on a small machine it would take more of it than the platform does.
        self._pool = urllib3.PoolManager(timeout=10, retries=False)

    def run(self, more: Callable[[], bool]) -> None:
        while more():
            self.dice.choices((self._market, self._cancelled, self._replaced), (70, 15, 15))[0]()

    def _market(self) -> None:
        self._create({"Market": {"quantity": "1"}}, "FAULT")

    def _cancelled(self) -> None:
        intent = self._create({"Market": {"quantity": "2"}}, "SIM.OPEN")
        self._pause()
        self._command(intent["account_id"], "CANCEL", {"ref_intent_id": intent["intent_id"]})

    def _replaced(self) -> None:
        intent = self._create({"Limit": {"quantity": "3", "limit_price": "1", "time_in_force": "GTC"}}, "SIM.OPEN")
        self._pause()
        spec = {"Limit": {"quantity": "4", "limit_price": "2", "time_in_force": "GTC"}}
        self._command(intent["account_id"], "REPLACE", {"ref_intent_id": intent["intent_id"], "spec": spec})
        self._pause()
        self._command(intent["account_id"], "CANCEL", {"ref_intent_id": intent["intent_id"]})

    def _pause(self) -> None:
        time.sleep(self.dice.choice((0.0, 0.0, 0.02, 0.2)))

    def _create(self, spec: dict[str, Any], symbol: str) -> dict[str, Any]:
        payload = {"symbol": symbol, "order_side": "BUY", "spec": spec}
        answer = self._command(str(self.dice.choice(self.accounts)), "CREATE", payload)
        assert answer is not None
        return answer

    def _command(self, account_id: str, kind: str, payload: dict[str, Any]) -> dict[str, Any] | None:
        """The action, or None if the platform definitely refused it."""
        key, body = uuid4().hex, {"command": {"type": kind, "payload": payload}}
        deadline = time.monotonic() + self.patience
        while time.monotonic() < deadline:
            try:
                answer = self._pool.request(
                    "POST",
                    f"{self.base_url}/v1/accounts/{account_id}/intents",
                    json=body,
                    headers={"x-api-key": self.api_key, "Idempotency-Key": key},
                )
            except urllib3.exceptions.HTTPError:
                self.retries += 1
                time.sleep(0.1)
                continue
            if answer.status in (200, 201):
                action: dict[str, Any] = answer.json()
                self.log.write({"id": action["id"], "intent_id": action["intent_id"], "type": kind})
                return action
            if answer.status in (409, 422) and answer.json().get("code") in ENDED and kind != "CREATE":
                return None
            if answer.status not in (409, 500, 502, 503, 504):
                raise AssertionError(f"{kind} was answered {answer.status}: {answer.data[:300]!r}")
            self.retries += 1
            time.sleep(0.1)
        raise AssertionError(f"{kind} was not answered within {self.patience} s")
