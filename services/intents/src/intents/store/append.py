"""Appends actions to the log, each with its intent, idempotency key and outbox row, in one write."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import exc

from intents import model
from intents.model import PendingAction, Spec, chain
from intents.model.events import INTENT_SUBMITTED
from intents.store.account_head import extend_chain
from intents.store.connections import Row, Statement, Transaction
from intents.store.facts import KEPT_HOURS
from intents.store.order_totals import add_to_totals, open_quantity
from intents.store.reads import by_id

_GIVEN = """
    SELECT * FROM json_to_recordset($1) AS given (
        account_id uuid, organization_id uuid, environment text, intent_id uuid, action_id uuid, event_id uuid,
        type text, payload json, symbol text, order_side text, spec json, route_strategy text,
        ref_intent_id uuid, actor_type text, actor_id text, reason text, controls json, traceparent text,
        from_status text, to_status text, intent_created_at timestamptz, created_at timestamptz, quantity numeric,
        replace_quantity numeric, version bigint, digest bytea, key text, request_hash bytea, state jsonb,
        client_id text, tags text[], read_sequence bigint)
"""
# A key that was used within its time gives no row, and without a row nothing else is written.
_UNLESS_USED = f"""
    ON CONFLICT (account_id, key) DO UPDATE SET request_hash = excluded.request_hash, intent_id = excluded.intent_id,
        action_id = excluded.action_id, state = excluded.state, created_at = excluded.created_at,
        created = excluded.created
        WHERE existing.created_at <= excluded.created_at - interval '{KEPT_HOURS} hours'
    RETURNING account_id, key
"""
_TAKE_KEYS = f"""
    INSERT INTO intents.idempotency AS existing (account_id, organization_id, key, request_hash, intent_id, action_id,
                                                state, created_at)
    SELECT account_id, organization_id, key, request_hash, intent_id, action_id, state, created_at
    FROM given WHERE key IS NOT NULL ORDER BY account_id, key
    {_UNLESS_USED}
"""  # noqa: S608 - only our own words
_KEYS = Statement("intents_keys", ("json",), f"WITH given AS MATERIALIZED ({_GIVEN}) {_TAKE_KEYS}")
_ADMITTED = """
    SELECT given.* FROM given LEFT JOIN taken USING (account_id, key) WHERE given.key IS NULL OR taken.key IS NOT NULL
"""
_OUTBOX = f"""
    INSERT INTO intents.outbox (event_id, event_type, payload, traceparent)
    SELECT event_id, '{INTENT_SUBMITTED}', jsonb_build_object(
        'event_id', event_id, 'event_type', '{INTENT_SUBMITTED}', 'occurred_at', created_at,
        'organization_id', organization_id, 'account_id', account_id, 'intent_id', intent_id, 'action_id', action_id),
        traceparent
    FROM admitted
"""  # noqa: S608 - a constant
_ACTION = """
    INSERT INTO intents.action (
        account_id, sequence, id, organization_id, environment, intent_id, type, payload, symbol, order_side, spec,
        route_strategy, ref_intent_id, actor_type, actor_id, reason, controls, from_status, to_status,
        intent_created_at, traceparent, previous_hash, hash, created_at, account_orders, symbol_orders)
    SELECT account_id, last_sequence, action_id, organization_id, environment, intent_id, type, payload, symbol,
           order_side, spec, route_strategy, ref_intent_id, actor_type, actor_id, reason, controls, from_status,
           to_status, intent_created_at, traceparent, previous_hash, last_hash, created_at,
           (SELECT orders FROM counted WHERE counted.account_id = admitted.account_id AND counted.symbol = ''),
           (SELECT orders FROM counted
            WHERE counted.account_id = admitted.account_id AND counted.symbol = admitted.symbol)
    FROM admitted JOIN head USING (account_id)
    RETURNING id, sequence, previous_hash, hash
"""
_OPENED = """
    SELECT account_id, organization_id, symbol, order_side, 1 AS orders, 1 AS opened, quantity
    FROM admitted JOIN head USING (account_id)
"""
_INTENT = """
    INSERT INTO intents.intent (
        account_id, id, organization_id, environment, symbol, order_side, route_strategy, spec, quantity, status,
        created_at, updated_at, next_attempt_at, client_id, tags)
    SELECT account_id, intent_id, organization_id, environment, symbol, order_side, route_strategy, spec, quantity,
           to_status, created_at, created_at, created_at, client_id, coalesce(tags, '{}')
    FROM keyed WHERE (SELECT count(*) FROM locked) >= 0 ORDER BY account_id
    ON CONFLICT (account_id, client_id) WHERE client_id IS NOT NULL DO NOTHING
    RETURNING account_id, id AS intent_id
"""
_TAGS = """
    INSERT INTO intents.intent_tag (account_id, organization_id, tag, created_at, intent_id)
    SELECT account_id, organization_id, tag, created_at, intent_id FROM admitted, unnest(tags) tag
