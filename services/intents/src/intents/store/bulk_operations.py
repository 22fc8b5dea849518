"""Bulk operations, and the intents that they concern."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ARRAY, Connection, Uuid, bindparam, text
from sqlalchemy.dialects.postgresql import JSONB

from chassis.outbox.notify import channel
from intents import model
from intents.model.bulk_operations import AwaitedOrder, BulkOperation, BulkRequest, BulkStatus, BulkType, HeldPosition
from intents.store.statuses import TERMINAL_SQL

BULK_OPERATIONS = "bulk_operations"
"""The topic of the NOTIFY that wakes the schedulers."""
_CHANNEL = channel("intents", BULK_OPERATIONS)
_REQUEST = ("account_id", "organization_id", "type", "symbol", "order_side", "reason", "actor_type", "actor_id")
_PROGRESS = (
    "id",
    "status",
    "total",
    "done",
    "refusals",
    "created_at",
    "updated_at",
    "completed_at",
    "closing_since",
    "closing_intents",
    "traceparent",
)
_REQUESTED, _GIVEN = ", ".join(_REQUEST), ", ".join(f":{name}" for name in _REQUEST)
_COLUMNS = ", ".join((*_REQUEST, *_PROGRESS))
_CLAIMED = ", ".join(f"o.{name}" for name in (*_REQUEST, *_PROGRESS))
_OWN = "account_id = :account_id AND id = :id"
_OPEN = f"""
    FROM intents.intent i
    WHERE i.account_id = :account_id AND i.status NOT IN ({TERMINAL_SQL})
      AND (CAST(:symbol AS text) IS NULL OR i.symbol = :symbol)
      AND (CAST(:order_side AS text) IS NULL OR i.order_side = :order_side)
"""
# Of a deleted account nothing can be canceled.
_CONCERNED = f"""{_OPEN}
      AND i.created_at <= :created_at AND EXISTS (SELECT FROM accounts_api.account WHERE id = :account_id)
"""
# What is open is counted here: a process killed at its first step may have canceled some that nobody counts any more.
_INSERT = text(f"""
    INSERT INTO intents.bulk_operation (id, {_REQUESTED}, traceparent, idempotency_key, request_hash, total)
    VALUES (:id, {_GIVEN}, :traceparent, :idempotency_key, :request_hash,
            (SELECT count(*) {_OPEN}))
    ON CONFLICT DO NOTHING
    RETURNING {_COLUMNS}
""")  # noqa: S608 - only our own column names
# One statement for all accounts of an organization: whatever follows in the feed waits for it.
_INSERT_FOR_ALL = text(f"""
    INSERT INTO intents.bulk_operation (id, account_id, organization_id, type, reason, actor_type, actor_id,
                                        traceparent, total)
    SELECT :id, given.account_id, :organization_id, :type, :reason, :actor_type, :actor_id, :traceparent,
           (SELECT count(*) FROM intents.intent i
            WHERE i.account_id = given.account_id AND i.status NOT IN ({TERMINAL_SQL}))
    FROM unnest(:account_ids) AS given (account_id) ORDER BY given.account_id
    ON CONFLICT DO NOTHING
""").bindparams(bindparam("account_ids", type_=ARRAY(Uuid)))  # noqa: S608 - only our own words
_NOTIFY = text(f"NOTIFY {_CHANNEL}")
_ANY_UNFINISHED = text("SELECT EXISTS (SELECT FROM intents.bulk_operation WHERE status <> 'COMPLETED')")
_FIND = text(f"SELECT {_COLUMNS} FROM intents.bulk_operation WHERE {_OWN}")  # noqa: S608
_FIND_BY_KEY = text(f"""
    SELECT {_COLUMNS}, request_hash FROM intents.bulk_operation
    WHERE account_id = :account_id AND idempotency_key = :idempotency_key
""")  # noqa: S608 - only our own column names
_UNFINISHED = text("""
    SELECT count(*) FROM intents.bulk_operation
    WHERE organization_id = :organization_id AND account_id = :account_id AND status <> 'COMPLETED'
""")
# Organizations take turns. Two that choose the same operation do not both get it: the second finds the lease.
_CLAIM = text(f"""
    UPDATE intents.bulk_operation o
    SET lease_token = :token, lease_until = now() + make_interval(secs => :lease_seconds)
    FROM (
        SELECT account_id, id FROM (
            SELECT account_id, id, next_attempt_at,
                   row_number() OVER (PARTITION BY organization_id ORDER BY next_attempt_at) AS turn
            FROM intents.bulk_operation
            WHERE status <> 'COMPLETED' AND next_attempt_at <= now() AND (lease_until IS NULL OR lease_until <= now())
        ) due ORDER BY turn, next_attempt_at LIMIT :most
    ) chosen
    WHERE o.account_id = chosen.account_id AND o.id = chosen.id AND o.next_attempt_at <= now()
      AND (o.lease_until IS NULL OR o.lease_until <= now())
    RETURNING {_CLAIMED}
