"""Tables of what is read at the brokers: how fast that goes, and prices. The rest is in `tables`."""

from sqlalchemy import Column, DateTime, Numeric, Table, Text, Uuid

from intents.store.tables import METADATA

_MOMENT = DateTime(timezone=True)

broker_pace = Table(
    "broker_pace",
    METADATA,
    Column("broker", Text, primary_key=True),
    Column("paid_until", _MOMENT, nullable=False),
)
quote = Table(
    "quote",
    METADATA,
    Column("account_id", Uuid, primary_key=True),
    Column("organization_id", Uuid, nullable=False),
    Column("symbol", Text, primary_key=True),
    Column("bid", Numeric),
    Column("ask", Numeric),
    Column("last", Numeric),
    Column("source", Text),
    Column("quoted_at", _MOMENT),
    Column("traded_at", _MOMENT),
    Column("read_at", _MOMENT),
    Column("requested_at", _MOMENT),
)
