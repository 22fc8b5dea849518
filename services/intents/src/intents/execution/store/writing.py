"""What settling made of intents: status, orders, positions and events of many of them in one statement."""

from collections.abc import Sequence
from decimal import Decimal
from operator import itemgetter
from typing import Any
from uuid import UUID

from intents.execution.model.locked_intent import BrokerOrder
from intents.execution.model.settlement import Settlement
from intents.execution.store.calls import append_calls, call_rows
from intents.execution.store.expressions import ENDED_SQL
from intents.execution.store.positions import MOVED
from intents.execution.store.rows import PROGRESS_COLUMNS, as_json
from intents.store.account_head import take_sequences
from intents.store.connections import OpenTransaction
from intents.store.key_budgets import settle_budgets, used
from intents.store.order_totals import add_to_totals, is_open, open_quantity
from intents.store.statement import Statement, Transaction

_EVENTS_OF_ACCOUNTS = (
    "SELECT account_id, NULL::uuid AS organization_id, count(*) AS sequences FROM event GROUP BY account_id"
)
# The subquery runs before the first row: heads are locked before totals, as everywhere.
_OPEN_CHANGES = """
    SELECT account_id, organization_id, symbol, order_side, 0 AS orders, opened, added AS quantity
    FROM changed WHERE (opened <> 0 OR added <> 0) AND (SELECT count(*) FROM head) >= 0
"""
_LOCK_BUDGETS, _ADD_TO_BUDGETS = settle_budgets("changed", "counted")
# An older price, of a fill that comes late, replaces no newer one.
_IS_NEWER = "excluded.price_at >= coalesce(held.price_at, '-infinity')"
# An order that has ended keeps the moment at which that was recorded: a report read after it contains all of its fills.
_WRITE = Statement(
    "execution_write",
    ("jsonb", "jsonb", "jsonb", "jsonb", "jsonb", "jsonb"),
    f"""
    WITH given AS (
        SELECT * FROM jsonb_to_recordset($1) AS given(
            place integer, account_id uuid, intent_id uuid, status text, filled_quantity numeric,
            average_fill_price numeric,
            broker_order_id text, reason_code text, outcome text, spec json, quantity numeric,
            updated_at timestamptz, expected_version bigint, expected_lease uuid, lease_token uuid,
            next_attempt_at timestamptz, submit_started_at timestamptz, accepted_at timestamptz, attempts integer,
            open_actions integer, done_sequence bigint, absences integer, overordered boolean,
            armed_at timestamptz, uncounted boolean, waiting_since timestamptz)
    ), as_expected AS MATERIALIZED (
        SELECT g.*, {open_quantity("i")} AS open_before, {is_open("i")} AS was_open, {used("i")} AS used_before
        FROM given g JOIN intents.intent i ON i.account_id = g.account_id AND i.id = g.intent_id
        WHERE i.version = g.expected_version AND (g.expected_lease IS NULL OR i.lease_token = g.expected_lease)
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
            done_sequence = g.done_sequence, absences = g.absences, overordered = g.overordered,
            armed_at = g.armed_at, uncounted = g.uncounted, waiting_since = g.waiting_since,
            replace_quantity = CASE WHEN g.status IN ('PENDING_REPLACE', 'PENDING_CANCEL') THEN i.replace_quantity END
        FROM as_expected g WHERE i.account_id = g.account_id AND i.id = g.intent_id
        RETURNING g.place, i.account_id, i.id, i.created_at, i.organization_id, i.symbol, i.order_side,
                  {is_open("i")} - g.was_open AS opened, {open_quantity("i")} - g.open_before AS added,
                  i.budget_key_id, i.budget_day_ends_at, {used("i")} - g.used_before AS used
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
        ON CONFLICT (account_id, client_order_id) DO UPDATE SET
            intent_id = coalesce(o.intent_id, excluded.intent_id),
            action_sequence = coalesce(o.action_sequence, excluded.action_sequence),
            credential = coalesce(o.credential, excluded.credential), broker_order_id = excluded.broker_order_id,
            status = excluded.status, executions = excluded.executions, filled_quantity = excluded.filled_quantity,
            executed_quantity = excluded.executed_quantity, filled_value = excluded.filled_value,
            updated_at = CASE WHEN o.status IN ({ENDED_SQL}) THEN o.updated_at ELSE now() END,
            quantity = excluded.quantity, unwanted_since = coalesce(o.unwanted_since, excluded.unwanted_since)
    ), unsent AS MATERIALIZED (
        SELECT changed.account_id, client_order_id
        FROM jsonb_to_recordset($5) AS given(of integer, client_order_id text) JOIN changed ON changed.place = given.of
    ), deleted AS (
        DELETE FROM intents.broker_order o USING unsent
        WHERE o.account_id = unsent.account_id AND o.client_order_id = unsent.client_order_id
          AND o.broker_order_id IS NULL
    ), positions AS (
        INSERT INTO intents.position AS held (account_id, symbol, quantity, last_price, updated_at, reconciled_at,
            price_at, price_source)
        SELECT account_id, symbol, moved, price, now(), CASE WHEN stands = moved THEN now() END,
               CASE WHEN price IS NOT NULL THEN least(price_at, now()) END, CASE WHEN price IS NOT NULL THEN 'fill' END
        FROM jsonb_to_recordset($3) AS given(account_id uuid, symbol text, moved numeric, stands numeric, price numeric,
            price_at timestamptz)
        ORDER BY account_id, symbol
        ON CONFLICT (account_id, symbol) DO UPDATE SET updated_at = now(),
            last_price = CASE WHEN {_IS_NEWER} THEN excluded.last_price ELSE held.last_price END,
            price_at = CASE WHEN {_IS_NEWER} THEN excluded.price_at ELSE held.price_at END,
            price_source = CASE WHEN {_IS_NEWER} THEN excluded.price_source ELSE held.price_source END,
            average_entry_price = NULL, market_value = NULL, unrealized_profit = NULL,
            (quantity, reconciled_at) = (
                SELECT held.quantity + fills.moved,
                       CASE WHEN given.stands = held.quantity + fills.moved THEN now() ELSE held.reconciled_at END
                FROM jsonb_to_recordset($3) AS given(account_id uuid, symbol text, stands numeric, fills jsonb)
                CROSS JOIN LATERAL ({MOVED}) fills
                WHERE given.account_id = held.account_id AND given.symbol = held.symbol)
    ), called AS (
        {append_calls("changed", "$6")}
    ), event AS (
        SELECT given.*, changed.account_id, changed.id AS intent_id, changed.created_at AS intent_created_at
        FROM jsonb_to_recordset($4) AS given(
            place integer, of integer, type text, execution_id text, from_status text, to_status text, payload jsonb,
            traceparent text, occurred_at timestamptz)
        JOIN changed ON changed.place = given.of
    ), head AS (
        {take_sequences(_EVENTS_OF_ACCOUNTS)}
    ), counted AS (
        {add_to_totals(_OPEN_CHANGES)}
    ), budgets AS MATERIALIZED (
        {_LOCK_BUDGETS}
    ), spent AS (
        {_ADD_TO_BUDGETS}
    ), ends AS MATERIALIZED (
        SELECT jsonb_object_agg(account_id, last_sequence) AS sequences FROM head
    ), logged AS (
        INSERT INTO intents.account_event (account_id, sequence, id, type, intent_id, broker_execution_id, from_status,
            to_status, intent_created_at, payload, traceparent, occurred_at)
        SELECT e.account_id,
               ((SELECT sequences FROM ends) ->> e.account_id::text)::bigint - count(*) OVER (PARTITION BY e.account_id)
               + row_number() OVER (PARTITION BY e.account_id ORDER BY e.place),
               gen_random_uuid(), e.type, e.intent_id, e.execution_id, e.from_status, e.to_status, e.intent_created_at,
               e.payload, e.traceparent, e.occurred_at
        FROM event e ORDER BY e.account_id, e.place
    )
    SELECT place, ((SELECT sequences FROM ends) ->> account_id::text)::bigint AS head FROM changed
    """,  # noqa: S608 - a constant
)


