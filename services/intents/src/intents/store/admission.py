"""What a submit reads and writes: one statement each."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from sqlalchemy import exc

import control_rules
from chassis import tracing
from chassis.access import KeyRow
from control_rules.rows import RULES_COLUMNS
from intents import model
from intents.model import chain
from intents.store.direct import Direct, Statement, Uncertain
from intents.store.reads import by_id

EVENT_TYPE = "intent.submitted"
KEPT_HOURS = 24  # how long an idempotency key is remembered

INTENT_COLUMNS = (
    "id",
    "symbol",
    "order_side",
    "route_strategy",
    "spec",
    "quantity",
    "status",
    "filled_quantity",
    "average_fill_price",
    "broker_order_id",
    "reason_code",
    "outcome",
    "version",
    "created_at",
    "updated_at",
)
_EARLIER_COLUMNS = ("request_hash", "intent_id", "action_id", "state", "created")
_KEY_COLUMNS = KeyRow._fields


def _columns(of: str, names: Sequence[str]) -> str:
    return ", ".join(f"{of}.{name}" for name in names)


def _facts_statement(name: str, *, of_intent: bool) -> Statement:
    columns = [_columns("k", _KEY_COLUMNS), _columns("d", _EARLIER_COLUMNS), _columns("r", RULES_COLUMNS)]
    intent = "LEFT JOIN intents.intent i ON i.account_id = a.id AND i.id = $4" if of_intent else ""
    return Statement(
        name,
        ("text", "uuid", "text", "uuid", "text"),
        f"""
        SELECT clock_timestamp(), a.id, a.organization_id, a.environment, a.time_zone, a.disabled, a.version,
               {", ".join([*columns, *([_columns("i", INTENT_COLUMNS)] if of_intent else [])])}
        FROM (SELECT) one
        LEFT JOIN identity_api.api_key k ON k.prefix = $1 AND NOT k.disabled AND NOT k.organization_disabled
             AND (k.expires_at IS NULL OR k.expires_at > now())
        LEFT JOIN accounts_api.account a ON a.id = $2
        {intent}
        LEFT JOIN intents.idempotency d ON d.account_id = a.id AND d.key = $5
             AND d.created_at > now() - interval '{KEPT_HOURS} hours'
        LEFT JOIN LATERAL controls_api.rules(
            a.organization_id, a.id, {"i.symbol" if of_intent else "$3"}) r ON a.id IS NOT NULL
        """,  # noqa: S608 - only our own column names
    )


_FACTS = _facts_statement("intents_facts", of_intent=False)
_FACTS_OF_INTENT = _facts_statement("intents_facts_of_intent", of_intent=True)
_ACCOUNT = slice(1, 4)
_ACCOUNT_CONTROLS = slice(4, 7)
_KEY = slice(7, 7 + len(_KEY_COLUMNS))
_EARLIER = slice(_KEY.stop, _KEY.stop + len(_EARLIER_COLUMNS))
_RULES = slice(_EARLIER.stop, _EARLIER.stop + len(RULES_COLUMNS))
_INTENT = slice(_RULES.stop, _RULES.stop + len(INTENT_COLUMNS))
_CONTROL_NAMES = ("time_zone", "account_disabled", "account_version", *RULES_COLUMNS)


class Question(NamedTuple):
    """Of what the facts are wanted: `key_prefix` is None when the caller is known already."""

    account_id: UUID | None
    symbol: str | None = None
    ref_intent_id: UUID | None = None
    idempotency_key: str | None = None
    key_prefix: str | None = None


def facts(direct: Direct, question: Question) -> tuple[model.Facts, list[KeyRow]]:
    """Everything that deciding needs, and the API keys with the prefix: more than one is unlikely, not impossible."""
    rows = direct.read(
        _FACTS_OF_INTENT if question.ref_intent_id else _FACTS,
        (
            question.key_prefix,
            question.account_id and str(question.account_id),
            question.symbol,
            question.ref_intent_id and str(question.ref_intent_id),
            question.idempotency_key,
        ),
    )
    return _facts(rows[0]), [KeyRow(*row[_KEY]) for row in rows if row[_KEY.start] is not None]


def _facts(row: tuple[Any, ...]) -> model.Facts:
    if row[1] is None:
        return model.Facts(row[0], None)
    controls = dict(zip(_CONTROL_NAMES, (*row[_ACCOUNT_CONTROLS], *row[_RULES]), strict=True))
    return model.Facts(
        row[0],
        model.Account(*row[_ACCOUNT]),
        to_intent(row[_INTENT]) if any(row[_INTENT]) else None,
        model.Earlier(bytes(row[_EARLIER.start]), *row[_EARLIER][1:]) if row[_EARLIER.start] else None,
        control_rules.facts_from_row(controls),
    )


def to_intent(values: Sequence[Any]) -> model.Intent:
    named = dict(zip(INTENT_COLUMNS, values, strict=True))
    return model.Intent(
        **named | {"spec": model.Spec.from_json(named["spec"]), "status": model.Status(named["status"])}
    )


# The row of the account that is written last holds up its other writers: so it is taken late, and by one statement.
_HEAD = f"""
    INSERT INTO intents.account_head AS head (account_id, last_sequence, last_hash, previous_hash)
    SELECT $1, 1, sha256('\\x{chain.GENESIS.hex()}'::bytea || int8send(1) || $2), '\\x{chain.GENESIS.hex()}'::bytea
    WHERE {{condition}}
    ON CONFLICT (account_id) DO UPDATE SET
        last_sequence = head.last_sequence + 1, previous_hash = head.last_hash,
        last_hash = sha256(head.last_hash || int8send(head.last_sequence + 1) || $2)
    RETURNING last_sequence, previous_hash, last_hash
