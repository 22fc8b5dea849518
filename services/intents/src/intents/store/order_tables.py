"""The tables and indexes that orders, refusals and what is held or open are found by, as SQLAlchemy sees them."""

from sqlalchemy import Boolean, CheckConstraint, Column, DateTime, Index, Numeric, Table, Text, Uuid, text

from intents.store.tables import METADATA, intent, order_total, position, refusal

Index(
    "intent_client_id_key",
    intent.c.account_id,
    intent.c.client_id,
    unique=True,
    postgresql_where=text("client_id IS NOT NULL"),
)
Index(
    "intent_status_order_idx",
    intent.c.account_id,
    intent.c.status,
    intent.c.created_at,
    intent.c.id,
    postgresql_where=text("status IS NOT NULL"),
)
Index(
    "intent_symbol_order_idx",
    intent.c.account_id,
    intent.c.symbol,
    intent.c.status,
    intent.c.created_at,
    intent.c.id,
    postgresql_where=text("symbol IS NOT NULL"),
)
intent_tag = Table(
    "intent_tag",
    METADATA,
    Column("account_id", Uuid, primary_key=True),
    Column("organization_id", Uuid, nullable=False),
    Column("tag", Text, primary_key=True),
    Column("created_at", DateTime(timezone=True), primary_key=True),
    Column("intent_id", Uuid, primary_key=True),
)
Index("intent_overordered_idx", intent.c.account_id, intent.c.id, postgresql_where=text("overordered"))
Index("intent_lease_idx", intent.c.lease_holder, postgresql_where=text("lease_until IS NOT NULL"))
Index(
    "refusal_unlogged_idx",
    refusal.c.account_id,
    refusal.c.created_at,
    refusal.c.id,
    postgresql_where=text("sequence IS NULL"),
)
Index("position_held_idx", position.c.account_id, position.c.symbol, postgresql_where=text("quantity <> 0"))
Index(
    "order_total_open_idx",
    order_total.c.account_id,
    order_total.c.symbol,
    postgresql_where=text("open_buy_quantity + open_sell_quantity > 0"),
)
intent_group = Table(
    "intent_group",
    METADATA,
    Column("account_id", Uuid, primary_key=True),
    Column("id", Uuid, primary_key=True),
    Column("organization_id", Uuid, nullable=False),
    Column("kind", Text, nullable=False),
    Column("quantity", Numeric, nullable=False),
    Column("excess_quantity", Numeric, nullable=False, server_default="0"),
    Column("flatten_quantity", Numeric, nullable=False, server_default="0"),
    Column("flattened_quantity", Numeric, nullable=False, server_default="0"),
    Column("canceling", Boolean, nullable=False, server_default="false"),
    Column("paired", Boolean, nullable=False, server_default="false"),
    Column("created_at", DateTime(timezone=True), nullable=False),
    CheckConstraint("kind IN ('Bracket', 'OneCancelsOther', 'OneTriggersOther')", name="kind"),
)
Index(
    "intent_group_open_idx",
    intent_group.c.account_id,
    intent_group.c.id,
    postgresql_where=text("canceling OR flatten_quantity > flattened_quantity"),
)
Index(
    "intent_group_idx",
    intent.c.account_id,
    intent.c.group_id,
    intent.c.id,
    postgresql_where=text("group_id IS NOT NULL"),
)
