"""Two exits of one position at the paper broker, for tests."""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

from intents.model.groups import ROLES
from tip_testing.commands import Body, create
from tip_testing.waiting import eventually


def new_symbol(paper: Any) -> str:
    """One that nobody else trades, quoted 99 at 101 without limit."""
    symbol = "P" + uuid4().hex[:8].upper()
    paper.quote(symbol, "99", "101")
    return symbol


def limit(price: str, quantity: str = "10") -> Body:
    return {"Limit": {"quantity": quantity, "limit_price": price, "time_in_force": "GTC"}}


def stop(price: str, quantity: str = "10") -> Body:
    return {"Stop": {"quantity": quantity, "stop_price": price, "time_in_force": "GTC"}}


def bracket(symbol: str) -> Body:
    entry = {"Market": {"quantity": "10"}}
    return create(symbol, Bracket={"entry": entry, "take_profit": limit("110"), "stop_loss": stop("90")})


def exits(symbol: str) -> Body:
    return create(symbol, side="SELL", OneCancelsOther={"one": limit("110"), "other": stop("90")})


class Exits:
    """What became of the exits of the desk's only group, here and at the broker."""

    def __init__(self, desk: Any, paper: Any, symbol: str) -> None:
        self.desk, self.paper, self.symbol = desk, paper, symbol

    def legs(self) -> dict[str, Any]:
        return {row["group_role"]: row for row in self.desk.rows("intent") if row["group_role"]}

    def statuses(self) -> dict[str, str]:
        legs = self.legs()
        return {role: legs[role]["status"] for role in ROLES if role in legs}

    def reach(self, seconds: float = 60, **statuses: str) -> None:
        try:
            eventually(lambda: self.statuses() | statuses == self.statuses(), seconds)
        except AssertionError:
            raise AssertionError(self.legs()) from None

    def at_broker(self) -> dict[str, Any]:
        """The orders of the symbol there, by their kind; of each kind one."""
        orders = [order for order in self.paper.ledger() if order["symbol"] == self.symbol]
        replaced = {order["replaces"] for order in orders}  # before the broker says so of the order itself
        latest = [order for order in orders if order["order_id"] not in replaced]
        found = {order["kind"]: order for order in latest}
        assert len(latest) == len(found), orders
        return found

    def strangers(self) -> list[Any]:
        """Events of orders that the platform takes for somebody else's."""
        return [row for row in self.desk.rows("account_event") if row["payload"].get("origin") == "elsewhere"]

    def uncovered(self) -> list[str]:
        """What is said of a position that no exit closes any more."""
        payloads = [row["payload"] for row in self.desk.rows("account_event")]
        return [payload["reason"] for payload in payloads if payload.get("reason_code") == "GROUP_UNCOVERED"]


def bought(desk: Any, symbol: str, reaches: Callable[..., Any]) -> None:
    reaches(desk.created(create(symbol, "10")), "FILLED", seconds=60)
