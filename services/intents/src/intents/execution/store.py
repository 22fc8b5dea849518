"""The only SQL of execution. Every moment is the database's; many intents are taken and settled by one statement each.

Locks are taken in one order everywhere: intents by account and id, then heads by account.
"""

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

from intents.execution.credentials import BEST_CREDENTIAL
from intents.execution.settling import BrokerOrder, Command, Held
from intents.execution.work import Claimed, Work
from intents.model import Intent, Spec, Status
from intents.model.chain import GENESIS
from intents.store.admission import INTENT_COLUMNS, to_intent
from intents.store.direct import Direct, Statement

_GENESIS = f"'\\x{GENESIS.hex()}'::bytea"

# The lease is the recovery point as well: from here on the command may have been sent. What is looked up by key is a
# subquery and not a join, because a join may be planned as a scan while the table is still small.
_CLAIM = Statement(
    "execution_claim",
    ("integer", "uuid", "double precision", "uuid[]"),
    f"""
    WITH due AS MATERIALIZED (
        SELECT account_id, id, submit_started_at FROM intents.intent
        WHERE open_actions > 0 AND next_attempt_at <= now() AND (lease_until IS NULL OR lease_until <= now())
          AND account_id <> ALL ($4)
        ORDER BY next_attempt_at LIMIT $1 FOR UPDATE SKIP LOCKED
    ), taken AS (
        UPDATE intents.intent i
        SET lease_token = $2, lease_until = now() + make_interval(secs => $3),
            next_attempt_at = now() + make_interval(secs => $3),
            submit_started_at = coalesce(i.submit_started_at, now())
        FROM due WHERE i.account_id = due.account_id AND i.id = due.id
        RETURNING i.account_id, i.id, i.organization_id, i.environment, i.symbol, i.order_side, i.spec, i.quantity,
                  i.filled_quantity, i.status, i.broker_order_id, i.created_at, i.attempts, i.done_sequence,
                  i.route_strategy, i.reason_code, i.version, i.updated_at, i.open_actions,
                  due.submit_started_at AS started_before
    ), command AS (
        SELECT t.*, a.id AS action_id, a.sequence, a.type, a.traceparent, coalesce(a.spec, t.spec) AS wanted
        FROM taken t CROSS JOIN LATERAL (
            SELECT id, sequence, type, traceparent, spec FROM intents.action a
            WHERE a.account_id = t.account_id AND a.intent_id = t.id AND a.sequence > t.done_sequence
            ORDER BY a.sequence LIMIT 1
        ) a
    ), started AS (
        INSERT INTO intents.broker_order (account_id, client_order_id, intent_id, action_sequence, status)
        SELECT account_id, 'tip-' || replace(action_id::text, '-', ''), id, sequence, 'STARTED'
        FROM command WHERE type <> 'CANCEL'
        ON CONFLICT (account_id, client_order_id) DO NOTHING
    )
    SELECT t.account_id, t.id, now(), t.action_id, t.type, t.created_at, t.symbol, t.order_side, t.wanted,
           t.quantity, t.filled_quantity, t.status, t.broker_order_id,
           CASE WHEN t.broker_order_id IS NULL THEN 0
                ELSE coalesce((SELECT o.filled_quantity FROM intents.broker_order o
                               WHERE o.account_id = t.account_id AND o.intent_id = t.id
                                 AND o.broker_order_id = t.broker_order_id), 0) END,
           t.started_before, t.attempts, (SELECT broker FROM accounts_api.account WHERE id = t.account_id),
           t.environment,
           CASE WHEN (SELECT trading_state FROM controls_api.account_switch WHERE account_id = t.account_id) = 'HALTED'
                THEN 'account'
                WHEN (SELECT trading_state FROM controls_api.organization_switch
                      WHERE organization_id = t.organization_id) = 'HALTED'
                THEN 'organization' END,
           (SELECT stale_order_millis FROM controls_api.symbol_time
            WHERE account_id = t.account_id AND symbol = t.symbol),
           (SELECT CASE WHEN status = 'active' THEN id || ':' || vault_version ELSE id || ' is ' || status END
            FROM accounts_api.credential WHERE account_id = t.account_id ORDER BY {BEST_CREDENTIAL} LIMIT 1),
           t.sequence, t.route_strategy, t.reason_code, t.version, t.updated_at, t.open_actions, t.done_sequence,
           t.traceparent
    FROM command t
    """,  # noqa: S608 - a constant
)


