"""Switches, symbol controls and limits; the one read that a submit needs of them."""

from alembic import op

from chassis import feed, tenancy
from chassis.migrations import publish, publish_function, role
from chassis.outbox import ddl

revision = "0001"
down_revision = None

# A deleted control keeps its row: should it come back, its version goes on, so no old If-Match ever hits a new control.
LIFE = """
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    deleted_at timestamptz,
    version    bigint NOT NULL DEFAULT 1
"""
SWITCH = """
    trading_state text NOT NULL
                  CONSTRAINT {table}_trading_state_check CHECK (trading_state IN ('ACTIVE', 'REDUCING', 'HALTED')),
    reason        text
"""
# 'NaN' is greater than every number, so the upper bound refuses it.
LIMITS = """
    max_quantity          numeric
                          CONSTRAINT {table}_max_quantity_check CHECK (max_quantity > 0 AND max_quantity < 1e15),
    max_notional          numeric
                          CONSTRAINT {table}_max_notional_check CHECK (max_notional > 0 AND max_notional < 1e15),
    price_collar_bps      integer CONSTRAINT {table}_price_collar_bps_check CHECK (price_collar_bps > 0),
    max_orders_per_minute integer CONSTRAINT {table}_max_orders_per_minute_check CHECK (max_orders_per_minute > 0),
    max_orders_per_day    integer CONSTRAINT {table}_max_orders_per_day_check CHECK (max_orders_per_day > 0)
"""
MANUAL = "manually_disabled boolean NOT NULL, manual_reason text"
TIME = """
    trading_start      time(0),
    trading_end        time(0),
    stale_order_millis integer,
    CONSTRAINT symbol_time_window_check CHECK (coalesce(trading_start, '00:00') <> trading_end),
    CONSTRAINT symbol_time_stale_order_millis_check CHECK (stale_order_millis BETWEEN 1000 AND 86400000)
"""
ORGANIZATION_KEY = "organization_id uuid CONSTRAINT {table}_pkey PRIMARY KEY"
ACCOUNT_KEY = "account_id uuid CONSTRAINT {table}_pkey PRIMARY KEY, organization_id uuid NOT NULL"
SYMBOL_KEY = """
    account_id uuid NOT NULL, symbol text COLLATE "C" NOT NULL, organization_id uuid NOT NULL,
    CONSTRAINT {table}_pkey PRIMARY KEY (account_id, symbol)
"""
TABLES = {
    "organization_switch": (ORGANIZATION_KEY, SWITCH),
    "account_switch": (ACCOUNT_KEY, SWITCH),
    "account_limits": (ACCOUNT_KEY, LIMITS),
    "symbol_manual": (SYMBOL_KEY, MANUAL),
    "symbol_time": (SYMBOL_KEY, TIME),
    "symbol_limits": (SYMBOL_KEY, LIMITS),
}

# Each table as others may read it, without what was deleted.
VIEW = "CREATE VIEW controls_api.{table} AS SELECT {columns} FROM controls.{table} WHERE deleted_at IS NULL"
COLUMNS = {
    ORGANIZATION_KEY: "organization_id",
    ACCOUNT_KEY: "account_id, organization_id",
    SYMBOL_KEY: "account_id, symbol, organization_id",
    SWITCH: "trading_state, reason",
    LIMITS: "max_quantity, max_notional, price_collar_bps, max_orders_per_minute, max_orders_per_day",
    MANUAL: "manually_disabled, manual_reason",
    TIME: "trading_start, trading_end, stale_order_millis",
}

