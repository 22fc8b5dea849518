"""The broker's side of a test: what it reports, written by the executor's own writer."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from intents.execution import recorder, store
from intents.execution.model.inputs import BrokerReport, DispatchResult
from intents.execution.model.settlement import Settlement, apply_report
from intents.execution.model.verdicts import OrderFound, Requested
from intents.model import Update
from intents.model.reports import Report
from tip_brokers import Execution, Order, OrderStatus

from .conftest import Desk

LEASE_SECONDS = 60


def report(desk: Desk, intent_id: object, update: Update, **more: Any) -> None:
    """Let the report act on the intent, whatever the executor was about to do with it."""
    now = datetime.now(UTC)
    with desk.deps.connections.begin() as tx:
        [locked] = store.lock_intents(tx, [(desk.account_id, UUID(str(intent_id)))], [])
        settlement = Settlement.begin(locked)
        apply_report(settlement, Report(update, now, **more))
        store.write(tx, [settlement])


def accepted(desk: Desk, intent_id: str, name: str) -> None:
    report(desk, intent_id, Update.ACCEPTED, broker_order_id=name)


def accept(desk: Desk, intent_id: object, broker_order_id: str) -> Order:
    """The executor has sent the intent, and the broker shows the order. What else was waiting is left waiting."""
    connections, now = desk.deps.connections, datetime.now(UTC)
    taken = store.claim(connections.autocommit(), 1000, LEASE_SECONDS)
    mine = next(command for command in taken if command.intent_id == UUID(str(intent_id)))
    order = Order(
        mine.client_order_id, broker_order_id, OrderStatus.WORKING, mine.symbol, mine.order_side, mine.spec.kind,
        mine.quantity, Decimal(0), None, now, now,
    )  # fmt: skip
    recorder.record(
        connections,
        [DispatchResult(command, OrderFound(order) if command is mine else Requested()) for command in taken],
    )
    return order


def fill(
    desk: Desk, order: Order, quantity: str, price: str, execution_id: str, at: datetime | None = None
) -> dict[UUID, int]:
    """The broker reports a fill; the new head of the account's log, nothing if the fill was recorded already."""
    filled = order.filled_quantity + Decimal(quantity)
    status = OrderStatus.FILLED if filled == order.quantity else OrderStatus.WORKING
    now = at or datetime.now(UTC)
    shown = replace(order, status=status, filled_quantity=filled, average_price=Decimal(price), updated_at=now)
    execution = Execution(execution_id, order.broker_order_id, Decimal(quantity), Decimal(price), now)
    return recorder.record(desk.deps.connections, [BrokerReport(desk.account_id, shown, now, execution)]).heads
