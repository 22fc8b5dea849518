"""A broker that shows what a test has it show."""

from collections import Counter
from datetime import datetime
from decimal import Decimal
from typing import Any

from tip_brokers import Balance, BrokerError, ClientIds, Order, Position


class Shows:
    """Open orders, and what it answers about others by themselves; `held`: how much of which symbol.

    No order can be queried by our ids.
    """

    client_ids = ClientIds.NONE

    def __init__(
        self, *orders: Order, held: dict[str, int] | None = None, **others: Order | BrokerError | None
    ) -> None:
        self.open, self.others, self.held = orders, others, held or {}
        self.calls = Counter[str]()

    def open_orders(self) -> tuple[Order, ...]:
        self.calls["open_orders"] += 1
        return self.open

    def order(self, broker_order_id: str) -> Order | None:
        self.calls["order"] += 1
        found = self.others[broker_order_id]
        if isinstance(found, BrokerError):
            raise found
        return found

    def positions(self) -> list[Position]:
        self.calls["positions"] += 1
        return [Position(symbol, Decimal(held), None, None, None, None) for symbol, held in self.held.items()]

    def balance(self) -> Balance:
        return Balance("USD", Decimal(1), Decimal(1), Decimal(1))

    def executions(self, _after: datetime) -> list[Any]:
        return []


def unanswered(desk: Any, status: str = "STARTED") -> None:
    """Nobody knows what became of the orders of the account, which were sent if they are `STARTED`."""
    desk.execute(
        f"UPDATE intents.broker_order SET broker_order_id = NULL, status = '{status}'"
        " WHERE account_id = :account_id AND intent_id IS NOT NULL"
    )
    if status == "STARTED":
        desk.execute("UPDATE intents.intent SET submit_started_at = now() WHERE account_id = :account_id")