"""
# What was decided by an account's orders is written only if its log still ends where it did. For that its head is
# locked first, and all others of the batch with it, in order: without a row in `given` nothing is written, not even
# the idempotency key.
_UNMOVED = f"""
    submitted AS MATERIALIZED ({_GIVEN}), seen AS MATERIALIZED (
        SELECT account_id, last_sequence FROM intents.account_head
        WHERE account_id IN (SELECT account_id FROM submitted)
          AND EXISTS (SELECT FROM submitted WHERE read_sequence IS NOT NULL)
        ORDER BY account_id FOR UPDATE
    ), given AS MATERIALIZED (
        SELECT submitted.* FROM submitted LEFT JOIN seen USING (account_id)
        WHERE read_sequence IS NULL OR read_sequence = last_sequence
    )
"""  # noqa: S608 - only our own words
# A client_id that another intent has taken meanwhile gives no intent, and without an intent nothing else is written but
# the idempotency key, which then says the same (`model.decision`). Where there is a client_id the head is locked first:
# whoever waited for another's client_id, holding the head that the other needs, would deadlock.
_CREATE = Statement(
    "intents_create",
    ("json",),
    f"""
    WITH {_UNMOVED}, taken AS ({_TAKE_KEYS}), keyed AS MATERIALIZED ({_ADMITTED}),
    locked AS MATERIALIZED (
        SELECT account_id FROM intents.account_head
        WHERE account_id IN (SELECT account_id FROM keyed WHERE client_id IS NOT NULL) ORDER BY account_id FOR UPDATE
    ), made AS ({_INTENT}),
    admitted AS MATERIALIZED (SELECT keyed.* FROM keyed JOIN made USING (account_id, intent_id)),
    head AS ({extend_chain("admitted")}), counted AS ({add_to_totals(_OPENED)}), tagged AS ({_TAGS}),
    queued AS ({_OUTBOX})
    {_ACTION}
    """,  # noqa: S608 - only our own words
)
_AMENDED = """
    SELECT account_id, organization_id, symbol, order_side, CASE type WHEN 'REPLACE' THEN 1 ELSE 0 END AS orders,
           0 AS opened, added AS quantity
    FROM admitted JOIN head USING (account_id) JOIN changed USING (account_id, intent_id)
