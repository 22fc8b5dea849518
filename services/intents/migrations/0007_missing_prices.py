"""Which prices a decision lacks, and requests for them, also by a preview, which belongs to controls."""

from alembic import op

from chassis import tenancy
from chassis.migrations import publish, publish_function, role

revision = "0007"
down_revision = "0006"

MOST_SYMBOLS = 1_000  # of one account; the same in `store.quotes`

QUOTE_READ = "CREATE VIEW intents_api.quote_read AS SELECT account_id, symbol, read_at FROM intents.quote"

# Of these symbols, and with exposure of all that are held or open, those without a usable price that were not read
# lately either: what the broker was just queried for has no better price.
UNPRICED_SYMBOLS = """
CREATE FUNCTION intents_api.unpriced_symbols(of_account uuid, of_symbols text[], with_exposure boolean,
                                             price_max_age interval, read_age interval)
RETURNS SETOF text LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY
    SELECT wanted.symbol FROM (
        SELECT unnest(of_symbols) AS symbol
        UNION
        SELECT p.symbol FROM intents_api.position p
        WHERE with_exposure AND p.account_id = of_account AND p.quantity <> 0
        UNION
        SELECT t.symbol FROM intents_api.order_total t
        WHERE with_exposure AND t.account_id = of_account AND t.symbol <> ''
          AND t.open_buy_quantity + t.open_sell_quantity > 0
    ) wanted
    WHERE NOT EXISTS (SELECT FROM intents_api.quote_read r
                      WHERE r.account_id = of_account AND r.symbol = wanted.symbol AND r.read_at >= now() - read_age)
      AND NOT EXISTS (SELECT FROM intents_api.reference_price p
                      WHERE p.account_id = of_account AND p.symbol = wanted.symbol
                        AND p.priced_at >= now() - price_max_age)
    ORDER BY wanted.symbol;
END
$$
"""

REQUEST_READ = """
CREATE FUNCTION intents.request_read(of_organization uuid, of_account uuid, shortest interval)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO intents.broker_account AS k (account_id, organization_id, next_read_at)
    VALUES (of_account, of_organization, now())
    ON CONFLICT (account_id) DO UPDATE SET next_read_at = least(k.next_read_at,
        greatest(now(), coalesce(k.attempted_at, now()) + shortest));
    PERFORM pg_notify('tip_reads_intents', '');
END
$$
"""
# Gives the symbols whose price is requested: not those beyond what an account may have. In the order of symbols, in
# which the reconciler saves them too, so that nobody waits for each other.
REQUEST_PRICES = f"""
CREATE FUNCTION intents.request_prices(of_organization uuid, of_account uuid, of_symbols text[])
RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY
    INSERT INTO intents.quote AS q (account_id, organization_id, symbol, requested_at)
    SELECT of_account, of_organization, wanted.symbol, now()
    FROM (
        SELECT given.symbol, given.is_known,
               count(*) FILTER (WHERE NOT given.is_known) OVER (ORDER BY given.symbol) AS added
        FROM (
            SELECT DISTINCT named.symbol, EXISTS (SELECT FROM intents.quote k WHERE k.account_id = of_account
                                                  AND k.symbol = named.symbol) AS is_known
            FROM unnest(of_symbols) AS named(symbol)
        ) given
    ) wanted
    WHERE wanted.is_known
       OR (SELECT count(*) FROM intents.quote k WHERE k.account_id = of_account) + wanted.added <= {MOST_SYMBOLS}
    ORDER BY wanted.symbol
    ON CONFLICT (account_id, symbol) DO UPDATE SET requested_at = excluded.requested_at
    RETURNING q.symbol;
    IF FOUND THEN
        PERFORM intents.request_read(of_organization, of_account, interval '1 second');
    END IF;
END
$$
"""  # noqa: S608 - a constant
# As its owner, because no other service writes the tables of intents: so it checks itself whose account it is.
REQUEST_PRICES_FOR_PREVIEW = f"""
CREATE FUNCTION intents_api.request_prices(of_account uuid, of_symbols text[])
RETURNS SETOF text LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT requested.symbol FROM accounts_api.account a
    CROSS JOIN LATERAL intents.request_prices(a.organization_id, a.id, of_symbols) AS requested(symbol)
    WHERE a.id = of_account AND {tenancy.visible("a.organization_id")}
$$
"""  # noqa: S608 - a constant

DECIDERS = ("intents", "intents_web", "controls_web")
FUNCTIONS = {
    "intents_api.unpriced_symbols(uuid, text[], boolean, interval, interval)": DECIDERS,
    "intents.request_read(uuid, uuid, interval)": ("intents", "intents_web"),
    "intents.request_prices(uuid, uuid, text[])": ("intents", "intents_web"),
    "intents_api.request_prices(uuid, text[])": ("controls_web",),
}


def upgrade() -> None:
    op.execute(QUOTE_READ)
    op.execute(publish("intents_api.quote_read", *DECIDERS))
    for function in (UNPRICED_SYMBOLS, REQUEST_READ, REQUEST_PRICES, REQUEST_PRICES_FOR_PREVIEW):
        op.execute(function)
    for name, callers in FUNCTIONS.items():
        op.execute(publish_function(name, *callers))


def downgrade() -> None:
    for name in reversed(FUNCTIONS):
        op.execute(f"DROP FUNCTION {name}")
    op.execute("DROP VIEW intents_api.quote_read")
    op.execute(f"REVOKE SELECT (read_at) ON intents.quote FROM {role('controls_web')}")  # noqa: S608 - a constant
