"""The tables as SQLAlchemy sees them. They shard by the account: every primary key but two starts with it."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Date,
    DateTime,
    ForeignKey,
    Index,
    LargeBinary,
    Numeric,
    Table,
    Text,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSON, JSONB

from chassis import db, feed
from chassis.outbox import ddl
from intents.store.leg_columns import leg_columns
from intents.store.statuses import ALL_SQL, TERMINAL_SQL
from intents.store.work_columns import work_columns

SCHEMA = "intents"
METADATA = db.metadata(SCHEMA)
_MOMENT = DateTime(timezone=True)

account_head = Table(
    "account_head",
    METADATA,
    Column("account_id", Uuid, primary_key=True),
    Column("organization_id", Uuid, nullable=False),
    Column("last_sequence", BigInteger, nullable=False),
    Column("last_hash", LargeBinary, nullable=False),
    Column("previous_hash", LargeBinary, nullable=False),
)
action = Table(
    "action",
    METADATA,
    Column("account_id", Uuid, primary_key=True),
    Column("sequence", BigInteger, primary_key=True),
    Column("id", Uuid, nullable=False),
    Column("organization_id", Uuid, nullable=False),
    Column("environment", Text, nullable=False),
    Column("intent_id", Uuid, nullable=False),
    Column("type", Text, nullable=False),
    Column("payload", JSON, nullable=False),
    Column("symbol", Text, nullable=False),
    Column("order_side", Text, nullable=False),
    Column("spec", JSON),
    Column("route_strategy", Text, nullable=False),
    Column("ref_intent_id", Uuid),
    Column("actor_type", Text, nullable=False),
    Column("actor_id", Text, nullable=False),
    Column("reason", Text),
    Column("controls", JSON, nullable=False),
    Column("from_status", Text),
    Column("to_status", Text, nullable=False),
    Column("intent_created_at", _MOMENT, nullable=False),
    Column("traceparent", Text),
    Column("request_id", Text),
    Column("previous_hash", LargeBinary, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    Column("created_at", _MOMENT, nullable=False),
    # How many orders the account, and the symbol on it, had accepted with this action: parts of no hash.
    Column("account_orders", BigInteger, nullable=False, server_default="0"),
    Column("symbol_orders", BigInteger, nullable=False, server_default="0"),
    CheckConstraint("environment IN ('paper', 'live')", name="environment"),
    CheckConstraint("type IN ('CREATE', 'REPLACE', 'CANCEL')", name="type"),
    CheckConstraint("order_side IN ('BUY', 'SELL')", name="order_side"),
    CheckConstraint("sequence > 0", name="sequence"),
    Index("action_intent_idx", "intent_id", "sequence"),
    Index("action_created_at_idx", "account_id", "created_at"),
    Index("action_symbol_idx", "account_id", "symbol", "created_at"),
)
intent = Table(
    "intent",
    METADATA,
    Column("account_id", Uuid, primary_key=True),
    Column("id", Uuid, primary_key=True),
    Column("organization_id", Uuid, nullable=False),
    Column("environment", Text, nullable=False),
    Column("lane", Text, nullable=False, server_default=""),  # see `intents.store.backlog`
    Column("symbol", Text, nullable=False),
    Column("order_side", Text, nullable=False),
    Column("route_strategy", Text, nullable=False),
    Column("spec", JSON, nullable=False),
    Column("quantity", Numeric, nullable=False),
    Column("status", Text, nullable=False),
    Column("filled_quantity", Numeric, nullable=False, server_default="0"),
    Column("average_fill_price", Numeric),
    Column("broker_order_id", Text),
    Column("reason_code", Text),
    Column("outcome", Text),
    Column("version", BigInteger, nullable=False, server_default="1"),
    Column("created_at", _MOMENT, nullable=False),
    Column("updated_at", _MOMENT, nullable=False),
    *work_columns(),
    Column("replace_quantity", Numeric),
    # What the caller calls it.
    Column("client_id", Text),
    Column("tags", ARRAY(Text), nullable=False, server_default="{}"),
    Column("extended_hours", Boolean, nullable=False, server_default="false"),
    *leg_columns(),
    CheckConstraint("quantity > 0 AND quantity <> 'NaN'", name="quantity"),
    CheckConstraint("filled_quantity >= 0 AND filled_quantity <> 'NaN'", name="filled_quantity"),
    CheckConstraint(f"status IN ({ALL_SQL})", name="status"),
    CheckConstraint("outcome IN ('unknown')", name="outcome"),
)
Index("intent_open_idx", intent.c.account_id, intent.c.symbol, postgresql_where=text(f"status NOT IN ({TERMINAL_SQL})"))
position = Table(
    "position",
    METADATA,
    Column("account_id", Uuid, primary_key=True),
    Column("organization_id", Uuid, nullable=False),
    Column("symbol", Text, primary_key=True),
    Column("quantity", Numeric, nullable=False),
    Column("last_price", Numeric),
    Column("updated_at", _MOMENT, nullable=False),
    Column("average_entry_price", Numeric),
    Column("market_value", Numeric),
    Column("unrealized_profit", Numeric),
    Column("reconciled_at", _MOMENT),
    Column("price_at", _MOMENT),
    Column("price_source", Text),
    Column("unrecorded_fills", JSONB, nullable=False, server_default="{}"),
    CheckConstraint("price_source IN ('fill', 'broker')", name="price_source"),
)
Index(
    "position_unconfirmed_idx",
    position.c.account_id,
    postgresql_where=text("reconciled_at IS NULL OR reconciled_at < updated_at"),
)
balance = Table(
    "balance",
    METADATA,
    Column("account_id", Uuid, primary_key=True),
    Column("organization_id", Uuid, nullable=False),
    Column("currency", Text, nullable=False),
    Column("cash", Numeric, nullable=False),
    Column("equity", Numeric, nullable=False),
    Column("buying_power", Numeric, nullable=False),
    Column("updated_at", _MOMENT, nullable=False),
)
day_equity = Table(
    "day_equity",
    METADATA,
    Column("account_id", Uuid, primary_key=True),
    Column("organization_id", Uuid, nullable=False),
    Column("day", Date, nullable=False),
    Column("equity", Numeric, nullable=False),
    Column("balance_at", _MOMENT, nullable=False),
    Column("breached", Boolean, nullable=False, server_default="false"),
    Column("ends_at", _MOMENT, nullable=False),
)
order_total = Table(
    "order_total",
    METADATA,
    Column("account_id", Uuid, primary_key=True),
    Column("symbol", Text, primary_key=True),  # empty for the account
    Column("organization_id", Uuid, nullable=False),
    Column("orders", BigInteger, nullable=False),
    Column("open_orders", BigInteger, nullable=False),
    Column("open_buy_quantity", Numeric, nullable=False),
    Column("open_sell_quantity", Numeric, nullable=False),
)
account_event = Table(
    "account_event",
    METADATA,
    Column("account_id", Uuid, primary_key=True),
    Column("organization_id", Uuid, nullable=False),
    Column("sequence", BigInteger, primary_key=True),
    Column("id", Uuid, nullable=False),
    Column("type", Text, nullable=False),
    Column("intent_id", Uuid),
    Column("broker_execution_id", Text),
    Column("from_status", Text),
    Column("to_status", Text),
    Column("intent_created_at", _MOMENT),
    Column("payload", JSONB, nullable=False),
    Column("traceparent", Text),
    Column("occurred_at", _MOMENT, nullable=False),
    Column("created_at", _MOMENT, nullable=False, server_default=func.now()),
    Column("previous_hash", LargeBinary, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    CheckConstraint(
        "type IN ('BROKER_ORDER', 'BROKER_TRADE', 'BROKER_POSITION', 'CONTROL', 'ACCOUNT', 'REFUSAL')", name="type"
    ),
    CheckConstraint("sequence > 0", name="sequence"),
    Index("account_event_intent_idx", "intent_id", "sequence", postgresql_where=text("intent_id IS NOT NULL")),
)
idempotency = Table(
    "idempotency",
    METADATA,
    Column("account_id", Uuid, primary_key=True),
    Column("organization_id", Uuid, nullable=False),
    Column("key", Text, primary_key=True),
    Column("request_hash", LargeBinary, nullable=False),
    Column("intent_id", Uuid, nullable=False),
    Column("action_id", Uuid, nullable=False),
    Column("state", JSONB, nullable=False),
    Column("created_at", _MOMENT, nullable=False, index=True),
    Column("created", Boolean, nullable=False, server_default="true"),
)
refusal = Table(
    "refusal",
    METADATA,
    Column("account_id", Uuid, primary_key=True),
    Column("created_at", _MOMENT, primary_key=True, index=True),
    Column("id", Uuid, primary_key=True),
    Column("organization_id", Uuid, nullable=False),
    Column("type", Text, nullable=False),
    Column("symbol", Text, nullable=False),
    Column("actor_type", Text, nullable=False),
    Column("actor_id", Text, nullable=False),
    Column("reasons", JSONB, nullable=False),
    Column("order_side", Text),
    Column("spec", JSON),
    Column("ref_intent_id", Uuid),
    Column("request_id", Text),
    Column("sequence", BigInteger),
)
statistic = Table(
    "statistic",
    METADATA,
    Column("account_id", Uuid, primary_key=True),
    Column("organization_id", Uuid, nullable=False),
    Column("width", Text, primary_key=True),
    Column("bucket", _MOMENT, primary_key=True),
    Column("kind", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("amount", BigInteger, nullable=False),
    CheckConstraint("width IN ('minute', 'hour', 'day')", name="width"),
)
statistic_head = Table(
    "statistic_head",
    METADATA,
    Column("account_id", Uuid, primary_key=True),
    Column("organization_id", Uuid, nullable=False),
    Column("last_sequence", BigInteger, nullable=False),
)
log_signing_key = Table(
    "log_signing_key",
    METADATA,
    Column("key_id", Text, primary_key=True),
    Column("public_key", LargeBinary, nullable=False),
    Column("created_at", _MOMENT, nullable=False, server_default=func.now()),
)
signed_head = Table(
    "signed_head",
    METADATA,
    Column("account_id", Uuid, primary_key=True),
    Column("organization_id", Uuid, nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    Column("epoch", Uuid, nullable=False),
    Column("signed_at", _MOMENT, nullable=False),
    Column("key_id", Text, ForeignKey(log_signing_key.c.key_id), nullable=False),
    Column("signature", LargeBinary, nullable=False),
)
signed_head_history = Table(
    "signed_head_history",
    METADATA,
    Column("account_id", Uuid, primary_key=True),
    Column("organization_id", Uuid, nullable=False),
    Column("sequence", BigInteger, primary_key=True),
    Column("hash", LargeBinary, nullable=False),
    Column("epoch", Uuid, nullable=False),
    Column("signed_at", _MOMENT, nullable=False),
    Column("key_id", Text, ForeignKey(log_signing_key.c.key_id), nullable=False),
    Column("signature", LargeBinary, nullable=False),
)
log_epoch = Table(
    "log_epoch",
    METADATA,
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("epoch", Uuid, nullable=False, unique=True, server_default=func.gen_random_uuid()),
    Column("started_at", _MOMENT, nullable=False, server_default=func.now()),
    Column("reason", Text, nullable=False),
    Column("database_identity", Text, nullable=False),
    CheckConstraint("reason IN ('INSTALLED', 'RESTORED', 'OPERATOR')", name="reason"),
)
ddl.tables(METADATA)
feed.table(METADATA)
