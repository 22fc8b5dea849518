"""The platform's and the broker's records of an account: log entries, intents with their orders."""

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

from fault_contract import OPEN_AT_BROKER, TERMINAL

Json = dict[str, Any]


@dataclass
class Order:
    """One order in the broker's storage."""

    row: Json

    def __getattr__(self, name: str) -> Any:
        return self.row[name]

    @property
    def filled(self) -> Decimal:
        return sum((Decimal(execution["qty"]) for execution in self.row["executions"]), Decimal(0))

    @property
    def remaining(self) -> Decimal:
        return Decimal(self.row["qty"]) - self.filled

    @property
    def is_open(self) -> bool:
        return self.row["status"] in OPEN_AT_BROKER

    def __str__(self) -> str:
        name = f"order {self.row['order_id'][:8]} of {self.row['client_order_id'][4:12]}"
        return f"{name} {self.row['status']} {self.filled:f} of {self.row['qty']}"


@dataclass
class Entry:
    """One line of an account's log."""

    sequence: int
    event_id: str
    type: str
    payload: Json
    occurred_at: datetime
    written_at: datetime | None
    from_status: str | None
    to_status: str | None

    def __str__(self) -> str:
        payload = self.payload
        if self.type == "INTENT_ACTION":
            terms = next(iter((payload.get("spec") or {"": {}}).values()))
            what = f"{payload['command']['type']} {terms.get('quantity', '')} by {payload['actor']['type']}"
        elif self.type == "BROKER_ORDER":
            what = f"filled {payload['filled_quantity']} of {payload['quantity']}"
            what += "".join(f" {name}={payload[name]}" for name in ("reason_code", "outcome") if payload.get(name))
        else:
            order = str(payload.get("broker_order_id"))[:8]
            what = f"{payload.get('quantity')} at {payload.get('price')} order {order}"
        moved = f" {self.from_status}->{self.to_status}" if self.to_status else ""
        return f"{self.sequence}:{self.type}{moved} {what} @{self.occurred_at:%M:%S.%f}"[:160]


@dataclass
class Story:
    """An intent: its row, its part of the log, and its orders at the broker."""

    id: str
    account: str
    row: Json
    entries: list[Entry] = field(default_factory=list)
    orders: list[tuple[Json, list[Order]]] = field(default_factory=list)
    """For each CREATE and REPLACE, in their order: the action, and what the broker has under its client order id."""

    @property
    def actions(self) -> list[Entry]:
        return [entry for entry in self.entries if entry.type == "INTENT_ACTION"]

    @property
    def events(self) -> list[Entry]:
        return [entry for entry in self.entries if entry.type == "BROKER_ORDER"]

    @property
    def trades(self) -> list[Entry]:
        return [entry for entry in self.entries if entry.type == "BROKER_TRADE"]

    @property
    def at_broker(self) -> list[Order]:
        return [order for _action, orders in self.orders for order in orders]

    @property
    def ended(self) -> bool:
        return self.row["status"] in TERMINAL

    def reasons(self) -> set[str]:
        return {str(entry.payload["reason_code"]) for entry in self.events if entry.payload.get("reason_code")}

    def summary(self) -> str:
        """The whole story in one line, for whoever has to diagnose it."""
        state = f"{self.row['status']} {self.row['filled_quantity']:f} of {self.row['quantity']:f}"
        state += "".join(f" {name}={self.row[name]}" for name in ("reason_code", "outcome") if self.row.get(name))
        orders = ", ".join(str(order) for order in self.at_broker) or "no order"
        lines = [str(entry) for entry in self.entries]
        shown = lines if len(lines) <= 14 else [*lines[:5], f"... {len(lines) - 12} more ...", *lines[-7:]]
        return f"{self.row['symbol']} {self.row['order_side']} {state} | broker: {orders} | log: {'; '.join(shown)}"


@dataclass
class AccountLog:
    account: str
    deleted: bool
    head: int
    entries: list[Entry]
    stories: dict[str, Story]
    foreign_orders: list[Order] = field(default_factory=list)