"""
# It does not wait for the intent's row: holding the idempotency key, it would block whoever has locked the row and
# needs the same key. A writer that finds the row locked waits for it holding nothing (`locking`).
_AMEND = Statement(
    "intents_amend",
    ("json",),
    f"""
    WITH given AS MATERIALIZED ({_GIVEN}), taken AS ({_TAKE_KEYS}), as_expected AS MATERIALIZED (
        SELECT new.*, {open_quantity("i")} AS open_before FROM ({_ADMITTED}) new
        JOIN intents.intent i ON i.account_id = new.account_id AND i.id = new.intent_id AND i.version = new.version
        FOR UPDATE OF i SKIP LOCKED
    ), changed AS (
        UPDATE intents.intent i
        SET status = to_status, version = i.version + 1, updated_at = new.created_at,
            open_actions = open_actions + 1, next_attempt_at = least(next_attempt_at, new.created_at),
            replace_quantity = coalesce(new.replace_quantity, i.replace_quantity)
        FROM as_expected new WHERE i.account_id = new.account_id AND i.id = new.intent_id
        RETURNING i.account_id, i.id AS intent_id, {open_quantity("i")} - new.open_before AS added
    ), admitted AS MATERIALIZED (SELECT given.* FROM given JOIN changed USING (account_id, intent_id)),
    head AS ({extend_chain("admitted")}), counted AS ({add_to_totals(_AMENDED)}), queued AS ({_OUTBOX})
    {_ACTION}
    """,  # noqa: S608 - only our own words
)
_REMEMBER = Statement(
    "intents_remember",
    ("uuid", "uuid", "text", "bytea", "uuid", "uuid", "jsonb", "timestamptz"),
    f"""
    INSERT INTO intents.idempotency AS existing (account_id, organization_id, key, request_hash, intent_id, action_id,
                                                state, created_at, created)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, false)
    {_UNLESS_USED}
    """,  # noqa: S608 - only our own words
)


class FactsChanged(Exception):
    """Another transaction wrote between the read and the write, or is about to: decide again."""


def append_amendment(tx: Transaction, pending: PendingAction) -> model.Action:
    """Write the action of an existing intent and all that goes with it. Only in an open transaction.

    After FactsChanged it has to be rolled back: it has taken the idempotency key already.
    """
    [action] = _write(tx, _AMEND, [pending])
    if action is None:
        raise FactsChanged
    return action


def append_creates(tx: Transaction, pending: Sequence[PendingAction]) -> list[model.Action | None]:
    """Write the actions of new intents, of which no account has two, in one statement.

    None where the idempotency key or the client_id has been used meanwhile, or the log has grown since it was read: no
    action is written for that one.
    """
    return _write(tx, _CREATE, pending)


def append_creates_in_rounds(tx: Transaction, pending: Sequence[PendingAction]) -> list[model.Action | None]:
    """The same for accounts that have several, of which each seals the one before it. Only in an open transaction.

    All keys are taken before any account, and accounts in one order, so that two such transactions never deadlock.
    """
    written: dict[UUID, model.Action | None] = {}
    for batch in _rounds(_with_free_keys(tx, pending)):
        for item, action in zip(batch, _write(tx, _CREATE, batch), strict=True):
            written[item.action.id] = action
    return [written.get(item.action.id) for item in pending]


def _with_free_keys(tx: Transaction, pending: Sequence[PendingAction]) -> list[PendingAction]:
    """Those without a key, and the first of each key that was free, which is taken by this."""
    firsts: dict[tuple[UUID, str], PendingAction] = {}
    for item in pending:
        if item.idempotency_key:
            firsts.setdefault((item.action.account_id, item.idempotency_key.key), item)
    rows = _write_rows(tx, _KEYS, list(firsts.values())) if firsts else []
    chosen = {firsts[row.account_id, row.key].action.id for row in rows}
    return [
        item._replace(idempotency_key=None)
        for item in pending
        if item.idempotency_key is None or item.action.id in chosen
    ]


def _rounds(pending: Sequence[PendingAction]) -> list[list[PendingAction]]:
    """In the order they came, no account twice in one round."""
    rounds: list[list[PendingAction]] = []
    count: Counter[UUID] = Counter()
    for item in pending:
        number = count[item.action.account_id]
        count[item.action.account_id] += 1
        if number == len(rounds):
            rounds.append([])
        rounds[number].append(item)
    return rounds


def _write(tx: Transaction, statement: Statement, pending: Sequence[PendingAction]) -> list[model.Action | None]:
    rows = {row.id: row for row in _write_rows(tx, statement, pending)}
    return [_logged(item.action, rows.get(item.action.id)) for item in pending]


def _write_rows(tx: Transaction, statement: Statement, pending: Sequence[PendingAction]) -> list[Row]:
    try:
        return tx.write(statement, (json.dumps([_values(item) for item in pending]),))
    except exc.OperationalError as error:
        if _waited_for_key(error):
            raise model.IdempotentRequestInFlight from error
        raise


def _logged(action: model.Action, row: Row | None) -> model.Action | None:
    """The action with its place in the log."""
    if row is None:
        return None
    previous_hash, last_hash = bytes(row.previous_hash), bytes(row.hash)
    return replace(action, sequence=row.sequence, previous_hash=previous_hash, hash=last_hash)


def _values(pending: PendingAction) -> dict[str, Any]:
    (action, change), key, traceparent, read_sequence = pending
    record = model.record(action)
    values = {
        "account_id": record["account_id"],
        "organization_id": record["organization_id"],
        "environment": action.environment,
        "intent_id": record["intent_id"],
        "action_id": record["id"],
        "event_id": str(uuid4()),
        "type": action.type,
        "payload": action.payload,
        "symbol": action.symbol,
        "order_side": action.order_side,
        "spec": action.spec,
        "route_strategy": action.route_strategy,
        "ref_intent_id": record["ref_intent_id"],
        "actor_type": action.actor.type,
        "actor_id": action.actor.id,
        "reason": action.reason,
        "controls": action.controls,
        "traceparent": traceparent,
        "from_status": change.before,
        "to_status": change.after,
        "intent_created_at": change.intent_created_at.isoformat(),
        "created_at": record["created_at"],
        "quantity": record["state"]["leaves_quantity"],
        "replace_quantity": str(Spec.from_json(action.spec).quantity) if change.before and action.spec else None,
        "version": change.version,
        "digest": f"\\x{chain.digest(record).hex()}",
        "client_id": action.payload.get("client_id"),
        "tags": action.payload.get("tags"),
        "read_sequence": read_sequence,
    }
    if key:
        kept = {"key": key.key, "request_hash": f"\\x{key.request_hash.hex()}", "state": record["state"]}
        return {**values, **kept}
    return values


def confirm_written(tx: Transaction, action: model.Action) -> model.Action:
    """The action as the log has it, with the state that was decided; OutcomeUnknown if the log does not show it now."""
    try:
        found = by_id(tx, action.account_id, action.intent_id, action.id)
    except exc.SQLAlchemyError as error:
        raise model.OutcomeUnknown from error
    if found is None:  # no proof that it was not written: the commit may still be under way
        raise model.OutcomeUnknown
    return replace(found, state=action.state)


def remember(tx: Transaction, action: model.Action, key: model.IdempotencyKey, now: datetime) -> None:
    """Record that a request was answered with an action that existed already."""
    record = model.record(action)
    state = json.dumps(record["state"])
    owner = (record["account_id"], record["organization_id"])
    values = (*owner, key.key, key.request_hash, record["intent_id"], record["id"], state, now)
    try:
        if not tx.write(_REMEMBER, values):
            raise FactsChanged
    except exc.OperationalError as error:
        if _waited_for_key(error):
            raise model.IdempotentRequestInFlight from error
        raise


def _waited_for_key(error: exc.OperationalError) -> bool:
    """Postgres names the table on which a statement waited too long for another transaction."""
    return "idempotency" in (getattr(getattr(error.orig, "diag", None), "context", None) or "")