def claim(direct: Direct, limit: int, lease_seconds: float, except_of: Sequence[UUID] = ()) -> list[Work]:
    """Take what is due and nobody else's: the earliest unsettled command of each intent."""
    token = uuid4()
    now = time.monotonic()
    rows = direct.write(_CLAIM, (limit, str(token), lease_seconds, [str(account_id) for account_id in except_of]))
    return [_work(row, token, now, lease_seconds) for row in rows]


def _work(row: tuple[Any, ...], token: UUID, now: float, lease_seconds: float) -> Work:
    values = [*row[:2], token, now + lease_seconds, *row[2:_CLAIMED], Claimed(now, *row[_CLAIMED:])]
    values[_SPEC], values[_STATUS] = Spec.from_json(values[_SPEC]), Status(values[_STATUS])
    return Work(*values)


def held_since_claim(work: Work) -> Held:
    """The intent of a CREATE that was never tried before, as it was when it was claimed: nobody need read it again."""
    claimed = work.claimed
    now = work.now + timedelta(seconds=time.monotonic() - claimed.at)  # the database's clock, as well as we know it
    intent = Intent(
        id=work.intent_id,
        symbol=work.symbol,
        order_side=work.order_side,
        route_strategy=claimed.route_strategy,
        spec=work.spec,
        quantity=work.quantity,
        status=work.status,
        filled_quantity=work.filled_quantity,
        average_fill_price=None,
        broker_order_id=None,
        reason_code=claimed.reason_code,
        outcome=None,
        version=claimed.version,
        created_at=work.created_at,
        updated_at=claimed.updated_at,
    )
    name, none = work.client_order_id, Decimal(0)
    return Held(
        account_id=work.account_id,
        intent=intent,
        orders={name: BrokerOrder(name, claimed.sequence, None, "STARTED", set(), none, none, none)},
        command=Command(work.action_id, claimed.sequence, work.type, work.spec),
        now=now,
        lease_token=work.lease_token,
        holder=work.lease_token,
        next_attempt_at=now,
        submit_started_at=work.now,
        accepted_at=None,
        attempts=work.attempts,
        open_actions=claimed.open_actions,
        done_sequence=claimed.done_sequence,
        traceparent=claimed.traceparent,
    )


_CLAIMED = 21
_SPEC, _STATUS = (Work.__slots__.index(name) for name in ("spec", "status"))


