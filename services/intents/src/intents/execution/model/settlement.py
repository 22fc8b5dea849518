"""What is said about an intent: its status by the table of the life cycle, and the events that tell it."""

from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from intents.brokers import Execution
from intents.execution.model.locked_intent import MISSING, STARTED, BrokerOrder, Held
from intents.model import TERMINAL, Status, reports
from intents.model.reports import Report

_ZERO = Decimal(0)


def apply_report(held: Held, report: Report) -> bool:
    """Let it act by the table of the life cycle, and tell it; False if it means nothing any more."""
    before = held.intent.status
    after = reports.apply(held.intent, report)
    if after is None:
        return False
    held.intent = after
    tell(held, before, report)
    if after.status in TERMINAL:
        held.command, held.open_actions, held.submit_started_at = None, 0, None
        _give_up_unsettled(held)
    return True


def _give_up_unsettled(held: Held) -> None:
    """What was being sent when the intent ended may still surface at the broker."""
    for order in held.orders.values():
        if order.status == STARTED and order.broker_order_id is None and order.name not in held.unsent:
            order.status, order.changed = MISSING, True


def done(held: Held) -> None:
    """The command is settled: the next one may start."""
    held.changed = True
    if held.command is None:
        return
    held.done_sequence, held.open_actions = held.command.sequence, held.open_actions - 1
    held.command, held.submit_started_at, held.attempts, held.absences = None, None, 0, 0
    held.next_attempt_at = held.now
    if held.intent.outcome:
        held.intent = replace(held.intent, outcome=None)


def tell(held: Held, before: Status, report: Report) -> None:
    held.changed = True
    statuses = {"from_status": before, "to_status": held.intent.status}
    payload = reports.broker_order(held.intent, report)
    held.events.append(event(held, "BROKER_ORDER", payload, report.occurred_at) | statuses)


def note(held: Held, report: Report) -> None:
    """Tell something about the intent that leaves its status as it is, and its reason with it."""
    held.changed = True
    status = held.intent.status
    payload = reports.broker_order(held.intent, report) | {
        "reason_code": report.reason_code,
        "broker_order_id": report.broker_order_id or held.intent.broker_order_id,
    }
    statuses = {"from_status": status, "to_status": status}
    held.events.append(event(held, "BROKER_ORDER", payload, report.occurred_at) | statuses)


def tell_fill(held: Held, known: BrokerOrder, report: Report) -> None:
    """The trade before the order it moved, and the position by as much."""
    payload = reports.broker_trade(held.intent, report) | {"broker_order_id": known.broker_order_id}
    trade = event(held, "BROKER_TRADE", payload, report.occurred_at) | {"execution_id": report.execution_id}
    held.events.insert(len(held.events) - 1, trade)
    quantity = report.last_quantity or _ZERO
    move(held, moved=quantity if held.intent.order_side == "BUY" else -quantity, stands=None, price=report.last_price)


def tell_position(held: Held, moment: datetime, execution: Execution) -> None:
    """Where the position stands, if the broker says so, whoever was first to tell of the fill."""
    stands = execution.position_quantity
    if stands is None:
        return
    move(held, moved=_ZERO, stands=stands, price=execution.price)
    payload = {
        "symbol": held.intent.symbol,
        "quantity": format(stands, "f"),
        "last_price": format(execution.price, "f"),
    }
    held.events.append(event(held, "BROKER_POSITION", payload, moment))


def event(held: Held, type_: str, payload: dict[str, Any], moment: datetime) -> dict[str, Any]:
    return {"rank": held.rank, "type": type_, "payload": payload, "occurred_at": moment}


def move(held: Held, *, moved: Decimal, stands: Decimal | None, price: Decimal | None) -> None:
    held.positions.append(
        {"rank": held.rank, "symbol": held.intent.symbol, "moved": moved, "stands": stands, "price": price}
    )
