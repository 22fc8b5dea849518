"""The published kit, run by the adapter through a gateway against QuickFIX."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from tip_broker_alpaca import account
from tip_broker_alpaca.account import ACTIVITY_PAGE, PAGE
from tip_broker_fix.gateway import views
from tip_broker_fix.gateway.orders import Order
from tip_broker_fix.gateway.store import Execution
from tip_brokers import Broker, find
from tip_testing.broker_conformance import Conformance
from tip_testing.fix_acceptor import Acceptor, Gateway
from tip_testing.waiting import eventually

from .conftest import broker_at, new_account

_BEGIN = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)


def _orders(number: int) -> bytes:
    made = [_BEGIN + timedelta(seconds=PAGE * number + row) for row in range(PAGE)]
    orders = [Order("tip-1", "ACC1", "OPEN", "buy", "limit", "day", Decimal(1), at, at) for at in made]
    return json.dumps([views.order(order) for order in orders]).encode()


def _fills(number: int) -> bytes:
    positions = range(ACTIVITY_PAGE * number, ACTIVITY_PAGE * (number + 1))
    fills = [Execution(at, "B1", f"E{at}", "tip-1", "OPEN", "buy", Decimal(1), Decimal(2), _BEGIN) for at in positions]
    return json.dumps([views.activity(fill) for fill in fills]).encode()


def _at(address: str) -> Broker:
    return broker_at(address, seconds=1.0)


@dataclass
class FixMarket:
    broker: Broker
    stranger: Broker | None
    can = find("fix").capabilities
    resting: str = "OPEN"
    filling: str = "FILL"
    halving: str | None = "HALF"
    refusing: str | None = "REJECT"
    silent: str | None = "SILENT"
    doubling: str | None = "DOUBLE"
    late: str | None = "LATE"
    at: Callable[[str], Broker] | None = _at
    full_pages: Mapping[str, Callable[[int], bytes]] = field(
        default_factory=lambda: {"open_orders": _orders, "orders": _orders, "executions": _fills}
    )


@pytest.fixture(scope="module")
def gateway(acceptor: Acceptor, start_gateway: Callable[..., Gateway]) -> Gateway:
    made = start_gateway(acceptor.port)
    eventually(made.is_ready)
    return made


class TestFix(Conformance):
    @pytest.fixture
    def market(self, gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> FixMarket:
        monkeypatch.setattr(account, "MOST_ROWS", 4 * PAGE)  # a listing without end is soon too long
        ours = new_account()
        return FixMarket(broker_at(gateway.url, account=ours), broker_at(gateway.url, account=ours, secret="0" * 64))
