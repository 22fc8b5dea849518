"""Builds the record of an intent step by step, for tests of the checker."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from fault_check_log import _check_continuity
from fault_check_orders import _check_story
from fault_contract import client_order_id
from fault_findings import Findings
from fault_records import Entry, Order, Story

START = datetime(2026, 1, 1, tzinfo=UTC)
ACCOUNT, INTENT = str(UUID(int=1)), str(UUID(int=2))


def evidence(**more: Any) -> Any:
    known = {"duplicates_accepted": False, "moved": set(), "deleted": {}, "controls": [], "left": []}
    return SimpleNamespace(**{**known, **more})


class StoryBuilder:
    """An intent, step by step; BUY of so many at 10."""

    def __init__(self, quantity: str = "6") -> None:
        self.entries: list[Entry] = []
        self.orders: list[tuple[dict[str, Any], list[Order]]] = []
        self.status, self.filled, self.quantity = None, Decimal(0), Decimal(quantity)
        self.reason: str | None = None
        self.act("CREATE", quantity, "PENDING")

    def act(self, kind: str, quantity: str | None, status: str) -> None:
        number = len(self.entries) + 1
        spec = quantity and {"Limit": {"quantity": quantity, "limit_price": "10"}}
        action = {"id": str(UUID(int=100 + number)), "command": {"type": kind}, "spec": spec, "symbol": "X"}
        action |= {"order_side": "BUY", "actor": {"type": "api_key"}, "intent_id": INTENT, "status": status}
        self._enter("INTENT_ACTION", action, status)
        if spec:
            self.orders.append((action, []))

    def event(self, status: str, *, reason: str | None = None, filled: str | None = None) -> None:
        self.filled, self.reason = Decimal(filled or self.filled), reason
        payload = {"status": status, "quantity": str(self.quantity), "filled_quantity": str(self.filled)}
        self._enter("BROKER_ORDER", payload | {"reason_code": reason, "outcome": None}, status)

    def order(self, status: str, qty: str, *fills: str, account: str = "b", born: float = 1.0) -> Order:
        """At the broker, for the last CREATE or REPLACE; each fill is logged as a trade."""
        action, orders = self.orders[-1]
        number = sum(len(known) for _action, known in self.orders)
        executions = [{"id": f"e{number}-{n}", "qty": fill, "price": "10"} for n, fill in enumerate(fills)]
        row = {"client_order_id": client_order_id(action["id"]), "order_id": f"o{number}", "account_id": account}
        row |= {"status": status, "qty": qty, "executions": executions, "symbol": "X", "side": "buy", "kind": "limit"}
        row |= {"limit_price": "10", "stop_price": None, "sequence": number, "posts": 1}
        row |= {"created_at": (START + timedelta(seconds=born)).isoformat()}
        orders.append(Order(row))
        for execution in executions:
            trade = {"broker_order_id": row["order_id"], "execution_id": execution["id"], "price": "10"}
            self._enter("BROKER_TRADE", trade | {"quantity": execution["qty"]}, None)
        return orders[-1]

    def _enter(self, kind: str, payload: dict[str, Any], status: str | None) -> None:
        number = len(self.entries) + 1
        at = START + timedelta(seconds=number)
        before = self.status if status else None
        self.entries.append(Entry(number, str(number), kind, payload, at, at, before, status))
        self.status = status or self.status

    def findings(self, **known: Any) -> set[str]:
        row = {"status": self.status, "filled_quantity": self.filled, "quantity": self.quantity, "outcome": None}
        row |= {"reason_code": self.reason, "average_fill_price": Decimal(10) if self.filled else None}
        row |= {"symbol": "X", "order_side": "BUY"}
        story = Story(INTENT, ACCOUNT, row, self.entries, self.orders)
        found = Findings()
        _check_story(evidence(**known), story, found)
        _check_continuity(story, found)
        return {finding.rule for finding in found.found}


def filled() -> StoryBuilder:
    builder = StoryBuilder()
    builder.event("ACCEPTED")
    builder.order("filled", "6", "2", "4")
    builder.event("FILLED", filled="6")
    return builder
