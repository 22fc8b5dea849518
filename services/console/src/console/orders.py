"""Orders as people write and read them, and as the API has them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

KINDS: Mapping[str, tuple[str, ...]] = {
    "Market": (),
    "Limit": ("limit_price",),
    "Stop": ("stop_price",),
    "StopLimit": ("stop_price", "limit_price"),
}
"""Each kind with the prices that it names."""
SIDES = ("BUY", "SELL")
TIMES = ("DAY", "GTC", "IOC", "FOK")
OPEN = frozenset({"PENDING", "SUBMITTED", "ACCEPTED", "PARTIALLY_FILLED", "PENDING_REPLACE", "PENDING_CANCEL"})
ENDED = {
    "FILLED": "good",
    "CANCELED": "ended",
    "EXPIRED": "ended",
    **dict.fromkeys(("REJECTED", "DENIED", "FAILED"), "bad"),
}
"""Each status that an order ends with, and what it means to whoever looks."""


@dataclass(frozen=True)
class Draft:
    """An order as somebody typed it; whether it is one is for the API to say."""

    symbol: str = ""
    order_side: str = "BUY"
    kind: str = "Limit"
    quantity: str = ""
    limit_price: str = ""
    stop_price: str = ""
    time_in_force: str = "DAY"
    client_id: str = ""
    tags: str = ""

    @property
    def spec(self) -> dict[str, dict[str, str]]:
        prices = {name: getattr(self, name) for name in KINDS.get(self.kind, ())}
        return {self.kind: {"quantity": self.quantity, **prices, "time_in_force": self.time_in_force}}

    @property
    def command(self) -> dict[str, Any]:
        tags = [tag.strip() for tag in self.tags.split(",") if tag.strip()]
        named = {"client_id": self.client_id, "tags": tags}
        payload = {"symbol": self.symbol.upper(), "order_side": self.order_side, "spec": self.spec}
        return {"type": "CREATE", "payload": payload | {name: value for name, value in named.items() if value}}

    @property
    def words(self) -> str:
        return f"{self.order_side} {self.quantity} {self.symbol.upper()} {priced(self.spec)}"


def priced(spec: Mapping[str, Mapping[str, Any]]) -> str:
    """The kind of an order and its prices: `Limit 180.50`."""
    [(kind, values)] = spec.items()
    prices = [values[name] for name in ("stop_price", "limit_price") if values.get(name)]
    return " ".join(map(str, (kind, *prices)))


def order_words(order: Mapping[str, Any]) -> str:
    [values] = order["spec"].values()
    return f"{order['order_side']} {values['quantity']} {order['symbol']} {priced(order['spec'])}"


def refused_words(command: Mapping[str, Any]) -> str:
    """What somebody wanted, of which there may be no more than the side: `BUY 5 Limit 180.50`."""
    spec = command.get("spec") or {}
    amounts = [values.get("quantity") or values.get("notional") for values in spec.values()]
    return " ".join(str(part) for part in (command.get("order_side"), *amounts, *map(_kind, spec.items())) if part)


def _kind(spec: tuple[str, Mapping[str, Any]]) -> str:
    return priced(dict([spec]))


def replacement(spec: Mapping[str, Mapping[str, Any]], changes: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """The same order with another quantity or other prices."""
    [(kind, values)] = spec.items()
    changed = {name: changes[name] for name in ("quantity", *KINDS.get(kind, ())) if changes.get(name)}
    return {kind: {**values, **changed}}


def meaning(status: str) -> str:
    """The one colour of a status."""
    return ENDED.get(status, "going")