# Always one row: six reads by primary key. A function and not a view, because a symbol without any control has no row
# to join; in PL/pgSQL, because its plan is kept by the connection and six joins would be planned anew by every submit.
# STABLE: it sees what the calling statement sees.
RULES = """
CREATE FUNCTION controls_api.rules(of_organization uuid, of_account uuid, of_symbol text)
RETURNS TABLE (
    organization_trading_state text, organization_reason text, organization_switch_version bigint,
    account_trading_state text, account_reason text, account_switch_version bigint,
    manually_disabled boolean, manual_reason text, symbol_manual_version bigint,
    trading_start time, trading_end time, stale_order_millis integer, symbol_time_version bigint,
    account_max_quantity numeric, account_max_notional numeric, account_price_collar_bps integer,
    account_max_orders_per_minute integer, account_max_orders_per_day integer, account_limits_version bigint,
    symbol_max_quantity numeric, symbol_max_notional numeric, symbol_price_collar_bps integer,
    symbol_max_orders_per_minute integer, symbol_max_orders_per_day integer, symbol_limits_version bigint
)
LANGUAGE plpgsql STABLE ROWS 1 AS $$
BEGIN
    RETURN QUERY SELECT
        os.trading_state, os.reason, os.version,
        sw.trading_state, sw.reason, sw.version,
        sm.manually_disabled, sm.manual_reason, sm.version,
        st.trading_start, st.trading_end, st.stale_order_millis, st.version,
        al.max_quantity, al.max_notional, al.price_collar_bps, al.max_orders_per_minute, al.max_orders_per_day,
        al.version,
        sl.max_quantity, sl.max_notional, sl.price_collar_bps, sl.max_orders_per_minute, sl.max_orders_per_day,
        sl.version
    FROM (SELECT 1) AS one
    LEFT JOIN controls_api.organization_switch os ON os.organization_id = of_organization
    LEFT JOIN controls_api.account_switch sw ON sw.account_id = of_account
    LEFT JOIN controls_api.account_limits al ON al.account_id = of_account
    LEFT JOIN controls_api.symbol_manual sm ON sm.account_id = of_account AND sm.symbol = of_symbol
    LEFT JOIN controls_api.symbol_time st ON st.account_id = of_account AND st.symbol = of_symbol
    LEFT JOIN controls_api.symbol_limits sl ON sl.account_id = of_account AND sl.symbol = of_symbol;
END
$$
"""
READERS = ("controls_web", "intents", "intents_web")
FEED_READERS = ("intents",)
WEB, WORKER = role("controls_web"), role("controls")


def upgrade() -> None:
    for table, (key, values) in TABLES.items():
        columns = ", ".join((key, values, LIFE)).format(table=table)
        op.execute(f"CREATE TABLE controls.{table} ({columns})")
        op.execute(tenancy.protect(f"controls.{table}"))
        op.execute(f"GRANT SELECT, INSERT, UPDATE ON controls.{table} TO {WEB}")
        op.execute(f"REVOKE INSERT, UPDATE ON controls.{table} FROM {WORKER}")
        shown = ", ".join((COLUMNS[key], COLUMNS[values], "created_at, updated_at, version"))
        op.execute(VIEW.format(table=table, columns=shown))
    op.execute(ddl.create_v1("controls"))
    op.execute(feed.create_v1("controls"))
    op.execute(
        f"REVOKE DELETE ON controls.outbox_head, controls.outbox_completed, controls.feed_position FROM {WORKER}"
    )
    op.execute(f"REVOKE INSERT ON controls.outbox_head FROM {WORKER}")
    op.execute(f"REVOKE ALL ON controls.organization_switch FROM {WORKER}")  # it removes an account's controls only
    op.execute(f"GRANT USAGE ON SCHEMA controls TO {WEB}")
    op.execute(ddl.let_append("controls", WEB))
    for view in TABLES:
        op.execute(publish(f"controls_api.{view}", *READERS))
    op.execute(publish("controls_api.feed", *FEED_READERS))
    op.execute(RULES)
    op.execute(publish_function("controls_api.rules(uuid, uuid, text)", *READERS))


def downgrade() -> None:
    op.execute("DROP FUNCTION controls_api.rules")
    for table in TABLES:
        op.execute(f"DROP VIEW controls_api.{table}")
    op.execute(feed.drop_v1("controls"))
    op.execute(ddl.drop_v1("controls"))
    for table in TABLES:
        op.execute(f"DROP TABLE controls.{table}")