""")  # noqa: S608 - only our own column names
_SAVE = text(f"""
    UPDATE intents.bulk_operation
    SET status = :status, total = :total, done = :done, refusals = :refusals, closing_since = :closing_since,
        closing_intents = :closing_intents, completed_at = :completed_at, updated_at = clock_timestamp(),
        lease_token = NULL, lease_until = NULL, next_attempt_at = now() + make_interval(secs => :retry_seconds)
    WHERE {_OWN} AND lease_token = :token
""").bindparams(  # noqa: S608 - only our own column names
    bindparam("refusals", type_=JSONB), bindparam("closing_intents", type_=ARRAY(Uuid))
)
# A cancel that the broker rejected is not repeated at once: the order is left alone for a minute.
_TO_CANCEL = text(f"""
    SELECT i.id {_CONCERNED} AND i.status <> 'PENDING_CANCEL' AND NOT EXISTS (
        SELECT FROM intents.action a WHERE a.intent_id = i.id
           AND a.type = 'CANCEL' AND a.created_at > now() - interval '1 minute')
    ORDER BY i.created_at LIMIT :most
""")  # noqa: S608 - only our own words
_STILL_OPEN = text(f"SELECT count(*) AS still_open, clock_timestamp() AS now {_CONCERNED}")
_OF_CLOSING = text(f"""
    SELECT count(*) AS still_open, clock_timestamp() AS now FROM intents.intent
    WHERE account_id = :account_id AND id = ANY(:intents) AND status NOT IN ({TERMINAL_SQL})
""").bindparams(bindparam("intents", type_=ARRAY(Uuid)))  # noqa: S608 - only our own words
# A fill that was reported and is not recorded yet is off the position and still counts as open: less than is held would
# be closed.
_HELD = text("""
    SELECT p.symbol, p.quantity, b.reconciled_at > :closing_since
               AND (p.symbol IS NULL OR p.reconciled_at > :closing_since)
               AND NOT EXISTS (
                   SELECT FROM jsonb_each_text(p.unrecorded_fills) AS fill(key, quantity)
                   JOIN intents.broker_order o ON o.account_id = p.account_id AND o.client_order_id = fill.key
                   WHERE o.filled_quantity < fill.quantity::numeric) AS is_reported,
           coalesce(CASE WHEN p.quantity > 0 THEN t.open_sell_quantity ELSE t.open_buy_quantity END, 0) AS open_quantity
    FROM intents.broker_account b
    LEFT JOIN intents.position p ON p.account_id = b.account_id AND p.quantity <> 0
        AND (CAST(:symbol AS text) IS NULL OR p.symbol = :symbol)
    LEFT JOIN intents.order_total t ON t.account_id = p.account_id AND t.symbol = p.symbol
    WHERE b.account_id = :account_id ORDER BY p.symbol
""")
_WAITING_FOR = text(f"""
    SELECT i.id AS intent_id, i.status, i.reason_code, i.outcome {_CONCERNED}
    UNION
    SELECT id, status, reason_code, outcome FROM intents.intent
    WHERE cardinality(:intents) > 0 AND account_id = :account_id AND id = ANY(:intents)
      AND status NOT IN ({TERMINAL_SQL})
    ORDER BY intent_id LIMIT :most
""").bindparams(bindparam("intents", type_=ARRAY(Uuid)))  # noqa: S608 - only our own words
_PRUNE = text("""
    DELETE FROM intents.bulk_operation WHERE ctid IN (
        SELECT ctid FROM intents.bulk_operation
        WHERE completed_at < now() - make_interval(days => :days) LIMIT :most)
""")
PRUNED_AT_ONCE = 5_000


def insert_bulk_operation(
    tx: Connection,
    operation_id: UUID,
    request: BulkRequest,
    traceparent: str | None = None,
    key: model.IdempotencyKey | None = None,
) -> BulkOperation | None:
    """None if the account has an operation with this id or this key already."""
    once = {"idempotency_key": key and key.key, "request_hash": key and key.request_hash}
    values = {**_request_values(request), **once, "id": operation_id, "traceparent": traceparent}
    row = tx.execute(_INSERT, values).mappings().one_or_none()
    tx.execute(_NOTIFY)
    return _operation(row) if row else None


def insert_cancels_of_all(
    tx: Connection,
    operation_id: UUID,
    organization_id: UUID,
    account_ids: Sequence[UUID],
    actor: model.Actor,
    reason: str,
    traceparent: str | None,
) -> None:
    """An operation for each of the organization's accounts that cancels all open intents; none where it exists."""
    values = {"id": operation_id, "organization_id": organization_id, "account_ids": list(account_ids)}
    by = {"actor_type": actor.type, "actor_id": actor.id, "reason": reason, "traceparent": traceparent}
    tx.execute(_INSERT_FOR_ALL, values | by | {"type": BulkType.CANCEL_ORDERS})
    tx.execute(_NOTIFY)