def write(tx: Transaction, settlements: Sequence[Settlement]) -> list[tuple[Settlement, int | None]]:
    """What settling made of the intents: one statement. Those that it found as expected, and so has written.

    Each with the new head of its account's log, None if there was no event.
    """
    changed = [settlement for settlement in settlements if settlement.is_changed]
    if not changed:
        return []
    rows = tx.write(_WRITE, [as_json(table) for table in _rows(changed)])
    return [(changed[row.place], row.head) for row in rows]


_HEADS = Statement(
    "execution_heads",
    ("uuid[]",),
    "SELECT account_id, last_sequence FROM intents.account_head WHERE account_id = ANY($1)",
)


def write_last(tx: OpenTransaction, settlements: Sequence[Settlement]) -> list[tuple[Settlement, int | None]]:
    """The same of intents under lock, and commit: others need not wait for the logs of their accounts until we run."""
    changed = [settlement for settlement in settlements if settlement.is_changed]
    if not changed:
        return []
    accounts = sorted({str(settlement.locked.account_id) for settlement in changed})
    rows = tx.write_last(_WRITE, [as_json(table) for table in _rows(changed)], _HEADS, [accounts])
    heads = {row.account_id: row.last_sequence for row in rows}
    return [(settlement, heads[settlement.locked.account_id] if settlement.events else None) for settlement in changed]


