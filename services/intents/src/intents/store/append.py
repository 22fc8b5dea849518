"""Appends actions to the log, each with its intent, idempotency key and outbox row, in one write."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import exc

from chassis import strict_json
from intents import model
from intents.model import PendingAction, Spec, chain
from intents.model.groups import Membership
from intents.store.append_statements import AMEND, CREATE, INSERT_GROUP, KEYS, REMEMBER
from intents.store.key_budgets import charge_values
from intents.store.reads import by_id
from intents.store.statement import Row, Statement, Transaction


class FactsChanged(Exception):
    """Another transaction wrote between the read and the write, or is about to: decide again."""


def append_amendment(tx: Transaction, pending: PendingAction) -> model.Action:
    """Write the action of an existing intent and all that goes with it. Only in an open transaction.

    After FactsChanged it has to be rolled back: it has taken the idempotency key already.
    """
    [action] = _write(tx, AMEND, [pending])
    if action is None:
        raise FactsChanged
    return action


def append_creates(tx: Transaction, pending: Sequence[PendingAction]) -> list[model.Action | None]:
    """Write the actions of new intents, of which no account has two, in one statement.

    None where the idempotency key or the client_id has been used meanwhile, or the log has grown since it was read: no
    action is written for that one.
    """
    return _write(tx, CREATE, pending)


def append_creates_in_rounds(tx: Transaction, pending: Sequence[PendingAction]) -> list[model.Action | None]:
    """The same for accounts that have several, of which each seals the one before it. Only in an open transaction.

    All keys are taken before any account, and accounts in one order, so that two such transactions never deadlock.
    """
    written: dict[UUID, model.Action | None] = {}
    for batch in _rounds(_with_free_keys(tx, pending)):
        for item, action in zip(batch, _write(tx, CREATE, batch), strict=True):
            written[item.action.id] = action
    return [written.get(item.action.id) for item in pending]


def _with_free_keys(tx: Transaction, pending: Sequence[PendingAction]) -> list[PendingAction]:
    """Those without a key, and the first of each key that was free, which is taken by this."""
    firsts: dict[tuple[UUID, str], PendingAction] = {}
    for item in pending:
        if item.idempotency_key:
            firsts.setdefault((item.action.account_id, item.idempotency_key.key), item)
    rows = _write_rows(tx, KEYS, list(firsts.values())) if firsts else []
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
        return tx.write(statement, (strict_json.dumps([_values(item) for item in pending]).decode(),))
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
    (action, change), key, traceparent, request_id, read_sequence, charge, member = pending
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
        "request_id": request_id,
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
        "extended_hours": action.payload.get("extended_hours"),
        "read_sequence": read_sequence,
        **charge_values(charge),
        **(_leg(action, member) if member else {}),
    }
    if key:
        kept = {"key": key.key, "request_hash": f"\\x{key.request_hash.hex()}", "state": record["state"]}
        return {**values, **kept}
    return values


def _leg(action: model.Action, member: Membership) -> dict[str, Any]:
    return {
        "group_id": str(member.group_id),
        "group_role": member.role,
        "reason_code": action.state.reason_code,
        "uncounted": member.uncounted,
    }


def insert_group(tx: Transaction, first: model.Action, group_id: UUID, kind: str, paired: bool) -> None:
    """Of the legs that are created with this one."""
    quantity = first.state.leaves_quantity
    owner = (str(first.account_id), str(group_id), str(first.organization_id))
    tx.write(INSERT_GROUP, (*owner, kind, quantity, first.created_at, paired))


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
        if not tx.write(REMEMBER, values):
            raise FactsChanged
    except exc.OperationalError as error:
        if _waited_for_key(error):
            raise model.IdempotentRequestInFlight from error
        raise


def _waited_for_key(error: exc.OperationalError) -> bool:
    """Postgres names the table on which a statement waited too long for another transaction."""
    return "idempotency" in (getattr(getattr(error.orig, "diag", None), "context", None) or "")
