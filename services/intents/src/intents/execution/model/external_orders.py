"""Orders at the broker without an intent: placed by somebody else, or forgotten by a restore. The log shows them."""

from typing import Any

from intents.execution.client_order_id import is_ours
from intents.execution.model.inputs import BrokerReport
from tip_brokers.protocol import Order

_STATUS = {"PENDING": "ACCEPTED", "WORKING": "ACCEPTED", "REPLACED": "CANCELED"}


def payload(report: BrokerReport) -> dict[str, Any]:
    order, execution = report.order, report.execution
    quantity = order.quantity if order.quantity is not None else order.filled_quantity
    return {
        "intent_id": None,
        "origin": "elsewhere",
        "broker_order_id": order.broker_order_id,
        "symbol": order.symbol,
        "order_side": order.order_side,
        "order_kind": order.kind,
        "status": _STATUS.get(order.status, str(order.status)),
        "quantity": format(quantity, "f"),
        "filled_quantity": format(order.filled_quantity, "f"),
        "leaves_quantity": format(max(quantity - order.filled_quantity, quantity * 0), "f"),
        "average_fill_price": None if order.average_price is None else format(order.average_price, "f"),
        "limit_price": None,
        "stop_price": None,
        "reason_code": _reason_code(order),
        "reason": None,
        "execution_id": execution.id if execution else None,
        "last_quantity": format(execution.quantity, "f") if execution else None,
        "last_price": format(execution.price, "f") if execution else None,
        "outcome": None,
    }


def _reason_code(order: Order) -> str:
    """An order with an id of ours that no intent knows was sent before the log was restored to an earlier state."""
    return "ADOPTED" if is_ours(order.client_order_id) else "PLACED_ELSEWHERE"
