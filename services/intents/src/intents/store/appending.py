"""Writing actions and all that goes with them: what is admitted together is one write."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from sqlalchemy import exc

from intents import model
from intents.model import chain
from intents.store.account_head import extend_chain
from intents.store.admission import KEPT_HOURS
from intents.store.direct import Direct, Statement, Uncertain
from intents.store.reads import by_id

EVENT_TYPE = "intent.submitted"

_GIVEN = """
    SELECT * FROM json_to_recordset($1) AS given (
        account_id uuid, organization_id uuid, environment text, intent_id uuid, action_id uuid, event_id uuid,
        type text, payload json, symbol text, order_side text, spec json, route_strategy text,
        ref_intent_id uuid, actor_type text, actor_id text, reason text, controls json, traceparent text,
        from_status text, to_status text, intent_created_at timestamptz, created_at timestamptz, quantity numeric,
        version bigint, digest bytea, key text, request_hash bytea, state jsonb)
"""
# A key that was used within its time gives no row, and without that row nothing else is written.
_UNLESS_KEPT = f"""
    ON CONFLICT (account_id, key) DO UPDATE SET request_hash = excluded.request_hash, intent_id = excluded.intent_id,
        action_id = excluded.action_id, state = excluded.state, created_at = excluded.created_at,
        created = excluded.created
        WHERE earlier.created_at <= excluded.created_at - interval '{KEPT_HOURS} hours'
    RETURNING account_id, key
"""
_ONCE = f"""
    INSERT INTO intents.idempotency AS earlier (account_id, organization_id, key, request_hash, intent_id, action_id,
                                                state, created_at)
    SELECT account_id, organization_id, key, request_hash, intent_id, action_id, state, created_at
    FROM given WHERE key IS NOT NULL ORDER BY account_id, key
    {_UNLESS_KEPT}
"""  # noqa: S608 - only our own words
_KEYS = Statement("intents_keys", ("json",), f"WITH given AS MATERIALIZED ({_GIVEN}) {_ONCE}")
_ADMITTED = """
    SELECT given.* FROM given LEFT JOIN once USING (account_id, key) WHERE given.key IS NULL OR once.key IS NOT NULL
"""
_OUTBOX = f"""
    INSERT INTO intents.outbox (event_id, event_type, payload, traceparent)
    SELECT event_id, '{EVENT_TYPE}', jsonb_build_object(
        'event_id', event_id, 'event_type', '{EVENT_TYPE}', 'occurred_at', created_at,
        'organization_id', organization_id, 'account_id', account_id, 'intent_id', intent_id, 'action_id', action_id),
        traceparent
    FROM admitted
"""  # noqa: S608 - a constant
_ACTION = """
    INSERT INTO intents.action (
        account_id, sequence, id, organization_id, environment, intent_id, type, payload, symbol, order_side, spec,
        route_strategy, ref_intent_id, actor_type, actor_id, reason, controls, from_status, to_status,
        intent_created_at, traceparent, previous_hash, hash, created_at)
    SELECT account_id, last_sequence, action_id, organization_id, environment, intent_id, type, payload, symbol,
           order_side, spec, route_strategy, ref_intent_id, actor_type, actor_id, reason, controls, from_status,
           to_status, intent_created_at, traceparent, previous_hash, last_hash, created_at
    FROM admitted JOIN head USING (account_id)
    RETURNING id, sequence, previous_hash, hash
