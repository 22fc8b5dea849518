"""The table of bulk operations as SQLAlchemy sees it."""

from sqlalchemy import (
    CheckConstraint,
    Column,
    DateTime,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from intents.store.tables import METADATA

_MOMENT = DateTime(timezone=True)

bulk_operation = Table(
    "bulk_operation",
    METADATA,
    Column("account_id", Uuid, primary_key=True),
    Column("id", Uuid, primary_key=True),
    Column("organization_id", Uuid, nullable=False),
    Column("type", Text, nullable=False),
    Column("symbol", Text),
    Column("order_side", Text),
    Column("reason", Text, nullable=False),
    Column("actor_type", Text, nullable=False),
    Column("actor_id", Text, nullable=False),
    Column("status", Text, nullable=False, server_default="PENDING"),
    Column("total", Integer, nullable=False, server_default="0"),
    Column("done", Integer, nullable=False, server_default="0"),
    Column("refusals", JSONB, nullable=False, server_default="[]"),
    Column("closing_since", _MOMENT),
    Column("closing_intents", ARRAY(Uuid)),
    Column("idempotency_key", Text),
    Column("request_hash", LargeBinary),
    Column("traceparent", Text),
    Column("next_attempt_at", _MOMENT, nullable=False, server_default=func.now()),
    Column("lease_token", Uuid),
    Column("lease_until", _MOMENT),
    Column("created_at", _MOMENT, nullable=False, server_default=func.clock_timestamp()),
    Column("updated_at", _MOMENT, nullable=False, server_default=func.clock_timestamp()),
    Column("completed_at", _MOMENT, index=True),
    CheckConstraint("type IN ('CANCEL_ORDERS', 'CLOSE_POSITIONS')", name="type"),
    CheckConstraint("order_side IN ('BUY', 'SELL')", name="order_side"),
    CheckConstraint("status IN ('PENDING', 'CANCELING', 'CLOSING', 'COMPLETED')", name="status"),
    Index("bulk_operation_idempotency_key_idx", "account_id", "idempotency_key", unique=True),
)
Index(
    "bulk_operation_unfinished_idx",
    bulk_operation.c.organization_id,
    bulk_operation.c.next_attempt_at,
    postgresql_where=text("status <> 'COMPLETED'"),
)
