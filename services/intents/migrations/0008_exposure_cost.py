"""What a limit of the exposure reads no longer grows with the symbols that the account has ever traded; and a fresh
quote counts although the last trade is old.
"""

from alembic import op

from chassis.migrations import publish

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

# The newest of the last trade, the middle of bid and ask, and what the broker reports with the position or the account
# traded at. Of the same moment, in this order.
REFERENCE_PRICE = """
CREATE OR REPLACE VIEW intents_api.reference_price AS
    SELECT DISTINCT ON (account_id, symbol) account_id, symbol, price, source, priced_at
    FROM (
        SELECT account_id, symbol, made.price, 'quote' AS source, made.priced_at, made.place
        FROM intents.quote
        CROSS JOIN LATERAL (VALUES (last, traded_at, 1), (trim_scale((bid + ask) / 2), quoted_at, 2))
            AS made(price, priced_at, place)
        UNION ALL
        SELECT account_id, symbol, last_price, price_source, price_at, 3 FROM intents.position
    ) prices
    WHERE price IS NOT NULL AND priced_at IS NOT NULL
    ORDER BY account_id, symbol, priced_at DESC, place;
"""
REFERENCE_PRICE_BEFORE = """
CREATE OR REPLACE VIEW intents_api.reference_price AS
    SELECT DISTINCT ON (account_id, symbol) account_id, symbol, price, source, priced_at
    FROM (
        SELECT account_id, symbol, last_price AS price, price_source AS source, price_at AS priced_at
        FROM intents.position
        UNION ALL
        SELECT account_id, symbol, coalesce(last, (bid + ask) / 2), 'quote',
               CASE WHEN last IS NOT NULL THEN traded_at ELSE quoted_at END
        FROM intents.quote
    ) prices
    WHERE price IS NOT NULL AND priced_at IS NOT NULL
    ORDER BY account_id, symbol, priced_at DESC;
"""
PRICE_READERS = ("intents", "intents_web", "controls_web")

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
    op.execute(REFERENCE_PRICE)
    op.execute(publish("intents_api.reference_price", *PRICE_READERS))
    op.execute(other_exposure(SIZES, PRICE_OF_SYMBOL, BY_INDEX))
    op.execute(unpriced_symbols(PRICE_OF_SYMBOL, BY_INDEX))


def downgrade() -> None:
    op.execute(unpriced_symbols(PRICES_BEFORE))
    op.execute(other_exposure(SIZES_BEFORE, PRICES_BEFORE))
    op.execute(REFERENCE_PRICE_BEFORE)
    op.execute(publish("intents_api.reference_price", *PRICE_READERS))
    op.execute("DROP INDEX intents.order_total_open_idx; DROP INDEX intents.position_held_idx")
