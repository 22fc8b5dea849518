"""What settling made of intents: status, orders, positions and events of many of them in one statement."""

from collections.abc import Sequence
from decimal import Decimal
from operator import itemgetter
from typing import Any
from uuid import UUID

from intents.execution.held import BrokerOrder, Held
from intents.execution.settling import is_overordered
from intents.execution.store.rows import as_json
from intents.store.account_head import take_sequences
from intents.store.connections import Statement, Transaction

_EVENTS_OF_ACCOUNTS = (
    "SELECT account_id, NULL::uuid AS organization_id, count(*) AS sequences FROM event GROUP BY account_id"
)
_WRITE = Statement(
    "execution_write",
    ("jsonb", "jsonb", "jsonb", "jsonb"),
    f"""
    WITH given AS (
        SELECT * FROM jsonb_to_recordset($1) AS given(
            place integer, account_id uuid, intent_id uuid, status text, filled_quantity numeric,
            average_fill_price numeric,
            broker_order_id text, reason_code text, outcome text, spec json, quantity numeric,
            updated_at timestamptz, expected_version bigint, holder uuid, lease_token uuid,
            next_attempt_at timestamptz, submit_started_at timestamptz, accepted_at timestamptz, attempts integer,
            open_actions integer, done_sequence bigint, absences integer, overordered boolean)
    ), as_expected AS MATERIALIZED (
        SELECT g.* FROM given g JOIN intents.intent i ON i.account_id = g.account_id AND i.id = g.intent_id
        WHERE i.version = g.expected_version AND (g.holder IS NULL OR i.lease_token = g.holder)
        FOR UPDATE OF i SKIP LOCKED
    ), changed AS (
        UPDATE intents.intent i
        SET status = g.status, filled_quantity = g.filled_quantity, average_fill_price = g.average_fill_price,
            broker_order_id = g.broker_order_id, reason_code = g.reason_code, outcome = g.outcome,
            spec = coalesce(g.spec, i.spec), quantity = coalesce(g.quantity, i.quantity), updated_at = g.updated_at,
            version = i.version + 1, lease_token = g.lease_token,
            lease_until = CASE WHEN g.lease_token IS NULL THEN NULL ELSE i.lease_until END,
            next_attempt_at = g.next_attempt_at, submit_started_at = g.submit_started_at,
            accepted_at = g.accepted_at, attempts = g.attempts, open_actions = g.open_actions,
            done_sequence = g.done_sequence, absences = g.absences, overordered = g.overordered
        FROM as_expected g WHERE i.account_id = g.account_id AND i.id = g.intent_id
        RETURNING g.place, i.account_id, i.id, i.created_at
    ), orders AS (
        INSERT INTO intents.broker_order AS o (account_id, client_order_id, intent_id, action_sequence,
            broker_order_id, status, executions, filled_quantity, executed_quantity, filled_value, quantity,
            credential, unwanted_since)
        SELECT changed.account_id, client_order_id, changed.id, action_sequence, broker_order_id, status, executions,
               filled_quantity, executed_quantity, filled_value, quantity, credential, CASE WHEN unwanted THEN now() END
        FROM jsonb_to_recordset($2) AS given(
            of integer, client_order_id text, action_sequence bigint, broker_order_id text, status text,
            executions text[], filled_quantity numeric, executed_quantity numeric, filled_value numeric,
            quantity numeric, credential text, unwanted boolean)
        JOIN changed ON changed.place = given.of
        ON CONFLICT (account_id, client_order_id) DO UPDATE SET broker_order_id = excluded.broker_order_id,
            status = excluded.status, executions = excluded.executions, filled_quantity = excluded.filled_quantity,
            executed_quantity = excluded.executed_quantity, filled_value = excluded.filled_value, updated_at = now(),
            quantity = excluded.quantity, unwanted_since = coalesce(o.unwanted_since, excluded.unwanted_since)
    ), positions AS (
        INSERT INTO intents.position AS held (account_id, symbol, quantity, last_price, updated_at, reconciled_at)
        SELECT account_id, symbol, coalesce(stands, 0) + moved, price, now(),
               CASE WHEN stands IS NOT NULL AND moved = 0 THEN now() END
        FROM jsonb_to_recordset($3) AS given(account_id uuid, symbol text, moved numeric, stands numeric, price numeric)
        ORDER BY account_id, symbol
        ON CONFLICT (account_id, symbol) DO UPDATE SET updated_at = now(),
            reconciled_at = coalesce(excluded.reconciled_at, held.reconciled_at),
            last_price = coalesce(excluded.last_price, held.last_price),
            quantity = (SELECT coalesce(g.stands, held.quantity) + g.moved
                        FROM jsonb_to_recordset($3) AS g(account_id uuid, symbol text, moved numeric, stands numeric)
                        WHERE g.account_id = held.account_id AND g.symbol = held.symbol)
    ), event AS (
        SELECT given.*, changed.account_id, changed.id AS intent_id, changed.created_at AS intent_created_at
        FROM jsonb_to_recordset($4) AS given(
            place integer, of integer, type text, execution_id text, from_status text, to_status text, payload jsonb,
            traceparent text, occurred_at timestamptz)
        JOIN changed ON changed.place = given.of
    ), head AS (
        {take_sequences(_EVENTS_OF_ACCOUNTS)}
    ), ends AS MATERIALIZED (
        SELECT jsonb_object_agg(account_id, last_sequence) AS sequences FROM head
    ), told AS (
        INSERT INTO intents.broker_event (account_id, sequence, id, type, intent_id, broker_execution_id, from_status,
            to_status, intent_created_at, payload, traceparent, occurred_at)
        SELECT e.account_id,
               ((SELECT sequences FROM ends) ->> e.account_id::text)::bigint - count(*) OVER (PARTITION BY e.account_id)
               + row_number() OVER (PARTITION BY e.account_id ORDER BY e.place),
               gen_random_uuid(), e.type, e.intent_id, e.execution_id, e.from_status, e.to_status, e.intent_created_at,
               e.payload, e.traceparent, e.occurred_at
        FROM event e
    )
    SELECT place, ((SELECT sequences FROM ends) ->> account_id::text)::bigint FROM changed
    """,  # noqa: S608 - a constant
)
_FORGET = Statement(
    "execution_forget",
    ("jsonb",),
    """
    DELETE FROM intents.broker_order o
    USING jsonb_to_recordset($1) AS given(account_id uuid, client_order_id text)
    WHERE o.account_id = given.account_id AND o.client_order_id = given.client_order_id
      AND o.broker_order_id IS NULL
    RETURNING 1
    """,
)