"""
# A key that was used within its time gives no row, and without that row nothing else is written.
_UNLESS_KEPT = f"""
    ON CONFLICT (account_id, key) DO UPDATE SET request_hash = excluded.request_hash, intent_id = excluded.intent_id,
        action_id = excluded.action_id, state = excluded.state, created_at = excluded.created_at,
        created = excluded.created
        WHERE earlier.created_at <= excluded.created_at - interval '{KEPT_HOURS} hours'
    RETURNING 1
"""
_ONCE = f"""
    INSERT INTO intents.idempotency AS earlier (account_id, key, request_hash, intent_id, action_id, state, created_at)
    SELECT $1, $19, $20, $5, $4, $21, $15 WHERE $19 IS NOT NULL
    {_UNLESS_KEPT}
"""
_REMEMBER = Statement(
    "intents_remember",
    ("uuid", "text", "bytea", "uuid", "uuid", "jsonb", "timestamptz"),
    f"""
    INSERT INTO intents.idempotency AS earlier (account_id, key, request_hash, intent_id, action_id, state, created_at,
                                                created)
    VALUES ($1, $2, $3, $4, $5, $6, $7, false)
    {_UNLESS_KEPT}
    """,  # noqa: S608 - only our own words
)
_ACTION = """
    INSERT INTO intents.action (
        account_id, sequence, id, organization_id, environment, intent_id, type, payload, symbol, order_side, spec,
        route_strategy, ref_intent_id, actor_type, actor_id, reason, controls, from_status, to_status,
        intent_created_at, traceparent, previous_hash, hash, created_at)
    SELECT $1, head.last_sequence, $4, $3, $6, $5, $7, $8, $9, $10, $11, $12, $22, $13, $14, $23, $16, $24, $25, $26,
           $17, head.previous_hash, head.last_hash, $15
    FROM head
    RETURNING sequence, previous_hash, hash
"""
_OUTBOX = f"""
    INSERT INTO intents.outbox (event_id, event_type, payload, traceparent)
    SELECT $18, '{EVENT_TYPE}', jsonb_build_object(
        'event_id', $18, 'event_type', '{EVENT_TYPE}', 'occurred_at', $15, 'organization_id', $3,
        'account_id', $1, 'intent_id', $5, 'action_id', $4), $17
    FROM head
