"""The outbox's tables and its feed, as every service's first migration creates them.

Nothing has been released yet: until then `create_v1` is changed in place. From the first release on migrations are
history, and a change of these tables is a new function here, called by a new migration of every service.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Identity,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from chassis import tenancy

_UP = """
CREATE TABLE {schema}.outbox (
    id            bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT outbox_pkey PRIMARY KEY,
    event_id      uuid NOT NULL CONSTRAINT outbox_event_id_key UNIQUE,
    event_type    text NOT NULL,
    ordering_key  text,
    payload       jsonb NOT NULL,
    traceparent   text,
    status        text NOT NULL DEFAULT 'pending'
                  CONSTRAINT outbox_status_check CHECK (status IN ('pending', 'processing', 'completed', 'failed')),
    attempts      integer NOT NULL DEFAULT 0,
    created_at    timestamptz NOT NULL DEFAULT now(),
    available_at  timestamptz NOT NULL DEFAULT now(),
    claimed_at    timestamptz,
    claim_token   uuid,
    settled_at    timestamptz,
    position      bigint,
    last_error    text,
    pending_xid   bigint NOT NULL DEFAULT pg_current_xact_id()::text::bigint,
    redriven_from bigint
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.02);
CREATE INDEX outbox_pending_idx ON {schema}.outbox (available_at, id) WHERE status = 'pending';
CREATE INDEX outbox_processing_idx ON {schema}.outbox (claimed_at) WHERE status = 'processing';
CREATE INDEX outbox_order_idx ON {schema}.outbox (ordering_key, id) WHERE status IN ('pending', 'processing');
CREATE INDEX outbox_open_idx ON {schema}.outbox (status, event_type, created_at) WHERE status <> 'completed';
CREATE INDEX outbox_uncounted_idx ON {schema}.outbox (pending_xid, event_type) WHERE status = 'pending';
CREATE INDEX outbox_retried_idx ON {schema}.outbox (event_type, attempts) WHERE status = 'pending' AND attempts > 0;
CREATE INDEX outbox_completed_idx ON {schema}.outbox (event_type, created_at) WHERE status = 'completed';
CREATE UNIQUE INDEX outbox_position_idx ON {schema}.outbox (position) WHERE position IS NOT NULL;
CREATE INDEX outbox_redriven_idx ON {schema}.outbox (redriven_from) WHERE redriven_from IS NOT NULL;
CREATE TABLE {schema}.outbox_head (
    one_row       boolean NOT NULL DEFAULT true CONSTRAINT outbox_head_pkey PRIMARY KEY
                  CONSTRAINT outbox_head_one_row_check CHECK (one_row),
    last_position bigint NOT NULL DEFAULT 0,
    counted_below bigint NOT NULL DEFAULT 0
);
INSERT INTO {schema}.outbox_head DEFAULT VALUES;
CREATE TABLE {schema}.outbox_completed (
    event_type text NOT NULL,
    attempts   integer NOT NULL,
    count      bigint NOT NULL,
    CONSTRAINT outbox_completed_pkey PRIMARY KEY (event_type, attempts)
);
CREATE TABLE {schema}.outbox_backlog (
    event_type text CONSTRAINT outbox_backlog_pkey PRIMARY KEY,
    count      bigint NOT NULL
);
CREATE VIEW {schema}_api.feed AS
    SELECT position, event_id, event_type, payload, traceparent, settled_at
    FROM {schema}.outbox WHERE position IS NOT NULL;
"""

_DOWN = """
DROP VIEW {schema}_api.feed;
DROP TABLE {schema}.outbox_backlog;
DROP TABLE {schema}.outbox_completed;
DROP TABLE {schema}.outbox_head;
DROP TABLE {schema}.outbox;
"""


# A web process queues events about whom it serves, and reads none.
_APPENDING = """
CREATE POLICY append ON {schema}.outbox FOR INSERT TO {web} WITH CHECK ({visible});
"""


def create_v1(schema: str) -> str:
    visible = tenancy.visible("CAST(payload ->> 'organization_id' AS uuid)")
    appending = _APPENDING.format(schema=schema, web=tenancy.WEB, visible=visible)
    return _UP.format(schema=schema) + tenancy.protect_from_web(f"{schema}.outbox") + appending


def let_append(schema: str, role: str) -> str:
    """SQL for migrations: what a web process's role needs to queue events."""
    return f"GRANT INSERT (event_id, event_type, ordering_key, payload, traceparent) ON {schema}.outbox TO {role};"


def drop_v1(schema: str) -> str:
    return _DOWN.format(schema=schema)


def tables(metadata: MetaData) -> None:
    """The same tables as SQLAlchemy sees them, so that the migration test can compare."""
    moment = DateTime(timezone=True)
    outbox = Table(
        "outbox",
        metadata,
        Column("id", BigInteger, Identity(always=True), primary_key=True),
        Column("event_id", Uuid, nullable=False, unique=True),
        Column("event_type", Text, nullable=False),
        Column("ordering_key", Text),
        Column("payload", JSONB, nullable=False),
        Column("traceparent", Text),
        Column("status", Text, nullable=False, server_default="pending"),
        Column("attempts", Integer, nullable=False, server_default="0"),
        Column("created_at", moment, nullable=False, server_default=func.now()),
        Column("available_at", moment, nullable=False, server_default=func.now()),
        Column("claimed_at", moment),
        Column("claim_token", Uuid),
        Column("settled_at", moment),
        Column("position", BigInteger),
        Column("last_error", Text),
        Column("pending_xid", BigInteger, nullable=False, server_default=text("pg_current_xact_id()::text::bigint")),
        Column("redriven_from", BigInteger),
        CheckConstraint("status IN ('pending', 'processing', 'completed', 'failed')", name="status"),
    )
    column = outbox.c
    Index("outbox_pending_idx", column.available_at, column.id, postgresql_where=text("status = 'pending'"))
    Index("outbox_processing_idx", column.claimed_at, postgresql_where=text("status = 'processing'"))
    Index(
        "outbox_order_idx",
        column.ordering_key,
        column.id,
        postgresql_where=text("status IN ('pending', 'processing')"),
    )
    Index(
        "outbox_open_idx",
        column.status,
        column.event_type,
        column.created_at,
        postgresql_where=text("status <> 'completed'"),
    )
    Index("outbox_uncounted_idx", column.pending_xid, column.event_type, postgresql_where=text("status = 'pending'"))
    Index(
        "outbox_retried_idx",
        column.event_type,
        column.attempts,
        postgresql_where=text("status = 'pending' AND attempts > 0"),
    )
    Index(
        "outbox_completed_idx",
        column.event_type,
        column.created_at,
        postgresql_where=text("status = 'completed'"),
    )
    Index("outbox_position_idx", column.position, unique=True, postgresql_where=text("position IS NOT NULL"))
    Index("outbox_redriven_idx", column.redriven_from, postgresql_where=text("redriven_from IS NOT NULL"))
    Table(
        "outbox_head",
        metadata,
        Column("one_row", Boolean, primary_key=True, server_default="true"),
        Column("last_position", BigInteger, nullable=False, server_default="0"),
        Column("counted_below", BigInteger, nullable=False, server_default="0"),
        CheckConstraint("one_row", name="one_row"),
    )
    Table(
        "outbox_completed",
        metadata,
        Column("event_type", Text, primary_key=True),
        Column("attempts", Integer, primary_key=True),
        Column("count", BigInteger, nullable=False),
    )
    Table(
        "outbox_backlog",
        metadata,
        Column("event_type", Text, primary_key=True),
        Column("count", BigInteger, nullable=False),
    )