def _rows(changed: Sequence[Settlement]) -> tuple[list[dict[str, Any]], ...]:
    """Intents, orders, positions, events, orders that were not sent and calls; `of` is the place of their intent."""
    intents: list[dict[str, Any]] = []
    orders: list[dict[str, Any]] = []
    events: list[dict[str, Any]] = []
    unsent: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    for place, settlement in enumerate(changed):
        intents.append(_intent(settlement, place))
        orders += [_order(order, place) for order in settlement.changed_orders]
        events += [{**event, "of": place, "traceparent": settlement.locked.traceparent} for event in settlement.events]
        unsent += [{"of": place, "client_order_id": key} for key in settlement.deleted_orders]
        calls += call_rows(settlement.calls, place)
    events.sort(key=_rank)
    for number, event in enumerate(events):
        event["place"] = number
    return intents, orders, _positions(changed), events, unsent, calls


def _intent(settlement: Settlement, place: int) -> dict[str, Any]:
    intent, before = settlement.intent, settlement.locked.intent
    row = {
        "place": place,
        "account_id": settlement.locked.account_id,
        "intent_id": intent.id,
        "status": intent.status,
        "filled_quantity": intent.filled_quantity,
        "average_fill_price": intent.average_fill_price,
        "broker_order_id": intent.broker_order_id,
        "reason_code": intent.reason_code,
        "outcome": intent.outcome,
        "spec": intent.spec.as_json if intent.spec != before.spec else None,
        "quantity": intent.quantity if intent.quantity != before.quantity else None,
        "updated_at": intent.updated_at,
        "expected_version": intent.version,
        "expected_lease": settlement.locked.expected_lease,
        "overordered": settlement.is_overordered,
        "armed_at": intent.armed_at,
        "uncounted": intent.uncounted,
        **{name: getattr(settlement.progress, name) for name in PROGRESS_COLUMNS},
    }
    return {name: value for name, value in row.items() if value is not None}  # the database would have to read it


def _order(order: BrokerOrder, place: int) -> dict[str, Any]:
    return {
        "of": place,
        "client_order_id": order.key,
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


def _positions(settlements: Sequence[Settlement]) -> list[dict[str, Any]]:
    """One line for each position: Postgres changes a row only once in a statement.

    `stands` is what the broker says that the position is after all of it.
    """
    rows: dict[tuple[UUID, str], dict[str, Any]] = {}
    changes = (
        {**change, "account_id": settlement.locked.account_id, "before": _filled_before(settlement, change["key"])}
        for settlement in settlements
        for change in settlement.position_changes
    )
    for change in sorted(changes, key=_rank):
        key = (change["account_id"], change["symbol"])
        before = rows.get(key, {"moved": Decimal(0), "price": None, "fills": {}})
        total = before["moved"] + change["moved"]
        rows[key] = change | _newer_price(before, change) | {"moved": total, "fills": _fills(before["fills"], change)}
    return [row | {"fills": list(row["fills"].values())} for row in rows.values()]


def _filled_before(settlement: Settlement, key: str | None) -> Decimal:
    order = settlement.locked.orders.get(key) if key else None
    return order.filled_quantity if order else Decimal(0)


def _fills(before: dict[str, dict[str, Any]], change: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """By order: what was filled of it before, and by how much it moves the position now."""
    key = change["key"]
    if key is None:
        return before
    moved = change["moved"] + (before[key]["moved"] if key in before else 0)
    return before | {key: {"key": key, "before": change["before"], "moved": moved}}


def _newer_price(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Of two changes, the price that was made later."""
    if before["price"] is None or (after["price"] is not None and after["price_at"] >= before["price_at"]):
        return {"price": after["price"], "price_at": after["price_at"]}
    return {"price": before["price"], "price_at": before["price_at"]}


_rank = itemgetter("rank")