"""  # noqa: S608 - a constant
_TYPES = (
    *("uuid", "bytea", "uuid", "uuid", "uuid", "text", "text", "json", "text", "text", "json", "text"),
    *("text", "text", "timestamptz", "json", "text", "uuid", "text", "bytea", "jsonb", "uuid", "text"),
    *("text", "text", "timestamptz"),
)
_CREATE = Statement(
    "intents_create",
    (*_TYPES, "numeric"),
    f"""
    WITH once AS ({_ONCE}), head AS ({_HEAD.format(condition="$19 IS NULL OR EXISTS (SELECT FROM once)")}), made AS (
        INSERT INTO intents.intent (
            account_id, id, organization_id, environment, symbol, order_side, route_strategy, spec, quantity, status,
            created_at, updated_at, next_attempt_at)
        SELECT $1, $5, $3, $6, $9, $10, $12, $11, $27, $25, $15, $15, $15 FROM head
    ), told AS ({_OUTBOX})
    {_ACTION}
    """,  # noqa: S608 - only our own words
)
_AMEND = Statement(
    "intents_amend",
    (*_TYPES, "bigint"),
    f"""
    WITH once AS ({_ONCE}), changed AS (
        UPDATE intents.intent
        SET status = $25, version = version + 1, updated_at = $15, open_actions = open_actions + 1,
            next_attempt_at = least(next_attempt_at, $15)
        WHERE account_id = $1 AND id = $5 AND version = $27 AND ($19 IS NULL OR EXISTS (SELECT FROM once))
        RETURNING 1
    ), head AS ({_HEAD.format(condition="EXISTS (SELECT FROM changed)")}), told AS ({_OUTBOX})
    {_ACTION}
    """,  # noqa: S608 - only our own words
)


class Once(NamedTuple):
    """A request that must not be done twice."""

    key: str
    request_hash: bytes


class FactsChanged(Exception):
    """Somebody else wrote between the read and the write: decide again."""


def append(direct: Direct, admission: model.Admission, once: Once | None) -> model.Action:
    """Write the action and all that goes with it, or nothing and FactsChanged.

    Of what was being committed when the connection was lost, the log itself tells whether it was.
    """
    values = _values(admission, once)
    try:
        if admission.change.before is None:
            return _appended(admission.action, direct.write(_CREATE, (*values, admission.action.state.leaves_quantity)))
        with direct.transaction():
            return _appended(admission.action, direct.write(_AMEND, (*values, admission.change.version)))
    except Uncertain:
        return written(direct, admission.action)
    except exc.OperationalError as error:
        raise (_in_flight(error) or error) from error


def written(direct: Direct, action: model.Action) -> model.Action:
    """The action as the log has it, with the state it was given; OutcomeUnknown if the log does not show it now."""
    try:
        found = by_id(direct, action.account_id, action.intent_id, action.id)
    except exc.SQLAlchemyError as error:
        raise model.OutcomeUnknown from error
    if found is None:  # which is no proof: it may be on its way still
        raise model.OutcomeUnknown
    return replace(found, state=action.state)


def remember(direct: Direct, action: model.Action, once: Once, now: datetime) -> None:
    """Keep that a request was answered with an action that was there already."""
    record = model.record(action)
    kept = json.dumps(record["state"])
    values = (record["account_id"], once.key, once.request_hash, record["intent_id"], record["id"], kept, now)
    try:
        if not direct.write(_REMEMBER, values):
            raise FactsChanged
    except Uncertain as error:
        raise model.OutcomeUnknown from error
    except exc.OperationalError as error:
        raise (_in_flight(error) or error) from error


def _appended(action: model.Action, rows: list[tuple[Any, ...]]) -> model.Action:
    if not rows:
        raise FactsChanged
    sequence, previous_hash, last_hash = rows[0]
    return replace(action, sequence=sequence, previous_hash=bytes(previous_hash), hash=bytes(last_hash))


def _in_flight(error: exc.OperationalError) -> Exception | None:
    """Postgres says on which table it waited too long for another transaction."""
    context = getattr(getattr(error.orig, "diag", None), "context", None) or ""
    return model.IdempotentRequestInFlight() if "idempotency" in context else None


def _values(admission: model.Admission, once: Once | None) -> tuple[Any, ...]:
    action, change = admission
    record = model.record(action)
    return (
        record["account_id"],
        chain.digest(record),
        record["organization_id"],
        record["id"],
        record["intent_id"],
        action.environment,
        action.type,
        json.dumps(action.payload),
        action.symbol,
        action.order_side,
        action.spec and json.dumps(action.spec),
        action.route_strategy,
        *action.actor,
        action.created_at,
        json.dumps(action.controls),
        tracing.traceparent(),
        str(uuid4()),
        once and once.key,
        once and once.request_hash,
        once and json.dumps(record["state"]),
        record["ref_intent_id"],
        action.reason,
        change.before,
        change.after,
        change.intent_created_at,
    )


_REFUSE = Statement(
    "intents_refuse",
    ("uuid", "uuid", "uuid", "text", "text", "text", "text", "jsonb", "timestamptz", "text[]"),
    """
    WITH kept AS (
        INSERT INTO intents.refusal (account_id, id, organization_id, type, symbol, actor_type, actor_id, reasons,
                                     created_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
    )
    INSERT INTO intents.statistic AS counted (account_id, width, bucket, kind, key, amount)
    SELECT $1, width, date_trunc(width, $9, 'UTC'), 'refusal', code, 1
    FROM unnest(ARRAY['minute', 'hour', 'day']) width, unnest($10) code ORDER BY width, code
    ON CONFLICT (account_id, width, bucket, kind, key) DO UPDATE SET amount = counted.amount + 1
    RETURNING 1
    """,
)


def refuse(
    direct: Direct, account: model.Account, actor: model.Actor, command: model.Command, refusal: model.ControlRejected
) -> None:
    """Keep a refusal by controls for the statistics; it leaves no trace in the log."""
    direct.write(
        _REFUSE,
        (
            str(account.id),
            str(uuid4()),
            str(account.organization_id),
            command.type,
            refusal.symbol,
            *actor,
            json.dumps(refusal.reasons),
            refusal.moment,
            sorted({str(reason["code"]) for reason in refusal.reasons}),
        ),
    )


_ORDER_FACTS = Statement(
    "intents_order_facts",
    ("uuid", "text", "text", "uuid", "timestamptz"),
    """
    WITH recent AS (
        SELECT symbol, created_at FROM intents.action
        WHERE account_id = $1 AND created_at > $5 - interval '24 hours' AND type <> 'CANCEL'
    )
    SELECT count(*) FILTER (WHERE created_at > $5 - interval '60 seconds'), count(*),
           count(*) FILTER (WHERE symbol = $2 AND created_at > $5 - interval '60 seconds'),
           count(*) FILTER (WHERE symbol = $2),
           coalesce((SELECT quantity FROM intents.position WHERE account_id = $1 AND symbol = $2), 0),
           (SELECT coalesce(sum(greatest(quantity, CASE WHEN status IN ('PENDING_REPLACE', 'PENDING_CANCEL') THEN (
                SELECT (terms.value ->> 'quantity')::numeric FROM intents.action a, json_each(a.spec) terms
                WHERE a.account_id = i.account_id AND a.intent_id = i.id AND a.type = 'REPLACE'
                ORDER BY a.sequence DESC LIMIT 1) END) - filled_quantity), 0) FROM intents.intent i
            WHERE account_id = $1 AND symbol = $2 AND order_side = $3 AND id IS DISTINCT FROM $4
              AND status NOT IN ('FILLED', 'CANCELED', 'REJECTED', 'DENIED', 'EXPIRED', 'FAILED')),
           (SELECT last_price FROM intents.position WHERE account_id = $1 AND symbol = $2)
    FROM recent
    """,
)
_LOCK_ACCOUNT = Statement(
    "intents_lock_account",
    ("uuid",),
    f"""
    INSERT INTO intents.account_head AS head (account_id, last_sequence, last_hash, previous_hash)
    VALUES ($1, 0, '\\x{chain.GENESIS.hex()}'::bytea, '\\x{chain.GENESIS.hex()}'::bytea)
    ON CONFLICT (account_id) DO UPDATE SET last_sequence = head.last_sequence RETURNING 1
    """,  # noqa: S608 - a constant
)


def with_order_facts(direct: Direct, facts: model.Facts, symbol: str, order_side: str) -> model.Facts:
    """The facts with what limits and the state REDUCING ask for, as it stands now."""
    if facts.account is None or facts.controls is None:
        return facts
    values = (str(facts.account.id), symbol, order_side, facts.intent and str(facts.intent.id), facts.now)
    [row] = direct.read(_ORDER_FACTS, values)
    return replace(
        facts,
        controls=replace(
            facts.controls,
            account_orders=control_rules.OrderCounts(row[0], row[1]),
            symbol_orders=control_rules.OrderCounts(row[2], row[3]),
            position_quantity=row[4],
            open_quantity=row[5],
            reference_price=row[6],
        ),
    )


_LOCK_INTENTS = Statement(
    "intents_lock_intents",
    ("uuid", "uuid[]"),
    "SELECT 1 FROM intents.intent WHERE account_id = $1 AND id = ANY($2) ORDER BY id FOR UPDATE",
)


def lock(direct: Direct, account_id: UUID, intent_ids: Sequence[UUID]) -> None:
    """Hold up the account's other writers until this transaction ends; intents first, as everywhere."""
    if intent_ids:
        direct.write(_LOCK_INTENTS, (str(account_id), f"{{{','.join(map(str, intent_ids))}}}"))
    direct.write(_LOCK_ACCOUNT, (str(account_id),))
