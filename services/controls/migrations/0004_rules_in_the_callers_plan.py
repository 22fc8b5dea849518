"""The rules of an account and a symbol become part of the plan of whoever reads them (docs/decisions/0010)."""

from alembic import op

from chassis.migrations import publish_function

revision = "0004"
down_revision = "0003"

RESULT = """
    organization_trading_state text, organization_reason text, organization_switch_version bigint,
    account_trading_state text, account_reason text, account_switch_version bigint,
    manually_disabled boolean, manual_reason text, symbol_manual_version bigint,
    trading_start time, trading_end time, stale_order_millis integer, symbol_time_version bigint,
    account_max_quantity numeric, account_max_notional numeric, account_price_collar_bps integer,
    account_max_orders_per_minute integer, account_max_orders_per_day integer, account_limits_version bigint,
    symbol_max_quantity numeric, symbol_max_notional numeric, symbol_price_collar_bps integer,
    symbol_max_orders_per_minute integer, symbol_max_orders_per_day integer, symbol_limits_version bigint,
    account_max_position_quantity numeric, account_max_position_notional numeric, account_max_open_orders integer,
    account_allow_short boolean, account_max_gross_exposure numeric, account_max_daily_loss numeric,
    account_allowed_symbols text[], account_denied_symbols text[],
    symbol_max_position_quantity numeric, symbol_max_position_notional numeric, symbol_max_open_orders integer,
    symbol_allow_short boolean
"""
SELECTED = """
    SELECT os.trading_state, os.reason, os.version,
        sw.trading_state, sw.reason, sw.version,
        sm.manually_disabled, sm.manual_reason, sm.version,
        st.trading_start, st.trading_end, st.stale_order_millis, st.version,
        al.max_quantity, al.max_notional, al.price_collar_bps, al.max_orders_per_minute, al.max_orders_per_day,
        al.version,
        sl.max_quantity, sl.max_notional, sl.price_collar_bps, sl.max_orders_per_minute, sl.max_orders_per_day,
        sl.version,
        al.max_position_quantity, al.max_position_notional, al.max_open_orders, al.allow_short,
        al.max_gross_exposure, al.max_daily_loss, al.allowed_symbols, al.denied_symbols,
        sl.max_position_quantity, sl.max_position_notional, sl.max_open_orders, sl.allow_short
    FROM (SELECT 1) AS one
    LEFT JOIN controls_api.organization_switch os ON os.organization_id = of_organization
    LEFT JOIN controls_api.account_switch sw ON sw.account_id = of_account
    LEFT JOIN controls_api.account_limits al ON al.account_id = of_account
    LEFT JOIN controls_api.symbol_manual sm ON sm.account_id = of_account AND sm.symbol = of_symbol
    LEFT JOIN controls_api.symbol_time st ON st.account_id = of_account AND st.symbol = of_symbol
    LEFT JOIN controls_api.symbol_limits sl ON sl.account_id = of_account AND sl.symbol = of_symbol
"""
RULES = f"""
CREATE OR REPLACE FUNCTION {{schema}}.rules(of_organization uuid, of_account uuid, of_symbol text)
RETURNS TABLE ({RESULT})
LANGUAGE {{language}} STABLE ROWS 1 AS $$ {{body}} $$
"""


def upgrade() -> None:
    op.execute(RULES.format(schema="controls_api", language="sql", body=SELECTED))
    # For whoever does not prepare its statements: of this one the connection keeps the plan.
    kept = "BEGIN RETURN QUERY SELECT * FROM controls_api.rules(of_organization, of_account, of_symbol); END"
    op.execute(RULES.format(schema="controls", language="plpgsql", body=kept))
    op.execute(publish_function("controls.rules(uuid, uuid, text)", "controls_web"))


def downgrade() -> None:
    op.execute("DROP FUNCTION controls.rules")
    op.execute(RULES.format(schema="controls_api", language="plpgsql", body=f"BEGIN RETURN QUERY {SELECTED}; END"))
