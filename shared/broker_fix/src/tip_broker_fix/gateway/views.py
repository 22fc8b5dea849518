"""JSON out, in Alpaca's shapes: numbers as text, times in RFC 3339."""

from datetime import datetime
from decimal import Decimal
from typing import Any

from tip_broker_fix.gateway.orders import Change, Order
from tip_broker_fix.gateway.store import Execution, Holding

Json = dict[str, Any]


def number(value: Decimal | None) -> str | None:
    return None if value is None else format(value.normalize(), "f")


def moment(value: datetime) -> str:
    return value.isoformat(timespec="microseconds")


def order(order: Order) -> Json:
    return {
        "id": order.client_order_id,
        "client_order_id": order.client_order_id,
        "broker_order_id": order.order_id,
        "created_at": moment(order.created_at),
        "submitted_at": moment(order.created_at),
        "updated_at": moment(order.updated_at),
        "symbol": order.symbol,
        "side": order.side,
        "type": order.kind,
        "time_in_force": order.time_in_force,
        "qty": number(order.quantity),
        "filled_qty": number(order.filled),
        "filled_avg_price": number(order.average),
        "limit_price": number(order.limit_price),
        "stop_price": number(order.stop_price),
        "status": order.status,
        "replaces": order.replaces,
        "replaced_by": order.replaced_by,
        "destination": order.destination,
    }


def execution_id(order_id: str | None, exec_id: str) -> str:
    """An ExecID is unique among those of its order."""
    return f"{order_id or ''}.{exec_id}"


def trade_update(change: Change) -> Json:
    data: Json = {"event": change.event, "timestamp": moment(change.at), "order": order(change.order)}
    if change.fill:
        data["execution_id"] = execution_id(change.order.order_id, change.fill.exec_id)
        data["qty"], data["price"] = number(change.fill.quantity), number(change.fill.price)
    return {"stream": "trade_updates", "data": data}


def activity(execution: Execution) -> Json:
    """Its id continues a listing and ends in the execution's own."""
    return {
        "id": f"{execution.position}::{execution_id(execution.order_id, execution.exec_id)}",
        "activity_type": "FILL",
        "order_id": execution.client_order_id,
        "symbol": execution.symbol,
        "side": execution.side,
        "qty": number(execution.quantity),
        "price": number(execution.price),
        "transaction_time": moment(execution.occurred_at),
    }


def position(holding: Holding) -> Json:
    return {"symbol": holding.symbol, "qty": number(holding.quantity)}


def account(name: str, currency: str, holdings: list[Holding]) -> Json:
    """FIX tells no balance: cash is what the fills of this session have brought, each at its price since."""
    cash = -sum((holding.cost for holding in holdings), Decimal(0))
    equity = cash + sum((holding.quantity * holding.last_price for holding in holdings), Decimal(0))
    amounts = {"cash": number(cash), "equity": number(equity), "buying_power": number(cash)}
    return {"id": name, "currency": currency, "status": "ACTIVE", **amounts}
