"""What a limit of the exposure reads no longer grows with the symbols that the account has ever traded."""

from alembic import op

revision = "0008"
down_revision = "0007"

# The queries below name these conditions word by word, which is how Postgres knows that the indexes serve them.
HELD = "quantity <> 0"
OPEN = "open_buy_quantity + open_sell_quantity > 0"
INDEXES = f"""
CREATE INDEX position_held_idx ON intents.position (account_id, symbol) WHERE {HELD};
CREATE INDEX order_total_open_idx ON intents.order_total (account_id, symbol) WHERE {OPEN};
"""
# Row-level security hides the statistics of these conditions from the planner: it takes half of the account for held,
# and would read the whole table instead.
BY_INDEX = "SET enable_seqscan = off"

# Joined as it is, the view is evaluated for every symbol of the account; LIMIT makes it one symbol at a time. The
# symbol has to be a plain column for that.
PRICE_OF_SYMBOL = """LEFT JOIN LATERAL (
            SELECT r.price, r.priced_at FROM intents_api.reference_price r
            WHERE r.account_id = of_account AND r.symbol = symbols.symbol LIMIT 1) price ON true"""
PRICES_BEFORE = """LEFT JOIN intents_api.reference_price price
            ON price.account_id = of_account AND price.symbol = symbols.symbol"""

SIZES = f"""
            SELECT symbol, greatest(sum(held) + sum(buy), sum(sell) - sum(held)) AS size
            FROM (
                SELECT symbol, quantity AS held, 0 AS buy, 0 AS sell
                FROM intents_api.position WHERE account_id = of_account AND {HELD}
                UNION ALL
                SELECT symbol, 0, open_buy_quantity, open_sell_quantity
                FROM intents_api.order_total WHERE account_id = of_account AND {OPEN}
            ) parts GROUP BY symbol"""  # noqa: S608 - constants
SIZES_BEFORE = """
            SELECT symbol, greatest(coalesce(p.quantity, 0) + coalesce(t.open_buy_quantity, 0),
                                    coalesce(t.open_sell_quantity, 0) - coalesce(p.quantity, 0)) AS size
            FROM (SELECT * FROM intents_api.position WHERE account_id = of_account) p
            FULL JOIN (SELECT * FROM intents_api.order_total WHERE account_id = of_account) t USING (symbol)"""


def other_exposure(sizes: str, prices: str, settings: str = "") -> str:
    """The greatest that each other symbol may become, long or short; NULL if one has no usable price."""
    return f"""
CREATE OR REPLACE FUNCTION intents_api.other_exposure(of_account uuid, without_symbol text, not_before timestamptz)
RETURNS numeric LANGUAGE plpgsql STABLE {settings} AS $$
BEGIN
    RETURN (
        SELECT CASE WHEN coalesce(bool_and(coalesce(price.priced_at >= not_before, false)), true)
               THEN coalesce(sum(symbols.size * price.price), 0) END
        FROM ({sizes}
        ) symbols
        {prices}
        WHERE symbols.size > 0 AND symbols.symbol NOT IN ('', without_symbol)
    );
END
$$
"""  # noqa: S608 - constants


def unpriced_symbols(prices: str, settings: str = "") -> str:
    """Of these symbols, and with exposure of all that are held or open, those whose price is missing: as in 0007."""
    return f"""
CREATE OR REPLACE FUNCTION intents_api.unpriced_symbols(of_account uuid, of_symbols text[], with_exposure boolean,
                                                        price_max_age interval, read_age interval)
RETURNS SETOF text LANGUAGE plpgsql STABLE {settings} AS $$
BEGIN
    RETURN QUERY
    SELECT symbols.symbol FROM (
        SELECT unnest(of_symbols) AS symbol
        UNION
        SELECT p.symbol FROM intents_api.position p WHERE with_exposure AND p.account_id = of_account AND {HELD}
        UNION
        SELECT t.symbol FROM intents_api.order_total t
        WHERE with_exposure AND t.account_id = of_account AND t.symbol <> '' AND {OPEN}
    ) symbols
    {prices}
    WHERE NOT EXISTS (SELECT FROM intents_api.quote_read r
                      WHERE r.account_id = of_account AND r.symbol = symbols.symbol AND r.read_at >= now() - read_age)
      AND coalesce(price.priced_at < now() - price_max_age, true)
    ORDER BY symbols.symbol;
END
$$
"""  # noqa: S608 - constants


def upgrade() -> None:
    op.execute(INDEXES)
    op.execute(other_exposure(SIZES, PRICE_OF_SYMBOL, BY_INDEX))
    op.execute(unpriced_symbols(PRICE_OF_SYMBOL, BY_INDEX))


def downgrade() -> None:
    op.execute(unpriced_symbols(PRICES_BEFORE))
    op.execute(other_exposure(SIZES_BEFORE, PRICES_BEFORE))
    op.execute("DROP INDEX intents.order_total_open_idx; DROP INDEX intents.position_held_idx")
