"""Orders at the broker without an intent, recorded with an event each time they have moved on."""

import json
from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid4

from intents.execution.model.external_orders import payload
from intents.execution.model.inputs import BrokerReport
from intents.execution.store.expressions import ENDED_SQL, IN_FLIGHT
from intents.execution.store.pairs import to_be_adopted
from intents.store.account_head import take_sequences
from intents.store.connections import OpenTransaction
from intents.store.statement import Statement

# An exit that the broker has got with its sibling, and whose intent has not found it there yet, is nobody else's order:
# what is not recorded of it now is read once it is found. An order that is somebody else's is reported again.
_TO_BE_ADOPTED = to_be_adopted(
    "$1",
    """AND symbol BETWEEN $8::jsonb ->> 'symbol' AND $8::jsonb ->> 'symbol' AND order_side = $8::jsonb ->> 'order_side'
          AND spec -> ($8::jsonb ->> 'order_kind') IS NOT NULL""",
)
# What the broker shows without a client order id is ours by the broker's id, also if it has ended since its account was
# read; one that is shown for longer after its end lives on, and has to be seen. While the answer about an order of its
# symbol is to come it may be that one, unless it is known already.
_IS_OF_ENDED = f"""
    SELECT FROM intents.broker_order
    WHERE $10 AND account_id = $1 AND broker_order_id = $3 AND status IN ({ENDED_SQL}) AND intent_id IS NOT NULL
      AND updated_at > now() - interval '1 minute'
"""
_MAY_BE_OF_OPEN = f"""
    SELECT FROM (SELECT * FROM intents.broker_order
                 WHERE $10 AND account_id = $1 AND status NOT IN ({ENDED_SQL}) OFFSET 0) open
    WHERE intent_id IS NOT NULL
      AND (broker_order_id = $3
           OR ({IN_FLIGHT}
               AND NOT EXISTS (SELECT FROM intents.broker_order WHERE account_id = $1 AND client_order_id = $2)
               AND (SELECT symbol FROM intents.intent i WHERE i.account_id = open.account_id
                    AND i.id = open.intent_id) = $8::jsonb ->> 'symbol'))
"""  # noqa: S608 - a constant
# The event follows only if the order is new or has moved on since it was last seen.
_RECORD = Statement(
    "execution_external_order",
    ("uuid", "text", "text", "text", "numeric", "numeric", "uuid", "jsonb", "timestamptz", "boolean"),
    f"""
    WITH seen AS (
        INSERT INTO intents.broker_order AS o (account_id, client_order_id, broker_order_id, status, filled_quantity,
                                               filled_value)
        SELECT $1, $2, $3, $4, $5, $6
        WHERE NOT EXISTS ({_TO_BE_ADOPTED}) AND NOT EXISTS ({_IS_OF_ENDED}) AND NOT EXISTS ({_MAY_BE_OF_OPEN})
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
    INSERT INTO intents.account_event (account_id, sequence, id, type, payload, occurred_at)
    SELECT $1, head.last_sequence, $7, 'BROKER_ORDER', $8, $9 FROM head
    RETURNING sequence
    """,  # noqa: S608 - a constant
)


def record_external_orders(tx: OpenTransaction, reports: Sequence[BrokerReport]) -> dict[UUID, int]:
    """The new head of the log of each account that got an event."""
    heads: dict[UUID, int] = {}
    for report in sorted(reports, key=lambda report: str(report.account_id)):
        for row in tx.write(_RECORD, _values(report)):
            heads[report.account_id] = row.sequence
    return heads


def _values(report: BrokerReport) -> Sequence[Any]:
    order = report.order
    return (
        str(report.account_id),
        order.client_order_id,
        order.broker_order_id,
        str(order.status),
        order.filled_quantity,
        order.filled_quantity * (order.average_price or 0),
        str(uuid4()),
        json.dumps(payload(report)),
        report.occurred_at,
        order.is_nameless,
    )
