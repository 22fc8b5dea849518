"""Two exits of a desk that are one order at the broker, step by step: what each process records of them."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from intents.execution import recorder, store
from intents.execution.dispatch import Dispatch
from intents.execution.model.commands import LeasedCommand
from intents.execution.model.inputs import BrokerReport, DispatchResult
from intents.execution.model.known_orders import Holdings
from intents.execution.model.verdicts import OrderFound, Verdict
from tip_brokers import Balance, Order, OrderStatus, Position

from ..grouping import LEASE_SECONDS, one_cancels_other
from .test_dispatch import Market

NAME = "made by the broker"
SYMBOL = "AAPL"


class PairedDesk:
    """Of the 10 that it holds. `one` is the Limit, which is claimed; `other` is the Stop, which goes with it."""

    def __init__(self, desk: Any) -> None:
        self.desk = desk
        self.read(10)
        desk.created(one_cancels_other(SYMBOL))
        self.limit = self.claim("one")

    def legs(self) -> dict[str, Any]:
        return {row["group_role"]: row for row in self.desk.rows("intent")}

    @property
    def stop(self) -> Any:
        return self.legs()["other"]

    def claim(self, role: str) -> LeasedCommand:
        wanted = self.legs()[role]["id"]
        claimed = store.claim(self.desk.deps.connections.autocommit(), 1000, LEASE_SECONDS)
        return next(command for command in claimed if command.intent_id == wanted)

    def leg(self, status: OrderStatus = OrderStatus.PENDING, filled: int = 0) -> Order:
        """The stop as the broker shows it."""
        order = self._order(NAME, "b2", "Stop", status)
        return replace(order, filled_quantity=Decimal(filled), average_price=Decimal(90) if filled else None)

    def pair(self, *legs: Order) -> Order:
        """The Limit as the broker shows it, with these legs."""
        return replace(self._order(self.limit.client_order_id, "b1", "Limit", OrderStatus.WORKING), legs=legs)

    def _order(self, name: str, number: str, kind: str, status: OrderStatus) -> Order:
        now = datetime.now(UTC)
        return Order(name, number, status, SYMBOL, "SELL", kind, Decimal(10), Decimal(0), None, now, now)

    def answered(self, command: LeasedCommand, verdict: Verdict) -> None:
        recorder.record(self.desk.deps.connections, [DispatchResult(command, verdict)])

    def sent(self, leg: Order | None = None) -> None:
        """The broker's answer to the pair is recorded, which shows the leg as it was then."""
        self.answered(self.limit, OrderFound(self.pair(leg or self.leg())))

    def reported(self, order: Order) -> None:
        recorder.record(self.desk.deps.connections, [BrokerReport(self.desk.account_id, order, order.updated_at)])

    def executed(self, *orders: Order) -> Any:
        """An executor carries out what is due of the stop, at a broker that has these orders; that broker."""
        command = self.claim("other")
        market = Market({order.broker_order_id: order for order in orders})
        self.answered(command, Dispatch(market, command, lambda given: given).run())  # type: ignore[arg-type]
        return market

    def read(self, held: int, *, symbol: str = SYMBOL, filled: Mapping[str, Decimal] = MappingProxyType({})) -> None:
        """A reconciler reads the account: what it holds, and how much is filled of the orders that are known."""
        with self.desk.deps.engine.begin() as tx:
            start = store.begin_reading(tx, self.desk.account_id)
            known = {order.key: filled.get(order.key, order.filled_quantity) for order in start.orders}
            shown = [Position(symbol, Decimal(held), None, None, None, None)] if held else []
            funds = Balance("USD", *3 * [Decimal(1)])
            holdings = Holdings(shown, funds, start.began_at, start.sequence, known, ())
            store.save_holdings(tx, self.desk.account_id, holdings)

    def position(self) -> Decimal:
        return sum((row["quantity"] for row in self.desk.rows("position")), Decimal(0))

    def names(self) -> set[str]:
        """The client order ids of the orders that are known."""
        return {row["client_order_id"] for row in self.desk.rows("broker_order")}

    def payloads(self, type_: str) -> list[Any]:
        return [row["payload"] for row in self.desk.rows("account_event") if row["type"] == type_]

    def strangers(self) -> list[Any]:
        return [payload for payload in self.payloads("BROKER_ORDER") if payload.get("origin") == "elsewhere"]