_HELD_COLUMNS = (
    "lease_token",
    "next_attempt_at",
    "submit_started_at",
    "accepted_at",
    "attempts",
    "open_actions",
    "done_sequence",
)
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
           {", ".join(f"i.{name}" for name in _HELD_COLUMNS)},
           c.id, c.sequence, c.type, c.spec, c.traceparent, o.orders
    FROM intents.intent i JOIN wanted w ON i.account_id = w.account_id AND i.id = w.intent_id
    LEFT JOIN LATERAL (
        SELECT id, sequence, type, spec, traceparent FROM intents.action a
        WHERE a.account_id = i.account_id AND a.intent_id = i.id AND a.sequence > i.done_sequence
        ORDER BY a.sequence LIMIT 1
    ) c ON i.open_actions > 0
    LEFT JOIN LATERAL (
        SELECT jsonb_agg(jsonb_build_array(client_order_id, action_sequence, broker_order_id, status,
            executions, filled_quantity::text, executed_quantity::text, filled_value::text)) AS orders
        FROM intents.broker_order o WHERE o.account_id = i.account_id AND o.intent_id = i.id
    ) o ON true
    """,  # noqa: S608 - only our own column names
)


def hold(
    direct: Direct,
    intents: Iterable[tuple[UUID, UUID]],
    orders: Iterable[tuple[UUID, str]],
) -> list[Held]:
    """The intents, and those of the orders, under lock until the transaction ends."""
    given = _json({"account_id": account_id, "intent_id": intent_id} for account_id, intent_id in intents)
    heard = _json({"account_id": account_id, "client_order_id": order_id} for account_id, order_id in orders)
    direct.write(_LOCK, (given, heard))
    return [_held(row) for row in direct.write(_READ, (given, heard))]


def _held(row: tuple[Any, ...]) -> Held:
    columns = 2 + len(INTENT_COLUMNS)
    kept = dict(zip(_HELD_COLUMNS, row[columns:], strict=False))
    action_id, sequence, type_, spec, traceparent, orders = row[columns + len(_HELD_COLUMNS) :]
    return Held(
        account_id=row[0],
        intent=to_intent(row[2:columns]),
        orders={one[0]: _broker_order(one) for one in orders or ()},
        command=Command(action_id, sequence, type_, spec and Spec.from_json(spec)) if action_id else None,
        now=row[1],
        traceparent=traceparent,
        **kept,
    )


def _broker_order(values: Sequence[Any]) -> BrokerOrder:
    filled, executed, value = (Decimal(number) for number in values[5:])
    name, sequence, broker_order_id, status, executions = values[:5]
    return BrokerOrder(name, sequence, broker_order_id, status, set(executions), filled, executed, value)


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
            open_actions integer, done_sequence bigint)
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
            done_sequence = g.done_sequence
        FROM as_expected g WHERE i.account_id = g.account_id AND i.id = g.intent_id
        RETURNING g.place, i.account_id, i.id, i.created_at
    ), orders AS (
        INSERT INTO intents.broker_order AS o (account_id, client_order_id, intent_id, action_sequence,
            broker_order_id, status, executions, filled_quantity, executed_quantity, filled_value)
        SELECT changed.account_id, client_order_id, changed.id, action_sequence, broker_order_id, status, executions,
               filled_quantity, executed_quantity, filled_value
        FROM jsonb_to_recordset($2) AS given(
            of integer, client_order_id text, action_sequence bigint, broker_order_id text, status text,
            executions text[], filled_quantity numeric, executed_quantity numeric, filled_value numeric)
        JOIN changed ON changed.place = given.of
        ON CONFLICT (account_id, client_order_id) DO UPDATE SET broker_order_id = excluded.broker_order_id,
            status = excluded.status, executions = excluded.executions, filled_quantity = excluded.filled_quantity,
            executed_quantity = excluded.executed_quantity, filled_value = excluded.filled_value, updated_at = now()
    ), positions AS (
        INSERT INTO intents.position AS held (account_id, symbol, quantity, last_price, updated_at)
        SELECT account_id, symbol, coalesce(stands, 0) + moved, price, now()
        FROM jsonb_to_recordset($3) AS given(account_id uuid, symbol text, moved numeric, stands numeric, price numeric)
        ORDER BY account_id, symbol
        ON CONFLICT (account_id, symbol) DO UPDATE SET updated_at = now(),
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
        INSERT INTO intents.account_head AS head (account_id, last_sequence, last_hash, previous_hash)
        SELECT account_id, count(*), {_GENESIS}, {_GENESIS} FROM event GROUP BY account_id ORDER BY account_id
        ON CONFLICT (account_id) DO UPDATE SET last_sequence = head.last_sequence + excluded.last_sequence
        RETURNING account_id, last_sequence
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


def write(direct: Direct, held: Sequence[Held]) -> list[tuple[Held, int | None]]:
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
        events += [
            {**event, "of": place, "place": number, "traceparent": one.traceparent}
            for number, event in enumerate(one.events, len(events))
        ]
    values = [_json(rows) for rows in (intents, orders, _positions(changed), events)]
    written = [(changed[place], sequence) for place, sequence in direct.write(_WRITE, values)]
    unsent = [
        {"account_id": one.account_id, "client_order_id": client_order_id}
        for one, _ in written
        for client_order_id in one.unsent
    ]
    if unsent:
        direct.write(_FORGET, (_json(unsent),))
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
    }
    return {name: value for name, value in row.items() if value is not None}  # the database would have to read it


def _order(order: BrokerOrder, place: int) -> dict[str, Any]:
    return {
        "of": place,
        "client_order_id": order.client_order_id,
        "action_sequence": order.action_sequence,
        "broker_order_id": order.broker_order_id,
        "status": order.status,
        "executions": sorted(order.executions),
        "filled_quantity": order.filled_quantity,
        "executed_quantity": order.executed_quantity,
        "filled_value": order.filled_value,
    }


def _positions(held: Sequence[Held]) -> list[dict[str, Any]]:
    """One line for each position: Postgres changes a row only once in a statement."""
    rows: dict[tuple[UUID, str], dict[str, Any]] = {}
    for one in held:
        for moved in one.positions:
            key = (one.account_id, moved["symbol"])
            before = rows.get(key, {"moved": Decimal(0), "stands": None})
            stands = moved["stands"] is not None
            rows[key] = {
                "account_id": one.account_id,
                **moved,
                "moved": Decimal(0) if stands else before["moved"] + moved["moved"],
                "stands": moved["stands"] if stands else before["stands"],
            }
    return list(rows.values())


def _json(rows: Iterable[Mapping[str, Any]]) -> str:
    return json.dumps(list(rows), default=_text, separators=(",", ":"), check_circular=False)


def _text(value: object) -> str:
    return _TEXT[type(value)](value)


_TEXT: Mapping[type, Callable[[Any], str]] = {UUID: str, datetime: datetime.isoformat, Decimal: "{:f}".format}
