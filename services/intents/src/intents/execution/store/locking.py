"""Intents under lock, with everything that settling has to know of them."""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

from intents.execution.model.locked_intent import BrokerOrder, Command, LockedIntent, Progress
from intents.execution.store.rows import PROGRESS_COLUMNS, as_json
from intents.model import Spec
from intents.store.connections import OpenTransaction, Statement
from intents.store.facts import INTENT_COLUMNS, to_intent

_WANTED = """
    WITH wanted AS (
        SELECT account_id, intent_id FROM jsonb_to_recordset($1) AS given(account_id uuid, intent_id uuid)
        UNION
        SELECT o.account_id, o.intent_id
        FROM jsonb_to_recordset($2) AS heard(account_id uuid, client_order_id text)
        JOIN intents.broker_order o USING (account_id, client_order_id) WHERE o.intent_id IS NOT NULL
    )
"""
_LOCK = Statement(
    "execution_lock",
    ("jsonb", "jsonb"),
    f"""{_WANTED}
    SELECT 1 FROM intents.intent i JOIN wanted w ON i.account_id = w.account_id AND i.id = w.intent_id
    ORDER BY i.account_id, i.id FOR UPDATE OF i
    """,  # noqa: S608 - only our own words
)
# After the lock and not with it: a statement that waited for a lock still reads other tables as they were before.
_READ = Statement(
    "execution_read",
    ("jsonb", "jsonb"),
    f"""{_WANTED}
    SELECT i.account_id, clock_timestamp(), {", ".join(f"i.{name}" for name in INTENT_COLUMNS)},
           {", ".join(f"i.{name}" for name in PROGRESS_COLUMNS)},
           c.id, c.sequence, c.type, c.spec, c.traceparent, o.orders
    FROM intents.intent i JOIN wanted w ON i.account_id = w.account_id AND i.id = w.intent_id
    LEFT JOIN LATERAL (
        SELECT id, sequence, type, spec, traceparent FROM intents.action a
        WHERE a.account_id = i.account_id AND a.intent_id = i.id AND a.sequence > i.done_sequence
        ORDER BY a.sequence LIMIT 1
    ) c ON i.open_actions > 0
    LEFT JOIN LATERAL (
        SELECT jsonb_agg(jsonb_build_array(client_order_id, action_sequence, broker_order_id, status,
            executions, filled_quantity::text, executed_quantity::text, filled_value::text, quantity::text, credential,
            unwanted_since IS NOT NULL)) AS orders
        FROM intents.broker_order o WHERE o.account_id = i.account_id AND o.intent_id = i.id
    ) o ON true
    """,  # noqa: S608 - only our own column names
)


def lock_intents(
    tx: OpenTransaction,
    intents: Iterable[tuple[UUID, UUID]],
    orders: Iterable[tuple[UUID, str]],
) -> list[LockedIntent]:
    """The intents, and those of the orders, under lock until the transaction ends."""
    given = as_json({"account_id": account_id, "intent_id": intent_id} for account_id, intent_id in intents)
    heard = as_json({"account_id": account_id, "client_order_id": order_id} for account_id, order_id in orders)
    tx.write(_LOCK, (given, heard))
    return [_locked(row) for row in tx.write(_READ, (given, heard))]


def _locked(row: tuple[Any, ...]) -> LockedIntent:
    columns = 2 + len(INTENT_COLUMNS)
    progress = Progress(*row[columns : columns + len(PROGRESS_COLUMNS)])
    action_id, sequence, type_, spec, traceparent, orders = row[columns + len(PROGRESS_COLUMNS) :]
    return LockedIntent(
        account_id=row[0],
        intent=to_intent(row[2:columns]),
        orders={values[0]: _broker_order(values) for values in orders or ()},
        command=Command(action_id, sequence, type_, spec and Spec.from_json(spec)) if action_id else None,
        progress=progress,
        now=row[1],
        traceparent=traceparent,
    )


def _broker_order(values: Sequence[Any]) -> BrokerOrder:
    filled, executed, value = (Decimal(number) for number in values[5:8])
    key, sequence, broker_order_id, status, executions = values[:5]
    quantity, credential, unwanted = values[8:]
    return BrokerOrder(
        key,
        sequence,
        broker_order_id,
        status,
        set(executions),
        filled,
        executed,
        value,
        None if quantity is None else Decimal(quantity),
        credential,
        unwanted,
    )