def find_bulk_operation(tx: Connection, account_id: UUID, operation_id: UUID) -> BulkOperation | None:
    row = tx.execute(_FIND, {"account_id": account_id, "id": operation_id}).mappings().one_or_none()
    return _operation(row) if row else None


def bulk_operation_of_key(tx: Connection, account_id: UUID, key: str) -> tuple[BulkOperation, bytes] | None:
    """The operation that was requested with the idempotency key, and the hash of that request."""
    row = tx.execute(_FIND_BY_KEY, {"account_id": account_id, "idempotency_key": key}).mappings().one_or_none()
    return (_operation(row), bytes(row["request_hash"])) if row else None


def unfinished_bulk_operations(tx: Connection, organization_id: UUID, account_id: UUID) -> int:
    found = tx.execute(_UNFINISHED, {"organization_id": organization_id, "account_id": account_id})
    return int(found.scalar_one())


def has_unfinished_bulk_operation(tx: Connection) -> bool:
    return bool(tx.execute(_ANY_UNFINISHED).scalar_one())


def claim_bulk_operations(tx: Connection, token: UUID, most: int, lease_seconds: float) -> list[BulkOperation]:
    """Take what is due and nobody else's, by turns of organizations."""
    values = {"token": token, "most": most, "lease_seconds": lease_seconds}
    return [_operation(row) for row in tx.execute(_CLAIM, values).mappings()]


def save_bulk_operation(tx: Connection, operation: BulkOperation, token: UUID, retry_seconds: float) -> None:
    """Save how far it has come, and end the lease. Whoever has lost the lease saves nothing."""
    values = {
        "account_id": operation.account_id,
        "id": operation.id,
        "status": operation.status,
        "total": operation.total,
        "done": operation.done,
        "refusals": list(operation.refusals),
        "closing_since": operation.closing_since,
        "closing_intents": operation.closing_intents,
        "completed_at": operation.completed_at,
        "token": token,
        "retry_seconds": retry_seconds,
    }
    tx.execute(_SAVE, values)


def intents_to_cancel(tx: Connection, operation: BulkOperation, most: int) -> list[UUID]:
    """Intents that the operation concerns and that nobody is canceling, oldest first."""
    return list(tx.execute(_TO_CANCEL, {**_concerned(operation), "most": most}).scalars())


def still_open(tx: Connection, operation: BulkOperation) -> tuple[int, datetime]:
    """How many of the intents that the operation concerns have not ended, and when they were counted."""
    row = tx.execute(_STILL_OPEN, _concerned(operation)).one()
    return row.still_open, row.now


def closing_still_open(tx: Connection, operation: BulkOperation) -> tuple[int, datetime]:
    """How many of the orders that close the positions have not ended, and when they were counted."""
    values = {"account_id": operation.account_id, "intents": list(operation.closing_intents or ())}
    row = tx.execute(_OF_CLOSING, values).one()
    return row.still_open, row.now


def held_at_broker(tx: Connection, operation: BulkOperation) -> list[HeldPosition] | None:
    """The positions to close, if the broker has reported each after the last open order had ended, and all that it
    reported to be filled is recorded; else None."""
    values = {"account_id": operation.account_id, "symbol": operation.request.symbol}
    rows = tx.execute(_HELD, {**values, "closing_since": operation.closing_since}).all()
    if not rows or not all(row.is_reported for row in rows):
        return None
    return [HeldPosition(row.symbol, row.quantity, row.open_quantity) for row in rows if row.symbol is not None]


def awaited_orders(tx: Connection, operation: BulkOperation, most: int) -> list[AwaitedOrder]:
    """Orders that the operation cancels or has submitted and that have not ended, some of them."""
    values = {**_concerned(operation), "intents": list(operation.closing_intents or ()), "most": most}
    return [AwaitedOrder(*row) for row in tx.execute(_WAITING_FOR, values)]


def prune_bulk_operations(tx: Connection, days: int) -> None:
    """Delete operations that were completed longer ago."""
    tx.execute(_PRUNE, {"days": days, "most": PRUNED_AT_ONCE})


def _concerned(operation: BulkOperation) -> dict[str, Any]:
    request = operation.request
    return {
        "account_id": request.account_id,
        "symbol": request.symbol,
        "order_side": request.order_side,
        "created_at": operation.created_at,
    }


def _request_values(request: BulkRequest) -> dict[str, Any]:
    return {
        "account_id": request.account_id,
        "organization_id": request.organization_id,
        "type": request.type,
        "symbol": request.symbol,
        "order_side": request.order_side,
        "reason": request.reason,
        "actor_type": request.actor.type,
        "actor_id": request.actor.id,
    }


def _operation(row: Mapping[Any, Any]) -> BulkOperation:
    request = BulkRequest(
        row["account_id"],
        row["organization_id"],
        BulkType(row["type"]),
        model.Actor(row["actor_type"], row["actor_id"]),
        row["reason"],
        row["symbol"],
        row["order_side"],
    )
    progress = {name: row[name] for name in _PROGRESS}
    return BulkOperation(request=request, **progress | {"status": BulkStatus(row["status"])})