"""
_CREATE = Statement(
    "intents_create",
    ("json",),
    f"""
    WITH given AS MATERIALIZED ({_GIVEN}), once AS ({_ONCE}), admitted AS MATERIALIZED ({_ADMITTED}),
    head AS ({extend_chain("admitted")}), made AS (
        INSERT INTO intents.intent (
            account_id, id, organization_id, environment, symbol, order_side, route_strategy, spec, quantity, status,
            created_at, updated_at, next_attempt_at)
        SELECT account_id, intent_id, organization_id, environment, symbol, order_side, route_strategy, spec, quantity,
               to_status, created_at, created_at, created_at
        FROM admitted
    ), told AS ({_OUTBOX})
    {_ACTION}
    """,  # noqa: S608 - only our own words
)
# It does not wait for the intent's row: with the idempotency key taken it would hold up whoever has locked the row and
# needs the same key. Who finds the row locked waits for it with nothing in his hands (`locking`).
_AMEND = Statement(
    "intents_amend",
    ("json",),
    f"""
    WITH given AS MATERIALIZED ({_GIVEN}), once AS ({_ONCE}), as_expected AS MATERIALIZED (
        SELECT new.* FROM ({_ADMITTED}) new
        JOIN intents.intent i ON i.account_id = new.account_id AND i.id = new.intent_id AND i.version = new.version
        FOR UPDATE OF i SKIP LOCKED
    ), changed AS (
        UPDATE intents.intent i
        SET status = to_status, version = i.version + 1, updated_at = new.created_at,
            open_actions = open_actions + 1, next_attempt_at = least(next_attempt_at, new.created_at)
        FROM as_expected new WHERE i.account_id = new.account_id AND i.id = new.intent_id
        RETURNING i.account_id, i.id AS intent_id
    ), admitted AS MATERIALIZED (SELECT given.* FROM given JOIN changed USING (account_id, intent_id)),
    head AS ({extend_chain("admitted")}), told AS ({_OUTBOX})
    {_ACTION}
    """,  # noqa: S608 - only our own words
)
_REMEMBER = Statement(
    "intents_remember",
    ("uuid", "uuid", "text", "bytea", "uuid", "uuid", "jsonb", "timestamptz"),
    f"""
    INSERT INTO intents.idempotency AS earlier (account_id, organization_id, key, request_hash, intent_id, action_id,
                                                state, created_at, created)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, false)
    {_UNLESS_KEPT}
    """,  # noqa: S608 - only our own words
)


class Once(NamedTuple):
    """A request that must not be done twice."""

    key: str
    request_hash: bytes


class New(NamedTuple):
    """What is to be written. `traceparent` is what its consequences are told."""

    admission: model.Admission
    once: Once | None
    traceparent: str | None


class FactsChanged(Exception):
    """Somebody else wrote between the read and the write, or is about to: decide again."""


def append(direct: Direct, new: New) -> model.Action:
    """Write the action and all that goes with it, or nothing and FactsChanged.

    Of what was being committed when the connection was lost, the log itself tells whether it was.
    """
    try:
        if new.admission.change.before is None:
            return _there(_write(direct, _CREATE, [new]))
        with direct.transaction():
            return _there(_write(direct, _AMEND, [new]))
    except Uncertain:
        return written(direct, new.admission.action)
    except exc.OperationalError as error:
        raise (_in_flight(error) or error) from error


def _there(actions: Sequence[model.Action | None]) -> model.Action:
    [action] = actions
    if action is None:
        raise FactsChanged
    return action


def create_all(direct: Direct, news: Sequence[New]) -> list[model.Action | None]:
    """Write the actions of new intents, all that can be; None where an idempotency key was used meanwhile."""
    if len(_one_of_each_account(news)) == 1:
        return _write(direct, _CREATE, news)
    found: dict[UUID, model.Action | None] = {}
    with direct.transaction():
        # All keys before any account, and the accounts in one order: so nobody waits for another in a circle.
        for some in _one_of_each_account(_with_their_keys(direct, news)):
            for new, action in zip(some, _write(direct, _CREATE, some), strict=True):
                found[new.admission.action.id] = action
    return [found.get(new.admission.action.id) for new in news]


def _with_their_keys(direct: Direct, news: Sequence[New]) -> list[New]:
    """Those without a key, and those whose key was free: of one key the first."""
    firsts: dict[tuple[UUID, str], New] = {}
    for new in news:
        if new.once:
            firsts.setdefault((new.admission.action.account_id, new.once.key), new)
    taken: set[tuple[UUID, str]] = set()
    if firsts:
        rows = direct.write(_KEYS, (json.dumps([_values(*new) for new in firsts.values()]),))
        taken = {(account_id, key) for account_id, key in rows}
    kept = {new.admission.action.id for place, new in firsts.items() if place in taken}
    return [new._replace(once=None) for new in news if new.once is None or new.admission.action.id in kept]


def _one_of_each_account(news: Sequence[New]) -> list[list[New]]:
    """In the order they came, no account twice in one statement: each of its actions seals the one before."""
    rounds: list[list[New]] = []
    turns: dict[UUID, int] = {}
    for new in news:
        turn = turns.get(new.admission.action.account_id, 0)
        turns[new.admission.action.account_id] = turn + 1
        if turn == len(rounds):
            rounds.append([])
        rounds[turn].append(new)
    return rounds


def _write(direct: Direct, statement: Statement, news: Sequence[New]) -> list[model.Action | None]:
    rows = direct.write(statement, (json.dumps([_values(*new) for new in news]),))
    places = {action_id: rest for action_id, *rest in rows}
    return [_placed(new.admission.action, places.get(new.admission.action.id)) for new in news]


def _placed(action: model.Action, place: Sequence[Any] | None) -> model.Action | None:
    if place is None:
        return None
    sequence, previous_hash, last_hash = place
    return replace(action, sequence=sequence, previous_hash=bytes(previous_hash), hash=bytes(last_hash))


def _values(admission: model.Admission, once: Once | None, traceparent: str | None) -> dict[str, Any]:
    action, change = admission
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
        "version": change.version,
        "digest": f"\\x{chain.digest(record).hex()}",
    }
    if once:
        kept = {"key": once.key, "request_hash": f"\\x{once.request_hash.hex()}", "state": record["state"]}
        return {**values, **kept}
    return values


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
    whose = (record["account_id"], record["organization_id"])
    values = (*whose, once.key, once.request_hash, record["intent_id"], record["id"], kept, now)
    try:
        if not direct.write(_REMEMBER, values):
            raise FactsChanged
    except Uncertain as error:
        raise model.OutcomeUnknown from error
    except exc.OperationalError as error:
        raise (_in_flight(error) or error) from error


def _in_flight(error: exc.OperationalError) -> Exception | None:
    """Postgres says on which table it waited too long for another transaction."""
    context = getattr(getattr(error.orig, "diag", None), "context", None) or ""
    return model.IdempotentRequestInFlight() if "idempotency" in context else None
