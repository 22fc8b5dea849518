"""Broker events: appended to the same log, in the same sequence, in one transaction with the intent they change."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Connection, Uuid, bindparam, text
from sqlalchemy.dialects.postgresql import ARRAY, JSON, JSONB

from chassis import tracing
from intents import model
from intents.model.chain import GENESIS
from intents.model.reports import Report
from intents.store.admission import INTENT_COLUMNS, to_intent

_LOCK = text(
    f"SELECT {', '.join(INTENT_COLUMNS)} FROM intents.intent "  # noqa: S608 - only our own column names
    "WHERE account_id = :account_id AND id = :intent_id FOR UPDATE"
)
_KNOWN = text(
    "SELECT 1 FROM intents.broker_event WHERE account_id = :account_id AND broker_execution_id = :execution_id"
)
_SAVE = text("""
    UPDATE intents.intent SET
        status = :status, filled_quantity = :filled_quantity, average_fill_price = :average_fill_price,
        broker_order_id = :broker_order_id, reason_code = :reason_code, outcome = :outcome, spec = :spec,
        quantity = :quantity, updated_at = :updated_at, version = version + 1
    WHERE account_id = :account_id AND id = :id
""").bindparams(bindparam("spec", type_=JSON))
_POSITION = text("""
    INSERT INTO intents.position AS held (account_id, symbol, quantity, last_price, updated_at)
    VALUES (:account_id, :symbol, :quantity, :price, :moment)
    ON CONFLICT (account_id, symbol) DO UPDATE SET quantity = held.quantity + excluded.quantity,
        last_price = coalesce(excluded.last_price, held.last_price), updated_at = excluded.updated_at
""")
_EVENT = text("""
    WITH head AS (
        INSERT INTO intents.account_head AS head (account_id, last_sequence, last_hash, previous_hash)
        VALUES (:account_id, 1, :genesis, :genesis)
        ON CONFLICT (account_id) DO UPDATE SET last_sequence = head.last_sequence + 1
        RETURNING last_sequence
    )
    INSERT INTO intents.broker_event (account_id, sequence, id, type, intent_id, broker_execution_id, from_status,
        to_status, intent_created_at, payload, traceparent, occurred_at)
    SELECT :account_id, head.last_sequence, :id, :type, :intent_id, :execution_id, :from_status, :to_status,
           :intent_created_at, :payload, :traceparent, :occurred_at
    FROM head RETURNING sequence
""").bindparams(bindparam("payload", type_=JSONB))

# In one order of accounts, so that two who write to many of them never wait for each other in a circle.
_EVENT_FOR_ALL = text("""
    WITH head AS (
        INSERT INTO intents.account_head AS head (account_id, last_sequence, last_hash, previous_hash)
        SELECT account_id, 1, :genesis, :genesis FROM unnest(:account_ids) account_id ORDER BY account_id
        ON CONFLICT (account_id) DO UPDATE SET last_sequence = head.last_sequence + 1
        RETURNING account_id, last_sequence
    )
    INSERT INTO intents.broker_event (account_id, sequence, id, type, payload, traceparent, occurred_at)
    SELECT account_id, last_sequence, :id, :type, :payload, :traceparent, :occurred_at FROM head
    RETURNING account_id, sequence
""").bindparams(bindparam("payload", type_=JSONB), bindparam("account_ids", type_=ARRAY(Uuid)))


def locked_intent(tx: Connection, account_id: UUID, intent_id: UUID) -> model.Intent | None:
    """The intent, held until the transaction ends: whoever changes it decides on what it is."""
    row = tx.execute(_LOCK, {"account_id": account_id, "intent_id": intent_id}).one_or_none()
    return to_intent(tuple(row)) if row else None


def is_known(tx: Connection, account_id: UUID, execution_id: str) -> bool:
    """Whether this fill has been recorded; asked while the intent is held, so that the answer stays true."""
    return tx.execute(_KNOWN, {"account_id": account_id, "execution_id": execution_id}).first() is not None


def save(tx: Connection, account_id: UUID, before: model.Intent, after: model.Intent, report: Report) -> int:
    """The intent as it is now, the position, and the event that says so; the event's sequence."""
    tx.execute(
        _SAVE,
        {
            "account_id": account_id,
            "spec": after.spec.as_json,
            **{name: getattr(after, name) for name in INTENT_COLUMNS if name not in ("spec", "version", "created_at")},
        },
    )
    if report.is_fill:
        _move_position(tx, account_id, after, report)
        append_event(tx, account_id, _trade(after, report))
    return append_event(
        tx,
        account_id,
        {
            "type": "BROKER_ORDER",
            "intent_id": after.id,
            "execution_id": None,
            "from_status": before.status,
            "to_status": after.status,
            "intent_created_at": after.created_at,
            "payload": model.broker_order(after, report),
            "occurred_at": report.occurred_at,
        },
    )


def _trade(intent: model.Intent, report: Report) -> dict[str, Any]:
    return {
        "type": "BROKER_TRADE",
        "intent_id": intent.id,
        "execution_id": report.execution_id,
        "from_status": None,
        "to_status": None,
        "intent_created_at": intent.created_at,
        "payload": model.broker_trade(intent, report),
        "occurred_at": report.occurred_at,
    }


def _move_position(tx: Connection, account_id: UUID, intent: model.Intent, report: Report) -> None:
    if report.last_quantity:
        signed = report.last_quantity if intent.order_side == "BUY" else -report.last_quantity
        values = {"account_id": account_id, "symbol": intent.symbol, "quantity": signed, "price": report.last_price}
        tx.execute(_POSITION, {**values, "moment": report.occurred_at})


def append_event(tx: Connection, account_id: UUID, event: Mapping[str, Any]) -> int:
    """Late in a transaction: it holds up the account's other writers. The chain of actions is not touched."""
    values = {"account_id": account_id, "genesis": GENESIS, "id": uuid4(), "traceparent": tracing.traceparent()}
    return int(tx.execute(_EVENT, {**values, **event}).scalar_one())


def append_to_all(tx: Connection, account_ids: Sequence[UUID], event: Mapping[str, Any]) -> dict[UUID, int]:
    """The same event, which concerns no intent, in the log of each account; the sequence it has there."""
    values = {"account_ids": sorted(account_ids), "genesis": GENESIS, "traceparent": tracing.traceparent()}
    return {row.account_id: row.sequence for row in tx.execute(_EVENT_FOR_ALL, {**values, **event})}
