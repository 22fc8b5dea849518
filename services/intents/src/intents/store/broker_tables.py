"""Tables of what is at the brokers: accounts, orders, prices, how fast they are read, and how far we are behind there.

The rest is in `tables`.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Float,
    Index,
    Integer,
    Numeric,
    Table,
    Text,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY

from intents.store.tables import METADATA

_MOMENT = DateTime(timezone=True)

broker_pace = Table(
    "broker_pace",
    METADATA,
    Column("broker", Text, primary_key=True),
    Column("paid_until", _MOMENT, nullable=False),
)
backlog = Table(
    "backlog",
    METADATA,
    Column("organization_id", Uuid, primary_key=True),
    Column("scope", Text, primary_key=True),
    Column("expires_at", _MOMENT, nullable=False),
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
broker_account = Table(
    "broker_account",
    METADATA,
    Column("account_id", Uuid, primary_key=True),
    Column("lease_token", Uuid),
    Column("lease_until", _MOMENT),
    Column("reconciled_at", _MOMENT),
    Column("refused_credential", Text),
    Column("epoch", Uuid),
    Column("organization_id", Uuid),
    Column("next_read_at", _MOMENT),
    Column("attempted_at", _MOMENT),
    Column("read_failures", Integer, nullable=False, server_default="0"),
    Column("held_account", Text),
    Column("awaits_reading", Boolean, nullable=False, server_default="false"),
    Index("broker_account_next_read_idx", "next_read_at", postgresql_where=text("next_read_at IS NOT NULL")),
)
broker_order = Table(
    "broker_order",
    METADATA,
    Column("account_id", Uuid, primary_key=True),
    Column("client_order_id", Text, primary_key=True),
    Column("intent_id", Uuid),
    Column("action_sequence", BigInteger),
    Column("broker_order_id", Text),
    Column("status", Text, nullable=False),
    Column("executions", ARRAY(Text), nullable=False, server_default="{}"),
    Column("filled_quantity", Numeric, nullable=False, server_default="0"),
    Column("executed_quantity", Numeric, nullable=False, server_default="0"),
    Column("filled_value", Numeric, nullable=False, server_default="0"),
    Column("quantity", Numeric),
    Column("credential", Text),
    Column("unwanted_since", _MOMENT),
    Column("created_at", _MOMENT, nullable=False, server_default=func.now()),
    Column("updated_at", _MOMENT, nullable=False, server_default=func.now()),
    CheckConstraint("filled_quantity >= 0 AND filled_quantity <> 'NaN'", name="filled_quantity"),
    Index("broker_order_intent_idx", "intent_id", postgresql_where=text("intent_id IS NOT NULL")),
)
Index(
    "broker_order_unended_idx",
    broker_order.c.account_id,
    postgresql_where=text("status NOT IN ('FILLED', 'CANCELED', 'EXPIRED', 'REJECTED', 'REPLACED')"),
)
Index(
    "broker_order_ended_idx",
    broker_order.c.account_id,
    broker_order.c.broker_order_id,
    postgresql_where=text("status IN ('FILLED', 'CANCELED', 'EXPIRED', 'REJECTED', 'REPLACED')"),
)
broker_call = Table(
    "broker_call",
    METADATA,
    Column("account_id", Uuid, primary_key=True),
    Column("organization_id", Uuid, nullable=False),
    Column("intent_id", Uuid, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("action_id", Uuid, nullable=False),
    Column("verb", Text, nullable=False),
    Column("started_at", _MOMENT, nullable=False),
    Column("last_started_at", _MOMENT, nullable=False),
    Column("milliseconds", Float, nullable=False),
    Column("times", Integer, nullable=False),
    Column("result", Text, nullable=False),
    Column("reason", Text),
    CheckConstraint("verb IN ('create', 'replace', 'cancel', 'find', 'read')", name="verb"),
)
broker_login = Table(
    "broker_login",
    METADATA,
    Column("account_id", Uuid, primary_key=True),
    Column("credential", Text, primary_key=True),
    Column("broker_account", Text, nullable=False),
    Column("created_at", _MOMENT, nullable=False, server_default=func.now()),
)
