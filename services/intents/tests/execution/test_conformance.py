"""The published kit, run by the Alpaca adapter against the paper broker's process."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import pytest

from intents.brokers import Broker
from intents.brokers.alpaca import Connection
from intents.brokers.alpaca.account import ACTIVITY_PAGE, PAGE
from intents.brokers.conformance import Conformance

from .scripted import SHOWN

_ORDERS = json.dumps([{**SHOWN, "submitted_at": "2026-01-05T12:00:00Z"}] * PAGE).encode()
_FILL = {"id": "1::2", "order_id": "b1", "qty": "1", "price": "2", "transaction_time": "2026-01-05T12:00:00Z"}
_FILLS = json.dumps([_FILL] * ACTIVITY_PAGE).encode()


def _at(address: str) -> Broker:
    return Connection(address, connect_seconds=5, read_seconds=2).account({"key_id": "k", "secret_key": "s"})


@dataclass
class PaperMarket:
    broker: Broker
    stranger: Broker | None
    resting: str = "SIM.OPEN"
    filling: str = "CONFORM"
    halving: str | None = "SIM.PARTIAL50"
    refusing: str | None = "SIM.REJECT"
    silent: str | None = "SIM.TIMEOUT_AFTER_ACCEPT"
    doubling: str | None = "SIM.DUPLICATE_EVENT"
    late: str | None = "SIM.LATE_FILL"
    at: Callable[[str], Broker] | None = _at
    full_pages: Mapping[str, bytes] = field(
        default_factory=lambda: {"open_orders": _ORDERS, "orders": _ORDERS, "executions": _FILLS}
    )


class TestAlpacaAtThePaperBroker(Conformance):
    @pytest.fixture
    def market(self, paper: Any) -> PaperMarket:
        paper.quote("CONFORM", "9", "10")
        connection = Connection(paper.url, connect_seconds=1, read_seconds=2.5)
        account = connection.account({"key_id": uuid4().hex, "secret_key": "mine"})
        stranger = connection.account({"key_id": "INVALID", "secret_key": "none"})
        return PaperMarket(account, stranger)