def write(tx: Transaction, held: Sequence[Held]) -> list[tuple[Held, int | None]]:
    """What settling made of the intents: one statement. Those that it found as expected, and so has written.

    Each with the sequence at which the log of its account has arrived, None if there was nothing to tell there.
    """
    changed = [one for one in held if one.changed]
    if not changed:
        return []
    intents: list[dict[str, Any]] = []
    orders: list[dict[str, Any]] = []
    events: list[dict[str, Any]] = []
    for place, one in enumerate(changed):
        intents.append(_intent(one, place))
        orders += [_order(order, place) for order in one.orders.values() if order.changed]
        events += [{**event, "of": place, "traceparent": one.traceparent} for event in one.events]
    events.sort(key=_rank)
    for number, event in enumerate(events):
        event["place"] = number
    values = [as_json(rows) for rows in (intents, orders, _positions(changed), events)]
    written = [(changed[place], sequence) for place, sequence in tx.write(_WRITE, values)]
    unsent = [
        {"account_id": one.account_id, "client_order_id": client_order_id}
        for one, _ in written
        for client_order_id in one.unsent
    ]
    if unsent:
        tx.write(_FORGET, (as_json(unsent),))
    return written


def _intent(held: Held, place: int) -> dict[str, Any]:
    intent = held.intent
    row = {
        "place": place,
        "account_id": held.account_id,
        "intent_id": intent.id,
        "status": intent.status,
        "filled_quantity": intent.filled_quantity,
        "average_fill_price": intent.average_fill_price,
        "broker_order_id": intent.broker_order_id,
        "reason_code": intent.reason_code,
        "outcome": intent.outcome,
        "spec": intent.spec.as_json if held.respecified else None,
        "quantity": intent.quantity if held.respecified else None,
        "updated_at": intent.updated_at,
        "expected_version": intent.version,
        "holder": held.holder,
        "lease_token": held.lease_token,
        "next_attempt_at": held.next_attempt_at,
        "submit_started_at": held.submit_started_at,
        "accepted_at": held.accepted_at,
        "attempts": held.attempts,
        "open_actions": held.open_actions,
        "done_sequence": held.done_sequence,
        "absences": held.absences,
        "overordered": is_overordered(held),
    }
    return {name: value for name, value in row.items() if value is not None}  # the database would have to read it


def _order(order: BrokerOrder, place: int) -> dict[str, Any]:
    return {
        "of": place,
        "client_order_id": order.name,
        "action_sequence": order.action_sequence,
        "broker_order_id": order.broker_order_id,
        "status": order.status,
        "executions": sorted(order.executions),
        "filled_quantity": order.filled_quantity,
        "executed_quantity": order.executed_quantity,
        "filled_value": order.filled_value,
        "quantity": order.quantity,
        "credential": order.credential,
        "unwanted": order.unwanted,
    }


def _positions(held: Sequence[Held]) -> list[dict[str, Any]]:
    """One line for each position: Postgres changes a row only once in a statement."""
    rows: dict[tuple[UUID, str], dict[str, Any]] = {}
    for moved in sorted(({**move, "account_id": one.account_id} for one in held for move in one.positions), key=_rank):
        key = (moved["account_id"], moved["symbol"])
        before = rows.get(key, {"moved": Decimal(0), "stands": None})
        stands = moved["stands"] is not None
        rows[key] = moved | {
            "moved": Decimal(0) if stands else before["moved"] + moved["moved"],
            "stands": moved["stands"] if stands else before["stands"],
        }
    return list(rows.values())


_rank = itemgetter("rank")
