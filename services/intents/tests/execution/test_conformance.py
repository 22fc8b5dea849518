"""The published kit, run by the Alpaca adapter against the paper broker's process."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from tip_broker_alpaca import PAPER, account
from tip_broker_alpaca.account import ACTIVITY_PAGE, PAGE, Connection
from tip_brokers import Broker
from tip_testing.broker_conformance import Conformance

from .scripted import SHOWN

_BEGIN = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
_ORDER = json.dumps(SHOWN | {"submitted_at": "2026-01-05T12:00:00Z"})
_FILL = {"order_id": "b1", "qty": "1", "price": "2", "transaction_time": "2026-01-05T12:00:00Z"}


def _orders(number: int) -> bytes:
    last = SHOWN | {"submitted_at": (_BEGIN + timedelta(seconds=number)).isoformat()}
    return f"[{', '.join([_ORDER] * (PAGE - 1))}, {json.dumps(last)}]".encode()


def _fills(number: int) -> bytes:
    return json.dumps([_FILL | {"id": f"{number}::{row}"} for row in range(ACTIVITY_PAGE)]).encode()


def _at(address: str) -> Broker:
    return Connection(address, connect_seconds=5, read_seconds=2).account({"key_id": "k", "secret_key": "s"})


@dataclass
class PaperMarket:
    can = PAPER.capabilities
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
    full_pages: Mapping[str, Callable[[int], bytes]] = field(
        default_factory=lambda: {"open_orders": _orders, "orders": _orders, "executions": _fills}
    )


class TestAlpacaAtThePaperBroker(Conformance):
    @pytest.fixture
    def market(self, paper: Any, monkeypatch: pytest.MonkeyPatch) -> PaperMarket:
        monkeypatch.setattr(account, "MOST_ROWS", 4 * PAGE)  # a listing without end is soon too long
        paper.quote("CONFORM", "9", "10")
        connection = Connection(paper.url, connect_seconds=1, read_seconds=2.5)
        ours = connection.account({"key_id": uuid4().hex, "secret_key": "mine"})
        stranger = connection.account({"key_id": "INVALID", "secret_key": "none"})
        return PaperMarket(ours, stranger)
