"""Intents under lock, with everything that settling has to know of them."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any
from uuid import UUID

from intents.execution.model.locked_intent import BrokerOrder, Command, LockedGroup, LockedIntent, Progress
from intents.execution.store.rows import PROGRESS_COLUMNS, as_json
from intents.model import Spec
from intents.store.connections import OpenTransaction
from intents.store.facts import INTENT_COLUMNS, aliased, intent_from
from intents.store.statement import Row, Statement

_DECIMALS = ("filled_quantity", "executed_quantity", "filled_value", "quantity")
# The legs of an order group are locked together: what is filled of one changes the others.
_WANTED = """
    WITH reported AS (
        SELECT account_id, intent_id FROM jsonb_to_recordset($1) AS given(account_id uuid, intent_id uuid)
        UNION
        SELECT account_id, intent_id FROM (
            SELECT o.account_id, o.intent_id
            FROM jsonb_to_recordset($2) AS given(account_id uuid, client_order_id text)
            JOIN intents.broker_order o USING (account_id, client_order_id) OFFSET 0
        ) found WHERE intent_id IS NOT NULL
    ), grouped AS MATERIALIZED (
        SELECT r.account_id, r.intent_id, i.group_id FROM reported r
        JOIN intents.intent i ON i.account_id = r.account_id AND i.id = r.intent_id
    ), wanted AS MATERIALIZED (
        SELECT account_id, intent_id FROM grouped WHERE group_id IS NULL
        UNION
        SELECT leg.account_id, leg.id FROM grouped g
        CROSS JOIN LATERAL (
            SELECT i.account_id, i.id FROM intents.intent i
            WHERE i.account_id = g.account_id AND i.group_id = g.group_id OFFSET 0) leg
    )
"""
_IN_FORMER_ACCOUNT = """
    EXISTS (SELECT FROM intents.broker_login l JOIN intents.broker_account k ON k.account_id = l.account_id
            WHERE l.account_id = o.account_id AND l.credential = o.credential AND l.broker_account <> k.held_account)"""
_LOCK = Statement(
    "execution_lock",
    ("jsonb", "jsonb"),
    f"""{_WANTED}
    SELECT 1 FROM intents.intent i JOIN wanted w ON i.account_id = w.account_id AND i.id = w.intent_id
    ORDER BY i.account_id, i.id FOR UPDATE OF i
    """,  # noqa: S608 - only our own words
)
# A statement of its own: one that waited for a lock still reads other tables as they were before.
_READ = Statement(
    "execution_read",
    ("jsonb", "jsonb"),
    f"""{_WANTED}
    SELECT i.account_id, clock_timestamp() AS now, {aliased("i", "intent", INTENT_COLUMNS)},
           {", ".join(f"i.{column}" for column in PROGRESS_COLUMNS)},
           c.id AS command_id, c.sequence, c.type, c.spec AS command_spec, c.traceparent, c.request_id,
           o.orders, gr.id AS group_id, gr.quantity AS group_quantity, gr.excess_quantity, gr.paired
    FROM intents.intent i JOIN wanted w ON i.account_id = w.account_id AND i.id = w.intent_id
    LEFT JOIN LATERAL (
        SELECT id, sequence, type, spec, traceparent, request_id FROM intents.action a
        WHERE a.intent_id = i.id AND a.sequence > i.done_sequence
        ORDER BY a.sequence LIMIT 1
    ) c ON i.open_actions > 0
    LEFT JOIN intents.intent_group gr ON gr.account_id = i.account_id AND gr.id = i.group_id
    LEFT JOIN LATERAL (
        SELECT jsonb_agg(jsonb_build_object('key', client_order_id, 'action_sequence', action_sequence,
            'broker_order_id', broker_order_id, 'status', status, 'executions', executions,
            'filled_quantity', filled_quantity::text, 'executed_quantity', executed_quantity::text,
            'filled_value', filled_value::text, 'quantity', quantity::text, 'credential', credential,
            'unwanted', unwanted_since IS NOT NULL, 'in_former_account', {_IN_FORMER_ACCOUNT})) AS orders
        FROM intents.broker_order o WHERE o.intent_id = i.id
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
    reported = as_json({"account_id": account_id, "client_order_id": order_id} for account_id, order_id in orders)
    return [_locked(row) for row in tx.write_after(_LOCK, _READ, (given, reported))]


def _locked(row: Row) -> LockedIntent:
    orders = [_broker_order(columns) for columns in row.orders or ()]
    return LockedIntent(
        account_id=row.account_id,
        intent=intent_from(row),
        orders={order.key: order for order in orders},
        command=_command(row) if row.command_id else None,
        progress=Progress(**{column: getattr(row, column) for column in PROGRESS_COLUMNS}),
        now=row.now,
        traceparent=row.traceparent,
        request_id=row.request_id,
        group=_group(row) if row.group_id else None,
    )


def _group(row: Row) -> LockedGroup:
    return LockedGroup(row.group_id, row.group_quantity, row.excess_quantity, row.paired)


def _command(row: Row) -> Command:
    return Command(row.command_id, row.sequence, row.type, row.command_spec and Spec.from_json(row.command_spec))


def _broker_order(columns: Mapping[str, Any]) -> BrokerOrder:
    decimals = {name: None if columns[name] is None else Decimal(columns[name]) for name in _DECIMALS}
    return BrokerOrder(**{**columns, **decimals, "executions": set(columns["executions"])})
