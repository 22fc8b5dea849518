"""Order groups for tests: the bodies that make them, their legs as the database has them, and a broker's side."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from intents.execution import recorder, store
from intents.execution.model.inputs import BrokerReport, DispatchResult
from intents.execution.model.local_decisions import decide_locally
from intents.execution.model.verdicts import OrderFound, Rejected, RetryLater
from intents.model.groups import ROLES
from tip_brokers import OPEN, Execution, Order, OrderStatus
from tip_testing.commands import Body, create

from .conftest import Desk

LEASE_SECONDS = 60


def bracket(symbol: str = "AAPL", quantity: str = "10", side: str = "BUY", price: str = "100") -> Body:
    up, down = ("110", "90") if side == "BUY" else ("90", "110")
    legs = {
        "entry": {"Limit": {"quantity": quantity, "limit_price": price}},
        "take_profit": {"Limit": {"quantity": quantity, "limit_price": up, "time_in_force": "GTC"}},
        "stop_loss": {"Stop": {"quantity": quantity, "stop_price": down, "time_in_force": "GTC"}},
    }
    return create(symbol, side=side, Bracket=legs)


def one_cancels_other(symbol: str = "AAPL", quantity: str = "10", side: str = "SELL") -> Body:
    legs = {
        "one": {"Limit": {"quantity": quantity, "limit_price": "110"}},
        "other": {"Stop": {"quantity": quantity, "stop_price": "90"}},
    }
    return create(symbol, side=side, OneCancelsOther=legs)


def one_triggers_other(symbol: str = "AAPL", quantity: str = "10", side: str = "BUY") -> Body:
    legs = {
        "parent": {"Limit": {"quantity": quantity, "limit_price": "100"}},
        "child": {"Stop": {"quantity": quantity, "stop_price": "90"}},
    }
    return create(symbol, side=side, OneTriggersOther=legs)


class Broker:
    """Takes whatever executors would send, and reports what a test has it report."""

    def __init__(self, desk: Desk) -> None:
        self.desk, self.orders, self.count = desk, dict[str, Order](), 0
        self.earlier: list[tuple[str, Order]] = []

    def books(self) -> dict[UUID, list[dict[str, Any]]]:
        """The orders of each intent, those that were replaced too, as `group_checker` reads them."""
        legs, found = self.legs(), dict[UUID, list[dict[str, Any]]]()
        for role, order in [*self.earlier, *self.orders.items()]:
            if role not in legs:
                continue
            booked = {"qty": order.quantity, "filled_qty": order.filled_quantity, "open": order.status in OPEN}
            found.setdefault(legs[role]["id"], []).append(booked)
        return found

    def filled(self, role: str) -> Decimal:
        orders = [order for of, order in [*self.earlier, *self.orders.items()] if of == role]
        return sum((order.filled_quantity for order in orders), Decimal(0))

    def left(self, role: str) -> Decimal:
        """What may still be filled of the leg's order at the broker."""
        order = self.orders.get(role)
        return order.quantity - order.filled_quantity if order and order.status in OPEN else Decimal(0)

    def legs(self) -> dict[str, Any]:
        return {row["group_role"]: row for row in self.desk.rows("intent") if row["group_role"]}

    def statuses(self) -> dict[str, str]:
        legs = self.legs()
        return {role: legs[role]["status"] for role in ROLES if role in legs}

    def send(self) -> None:
        """What an executor would do with all that is due on the desk's account, until nothing is left to do."""
        while taken := self._claim():
            recorder.record(self.desk.deps.connections, [self._result(command) for command in taken])

    def _claim(self) -> list[Any]:
        tx = self.desk.deps.connections.autocommit()
        taken = [c for c in store.claim(tx, 1000, LEASE_SECONDS) if c.account_id == self.desk.account_id]
        return [refreshed for c in taken if (refreshed := store.refresh(tx, c))]

    def _result(self, command: Any) -> DispatchResult:
        if decided := decide_locally(command):
            assert not isinstance(decided, RetryLater) or decided.seconds > 0, decided
            return DispatchResult(command, decided)
        role = self._role(command)
        before = self.orders.get(role)
        nothing_left = command.type == "REPLACE" and command.spec.quantity <= self.filled(role)
        if before and command.type != "CREATE" and (before.status not in OPEN or nothing_left):
            return DispatchResult(command, Rejected("ORDER_NOT_OPEN", "It is not open.", (before,)))
        return DispatchResult(command, OrderFound(*self._done(command, role)))

    def _role(self, command: Any) -> str:
        """The role of the leg; of an intent of no group its id."""
        found = (role for role, row in self.legs().items() if row["id"] == command.intent_id)
        return next(found, str(command.intent_id))

    def _done(self, command: Any, role: str) -> tuple[Order, tuple[Order, ...]]:
        before = self.orders.get(role)
        if command.type == "CANCEL":
            assert before
            self.orders[role] = replace(before, status=OrderStatus.CANCELED)
            return self.orders[role], ()
        now, self.count = datetime.now(UTC), self.count + 1
        filled = self.filled(role)
        order = Order(
            command.client_order_id, f"{role}-{self.count}-{command.intent_id}", OrderStatus.WORKING, command.symbol,
            command.order_side, command.spec.kind, command.spec.quantity - filled, Decimal(0), None, now, now,
        )  # fmt: skip
        self.orders[role] = order
        if before:
            self.earlier.append((role, replace(before, status=OrderStatus.REPLACED)))
        old = (replace(before, status=OrderStatus.REPLACED, replaced_by=order.broker_order_id),) if before else ()
        return order, old

    def fill(self, role: str, quantity: str, price: str = "100") -> None:
        self.fill_at_once({role: quantity}, price)

    def fill_at_once(self, quantities: dict[str, str], price: str = "100") -> None:
        recorder.record(self.desk.deps.connections, [self._filled(role, q, price) for role, q in quantities.items()])

    def _filled(self, role: str, quantity: str, price: str) -> BrokerReport:
        order, self.count = self.orders[role], self.count + 1
        filled, now = order.filled_quantity + Decimal(quantity), datetime.now(UTC)
        status = OrderStatus.FILLED if filled >= order.quantity else OrderStatus.WORKING
        shown = replace(order, status=status, filled_quantity=filled, average_price=Decimal(price), updated_at=now)
        self.orders[role] = shown
        execution = Execution(f"x{self.count}", order.broker_order_id, Decimal(quantity), Decimal(price), now)
        return BrokerReport(self.desk.account_id, shown, now, execution)

    def end(self, role: str, status: OrderStatus = OrderStatus.CANCELED) -> None:
        self.orders[role] = replace(self.orders[role], status=status, updated_at=datetime.now(UTC))
        report = BrokerReport(self.desk.account_id, self.orders[role], datetime.now(UTC))
        recorder.record(self.desk.deps.connections, [report])

    def reject_cancel(self, role: str) -> None:
        """What it answers to the CANCEL that is due."""
        [command] = [c for c in self._claim() if c.intent_id == self.legs()[role]["id"]]
        recorder.record(self.desk.deps.connections, [DispatchResult(command, Rejected("CANCEL_REJECTED", "no"))])

    def close(self, role: str) -> None:
        """What was filled after its end is not open again for it."""
        order = self.orders[role]
        if order.status in OPEN:
            self.orders[role] = replace(order, status=OrderStatus.CANCELED)

    def show_all(self) -> None:
        """Every order as it stands, as a reconciliation reads it."""
        now = datetime.now(UTC)
        orders = [order for _, order in self.earlier] + list(self.orders.values())
        reports = [BrokerReport(self.desk.account_id, order, now, is_current_state=True) for order in orders]
        if reports:
            recorder.record(self.desk.deps.connections, reports)


def filled_bracket(desk: Desk) -> Broker:
    desk.created(bracket())
    broker = Broker(desk)
    broker.send()
    broker.fill("entry", "10")
    broker.send()
    return broker


def switch(desk: Desk, state: str) -> None:
    desk.execute(
        "INSERT INTO controls.account_switch (account_id, organization_id, trading_state) "
        "VALUES (:account_id, :organization_id, :state) "
        "ON CONFLICT (account_id) DO UPDATE SET trading_state = excluded.trading_state",
        organization_id=desk.organization.id,
        state=state,
    )
