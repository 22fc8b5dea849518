"""What API keys have spent of their budgets, as SQLAlchemy sees it: one row for each key."""

from sqlalchemy import Column, DateTime, Numeric, Table, Uuid

from intents.store.tables import METADATA, intent

key_budget = Table(
    "key_budget",
    METADATA,
    Column("key_id", Uuid, primary_key=True),
    Column("organization_id", Uuid, nullable=False),
    Column("day_ends_at", DateTime(timezone=True), nullable=False),
    Column("spent", Numeric, nullable=False),
)
for column in (
    Column("budget_key_id", Uuid),
    Column("budget_day_ends_at", DateTime(timezone=True)),
    Column("budget_notional", Numeric),
    Column("budget_quantity", Numeric),
):
    intent.append_column(column)
