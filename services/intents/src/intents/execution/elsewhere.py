"""Orders at the broker without an intent: placed by somebody else, or forgotten by a restore. The log shows them."""

import json
from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid4

from intents.brokers import Order
from intents.execution.client_order_id import is_ours
from intents.execution.model.inputs import Heard
from intents.store.account_head import take_sequences
from intents.store.connections import OpenTransaction, Statement

# The event follows only if the order is new or has moved on since it was last seen.
_RECORD = Statement(
    "execution_elsewhere",
    ("uuid", "text", "text", "text", "numeric", "numeric", "uuid", "jsonb", "timestamptz"),
    f"""
    WITH seen AS (
        INSERT INTO intents.broker_order AS o (account_id, client_order_id, broker_order_id, status, filled_quantity,
                                               filled_value)
        VALUES ($1, $2, $3, $4, $5, $6)
        ON CONFLICT (account_id, client_order_id) DO UPDATE SET status = excluded.status,
            filled_quantity = greatest(o.filled_quantity, excluded.filled_quantity),
            filled_value = excluded.filled_value, updated_at = now()
            WHERE o.intent_id IS NULL
              AND (o.status, o.filled_quantity) IS DISTINCT FROM (excluded.status, excluded.filled_quantity)
              AND o.filled_quantity <= excluded.filled_quantity
        RETURNING 1
    ), head AS (
        {take_sequences("SELECT $1 AS account_id, NULL::uuid AS organization_id, 1 AS sequences FROM seen")}
    )
    INSERT INTO intents.broker_event (account_id, sequence, id, type, payload, occurred_at)
    SELECT $1, head.last_sequence, $7, 'BROKER_ORDER', $8, $9 FROM head
    RETURNING sequence
    """,  # noqa: S608 - a constant
)


def record(tx: OpenTransaction, heard: Sequence[Heard]) -> dict[UUID, int]:
    """The last sequence that it took in the log of each account."""
    ends: dict[UUID, int] = {}
    for one in sorted(heard, key=lambda one: str(one.account_id)):
        order = one.order
        told = tx.write(
            _RECORD,
            (
                str(one.account_id),
                order.client_order_id,
                order.broker_order_id,
                str(order.status),
                order.filled_quantity,
                order.filled_quantity * (order.average_price or 0),
                str(uuid4()),
                json.dumps(_payload(one)),
                one.occurred_at,
            ),
        )
        for (sequence,) in told:
            ends[one.account_id] = sequence
    return ends


def _payload(heard: Heard) -> dict[str, Any]:
    order, execution = heard.order, heard.execution
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


_STATUS = {"PENDING": "ACCEPTED", "WORKING": "ACCEPTED", "REPLACED": "CANCELED"}
