"""The facts of many orders are read by one plan that runs for all of them: Postgres inlines the function.

In PL/pgSQL each order set up half a dozen plans of its own and took them down again, which took four times as long.
"""

from pathlib import Path
from runpy import run_path
from typing import Any

from alembic import op

from chassis.migrations import publish_function

revision = "0012"
down_revision = "0011"

READERS = ("intents", "intents_web", "controls_web")
FUNCTION = "intents_api.order_facts(uuid, text, text, uuid, timestamptz, interval, boolean)"
EXPOSURE_BEFORE = "intents_api.other_exposure(uuid, text, timestamptz)"

# The newest order that no longer counts says how many there were before it.
ORDERS_BEFORE = """
        coalesce({total}.orders, 0) - coalesce((
            SELECT n.{counter} FROM intents_api.order_number n
            WHERE n.account_id = of_account {of_symbol}AND n.created_at <= clock.moment - interval '{ago}'
            ORDER BY n.created_at DESC LIMIT 1), 0)"""
ACCOUNT = {"total": "account_total", "counter": "account_orders", "of_symbol": ""}
SYMBOL = {"total": "symbol_total", "counter": "symbol_orders", "of_symbol": "AND n.symbol = of_symbol "}
ORDERS = ",".join(ORDERS_BEFORE.format(**of, ago=ago) for of in (ACCOUNT, SYMBOL) for ago in ("60 seconds", "24 hours"))

# The greatest that each other symbol may become, long or short, with its open orders; NULL if one has no usable price.
# The conditions are word by word those of the indexes of 0008.
OTHER_EXPOSURE = """
            SELECT CASE WHEN coalesce(bool_and(coalesce(other.priced_at >= clock.moment - price_max_age, false)), true)
                   THEN coalesce(sum(symbols.size * other.price), 0) END
            FROM (
                SELECT symbol, greatest(sum(held) + sum(buy), sum(sell) - sum(held)) AS size
                FROM (
                    SELECT symbol, quantity AS held, 0 AS buy, 0 AS sell
                    FROM intents_api.position WHERE account_id = of_account AND quantity <> 0
                    UNION ALL
                    SELECT symbol, 0, open_buy_quantity, open_sell_quantity FROM intents_api.order_total
                    WHERE account_id = of_account AND open_buy_quantity + open_sell_quantity > 0
                ) parts GROUP BY symbol
            ) symbols
            LEFT JOIN LATERAL (
                SELECT r.price, r.priced_at FROM intents_api.reference_price r
                WHERE r.account_id = of_account AND r.symbol = symbols.symbol LIMIT 1) other ON true
            WHERE symbols.size > 0 AND symbols.symbol NOT IN ('', of_symbol)"""

# What limits and the state REDUCING need to know, at the moment `at` or now: the same for a submit, a dry run and a
# preview. `of_intent` is left out of what is open. OFFSET 0 keeps a subquery apart: the moment is one, and an intent is
# found by its id and not among all that are open.
ORDER_FACTS = f"""
CREATE FUNCTION intents_api.order_facts(of_account uuid, of_symbol text, of_side text, of_intent uuid, at timestamptz,
                                        price_max_age interval, with_exposure boolean)
RETURNS TABLE (
    now timestamptz, account_orders_last_minute bigint, account_orders_last_day bigint,
    symbol_orders_last_minute bigint, symbol_orders_last_day bigint, account_open_orders bigint,
    symbol_open_orders bigint, position_quantity numeric, open_quantity numeric, opposite_open_quantity numeric,
    reference_price numeric, reference_price_source text, reference_price_at timestamptz, other_exposure numeric,
    equity numeric, day_start_equity numeric, equity_day_ends_at timestamptz, filled_quantity numeric
)
LANGUAGE sql STABLE ROWS 1 AS $$
    SELECT
        clock.moment,{ORDERS},
        coalesce(account_total.open_orders, 0) - CASE WHEN own.id IS NULL THEN 0 ELSE 1 END,
        coalesce(symbol_total.open_orders, 0) - CASE WHEN own.id IS NULL THEN 0 ELSE 1 END,
        coalesce(p.quantity, 0),
        coalesce(CASE of_side WHEN 'BUY' THEN symbol_total.open_buy_quantity
                 ELSE symbol_total.open_sell_quantity END, 0)
            - coalesce(own.open_quantity, 0),
        coalesce(CASE of_side WHEN 'BUY' THEN symbol_total.open_sell_quantity
                 ELSE symbol_total.open_buy_quantity END, 0),
        price.price, price.source, price.priced_at,
        CASE WHEN with_exposure THEN ({OTHER_EXPOSURE}
        ) END,
        e.equity, e.day_start_equity, e.day_ends_at, own.filled_quantity
    FROM (SELECT coalesce(at, clock_timestamp()) AS moment OFFSET 0) clock
    JOIN accounts_api.account a ON a.id = of_account
    LEFT JOIN intents_api.order_total account_total
        ON account_total.account_id = of_account AND account_total.symbol = ''
    LEFT JOIN intents_api.order_total symbol_total
        ON symbol_total.account_id = of_account AND symbol_total.symbol = of_symbol
    LEFT JOIN LATERAL (
        SELECT * FROM intents_api.open_intent i WHERE i.account_id = of_account AND i.id = of_intent OFFSET 0) own
        ON own.symbol = of_symbol AND own.order_side = of_side
    LEFT JOIN intents_api.position p ON p.account_id = of_account AND p.symbol = of_symbol
    LEFT JOIN LATERAL (
        SELECT r.price, r.source, r.priced_at FROM intents_api.reference_price r
        WHERE r.account_id = of_account AND r.symbol = of_symbol LIMIT 1) price ON true
    LEFT JOIN intents_api.equity e ON e.account_id = of_account
$$
"""  # noqa: S608 - constants


def upgrade() -> None:
    op.execute(f"DROP FUNCTION {FUNCTION}; DROP FUNCTION {EXPOSURE_BEFORE}")
    op.execute(ORDER_FACTS)
    op.execute(publish_function(FUNCTION, *READERS))


def downgrade() -> None:
    totals, cost = _revision("0004_order_totals"), _revision("0008_exposure_cost")
    op.execute(f"DROP FUNCTION {FUNCTION}")
    op.execute(cost["other_exposure"](cost["SIZES"], cost["PRICE_OF_SYMBOL"], cost["BY_INDEX"]))
    op.execute(totals["ORDER_FACTS"])
    for function in (EXPOSURE_BEFORE, FUNCTION):
        op.execute(publish_function(function, *READERS))


def _revision(name: str) -> dict[str, Any]:
    return run_path(str(Path(__file__).with_name(f"{name}.py")))
