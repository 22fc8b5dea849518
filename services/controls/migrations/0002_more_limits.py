"""Limits of positions, open orders, exposure and loss; symbols that an account may or may not trade."""

from alembic import op

from chassis.migrations import publish, publish_function, role

revision = "0002"
down_revision = "0001"

TABLES = ("account_limits", "symbol_limits")
# 'NaN' is greater than every number, so the upper bound refuses it.
COLUMNS = """
ALTER TABLE controls.{table}
    ADD max_position_quantity numeric CONSTRAINT {table}_max_position_quantity_check
        CHECK (max_position_quantity > 0 AND max_position_quantity < 1e15),
    ADD max_position_notional numeric CONSTRAINT {table}_max_position_notional_check
        CHECK (max_position_notional > 0 AND max_position_notional < 1e15),
    ADD max_open_orders integer CONSTRAINT {table}_max_open_orders_check CHECK (max_open_orders > 0),
    ADD allow_short boolean
"""
ACCOUNT_COLUMNS = """
ALTER TABLE controls.account_limits
    ADD max_gross_exposure numeric CONSTRAINT account_limits_max_gross_exposure_check
        CHECK (max_gross_exposure > 0 AND max_gross_exposure < 1e15),
    ADD max_daily_loss numeric CONSTRAINT account_limits_max_daily_loss_check
        CHECK (max_daily_loss > 0 AND max_daily_loss < 1e15),
    ADD allowed_symbols text[],
    ADD denied_symbols text[]
"""
OLD = {
    "account_limits": """account_id, organization_id, max_quantity, max_notional, price_collar_bps,
        max_orders_per_minute, max_orders_per_day, created_at, updated_at, version""",
    "symbol_limits": """account_id, symbol, organization_id, max_quantity, max_notional, price_collar_bps,
        max_orders_per_minute, max_orders_per_day, created_at, updated_at, version""",
}
NEW_OF_BOTH = "max_position_quantity, max_position_notional, max_open_orders, allow_short"
NEW = {
    "account_limits": f"{NEW_OF_BOTH}, max_gross_exposure, max_daily_loss, allowed_symbols, denied_symbols",
    "symbol_limits": NEW_OF_BOTH,
}
VIEW = """
CREATE OR REPLACE VIEW controls_api.{table} WITH (security_invoker = true) AS
    SELECT {columns} FROM controls.{table} WHERE deleted_at IS NULL
"""

# The columns that were there before, in their places; then the new ones.
OLD_RESULT = """
    organization_trading_state text, organization_reason text, organization_switch_version bigint,
    account_trading_state text, account_reason text, account_switch_version bigint,
    manually_disabled boolean, manual_reason text, symbol_manual_version bigint,
    trading_start time, trading_end time, stale_order_millis integer, symbol_time_version bigint,
    account_max_quantity numeric, account_max_notional numeric, account_price_collar_bps integer,
    account_max_orders_per_minute integer, account_max_orders_per_day integer, account_limits_version bigint,
    symbol_max_quantity numeric, symbol_max_notional numeric, symbol_price_collar_bps integer,
    symbol_max_orders_per_minute integer, symbol_max_orders_per_day integer, symbol_limits_version bigint
"""
NEW_RESULT = f"""{OLD_RESULT},
    account_max_position_quantity numeric, account_max_position_notional numeric, account_max_open_orders integer,
    account_allow_short boolean, account_max_gross_exposure numeric, account_max_daily_loss numeric,
    account_allowed_symbols text[], account_denied_symbols text[],
    symbol_max_position_quantity numeric, symbol_max_position_notional numeric, symbol_max_open_orders integer,
    symbol_allow_short boolean
"""
OLD_VALUES = """
        os.trading_state, os.reason, os.version,
        sw.trading_state, sw.reason, sw.version,
        sm.manually_disabled, sm.manual_reason, sm.version,
        st.trading_start, st.trading_end, st.stale_order_millis, st.version,
        al.max_quantity, al.max_notional, al.price_collar_bps, al.max_orders_per_minute, al.max_orders_per_day,
        al.version,
        sl.max_quantity, sl.max_notional, sl.price_collar_bps, sl.max_orders_per_minute, sl.max_orders_per_day,
        sl.version
"""
NEW_VALUES = f"""{OLD_VALUES},
        al.max_position_quantity, al.max_position_notional, al.max_open_orders, al.allow_short,
        al.max_gross_exposure, al.max_daily_loss, al.allowed_symbols, al.denied_symbols,
        sl.max_position_quantity, sl.max_position_notional, sl.max_open_orders, sl.allow_short
"""
RULES = """
DROP FUNCTION controls_api.rules(uuid, uuid, text);
CREATE FUNCTION controls_api.rules(of_organization uuid, of_account uuid, of_symbol text)
RETURNS TABLE ({result})
LANGUAGE plpgsql STABLE ROWS 1 AS $$
BEGIN
    RETURN QUERY SELECT {values}
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
WORKER = role("controls")
READERS = ("controls_web", "intents", "intents_web")


def upgrade() -> None:
    for table in TABLES:
        op.execute(COLUMNS.format(table=table))
    op.execute(ACCOUNT_COLUMNS)
    for table in TABLES:
        op.execute(VIEW.format(table=table, columns=f"{OLD[table]}, {NEW[table]}"))
        op.execute(publish(f"controls_api.{table}", *READERS))
    replace_rules(NEW_RESULT, NEW_VALUES)
    op.execute(f"GRANT INSERT, UPDATE ON controls.account_switch TO {WORKER}")  # an account that lost too much


def replace_rules(result: str, values: str) -> None:
    op.execute(RULES.format(result=result, values=values))
    op.execute(publish_function("controls_api.rules(uuid, uuid, text)", *READERS))


def downgrade() -> None:
    op.execute(f"REVOKE INSERT, UPDATE ON controls.account_switch FROM {WORKER}")
    replace_rules(OLD_RESULT, OLD_VALUES)
    for table in TABLES:
        op.execute(f"DROP VIEW controls_api.{table}")
        op.execute(VIEW.format(table=table, columns=OLD[table]))
        op.execute(publish(f"controls_api.{table}", *READERS))
        for column in NEW[table].split(", "):
            op.execute(f"ALTER TABLE controls.{table} DROP {column}")
