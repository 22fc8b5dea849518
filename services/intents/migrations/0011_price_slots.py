"""Reads and previews take half of an account's prices at most: the rest is for orders."""

from alembic import op

from chassis import tenancy
from chassis.migrations import publish_function

revision = "0011"
down_revision = "0010"

MOST_SYMBOLS = 1_000  # of one account, before
MOST_SYMBOLS_OF_READS = 500  # the same in `store.quotes`

# Gives the symbols whose price is requested: not those beyond so many. In the order of symbols, in which the reconciler
# saves them too, so that nobody waits for each other.
INSERT = """
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
       OR (SELECT count(*) FROM intents.quote k WHERE k.account_id = of_account) + wanted.added <= {most}
    ORDER BY wanted.symbol
    ON CONFLICT (account_id, symbol) DO UPDATE SET requested_at = excluded.requested_at
    RETURNING q.symbol;
    IF FOUND THEN
        PERFORM intents.request_read(of_organization, of_account, interval '1 second');
    END IF;
END
"""
REQUEST_PRICES = f"""
CREATE FUNCTION intents.request_prices(of_organization uuid, of_account uuid, of_symbols text[], most bigint)
RETURNS SETOF text LANGUAGE plpgsql AS $${INSERT.format(most="most")}$$
"""
REQUEST_PRICES_BEFORE = f"""
CREATE FUNCTION intents.request_prices(of_organization uuid, of_account uuid, of_symbols text[])
RETURNS SETOF text LANGUAGE plpgsql AS $${INSERT.format(most=MOST_SYMBOLS)}$$
"""
FUNCTION = "intents.request_prices(uuid, uuid, text[], bigint)"
FUNCTION_BEFORE = "intents.request_prices(uuid, uuid, text[])"
CALLERS = ("intents", "intents_web")


def for_preview(most: str) -> str:
    """As its owner, because no other service writes the tables of intents: so it checks itself whose account it is."""
    return f"""
CREATE OR REPLACE FUNCTION intents_api.request_prices(of_account uuid, of_symbols text[])
RETURNS SETOF text LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT requested.symbol FROM accounts_api.account a
    CROSS JOIN LATERAL intents.request_prices(a.organization_id, a.id, of_symbols{most}) AS requested(symbol)
    WHERE a.id = of_account AND {tenancy.visible("a.organization_id")}
$$
"""  # noqa: S608 - constants


def upgrade() -> None:
    op.execute(REQUEST_PRICES)
    op.execute(publish_function(FUNCTION, *CALLERS))
    op.execute(for_preview(f", {MOST_SYMBOLS_OF_READS}"))
    op.execute(f"DROP FUNCTION {FUNCTION_BEFORE}")


def downgrade() -> None:
    op.execute(REQUEST_PRICES_BEFORE)
    op.execute(publish_function(FUNCTION_BEFORE, *CALLERS))
    op.execute(for_preview(""))
    op.execute(f"DROP FUNCTION {FUNCTION}")
