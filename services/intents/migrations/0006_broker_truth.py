"""When each account is read at its broker, how fast that may go at each broker, prices, and the age of positions."""

from alembic import op

from chassis import tenancy
from chassis.migrations import publish, role

revision = "0006"
down_revision = "0005"

WORKER, WEB = role("intents"), role("intents_web")

# `next_read_at` is null for an account that is not to be read; whoever wants it read at once puts it to now. A web
# process may do that for its own organization, and nothing else here.
SCHEDULE = f"""
ALTER TABLE intents.broker_account
    ADD COLUMN organization_id uuid,
    ADD COLUMN next_read_at timestamptz,
    ADD COLUMN attempted_at timestamptz,
    ADD COLUMN read_failures integer NOT NULL DEFAULT 0;
UPDATE intents.broker_account k SET organization_id = a.organization_id
    FROM accounts_api.account a WHERE a.id = k.account_id;
CREATE TRIGGER broker_account_organization BEFORE INSERT ON intents.broker_account
    FOR EACH ROW WHEN (NEW.organization_id IS NULL) EXECUTE FUNCTION intents.fill_organization();
CREATE INDEX broker_account_next_read_idx ON intents.broker_account (next_read_at) WHERE next_read_at IS NOT NULL;
CREATE POLICY tenant ON intents.broker_account TO {tenancy.WEB} USING ({tenancy.visible("organization_id")});
GRANT SELECT (account_id, organization_id, next_read_at, attempted_at),
    INSERT (account_id, organization_id, next_read_at), UPDATE (next_read_at) ON intents.broker_account TO {WEB};
"""  # noqa: S608 - a constant

# How far the reads of one broker are paid for: so that all reconcilers together keep to one rate.
PACE = f"""
CREATE TABLE intents.broker_pace (
    broker     text CONSTRAINT broker_pace_pkey PRIMARY KEY,
    paid_until timestamptz NOT NULL
);
REVOKE DELETE ON intents.broker_pace FROM {WORKER};
"""

# A price is requested by a web process and read by a reconciler.
QUOTE = f"""
CREATE TABLE intents.quote (
    account_id      uuid NOT NULL,
    organization_id uuid NOT NULL,
    symbol          text NOT NULL,
    bid             numeric,
    ask             numeric,
    last            numeric,
    source          text,
    quoted_at       timestamptz,
    traded_at       timestamptz,
    read_at         timestamptz,
    requested_at    timestamptz,
    CONSTRAINT quote_pkey PRIMARY KEY (account_id, symbol)
);
CREATE TRIGGER quote_organization BEFORE INSERT ON intents.quote
    FOR EACH ROW WHEN (NEW.organization_id IS NULL) EXECUTE FUNCTION intents.fill_organization();
GRANT SELECT, INSERT (account_id, organization_id, symbol, requested_at), UPDATE (requested_at)
    ON intents.quote TO {WEB};
"""

POSITION = """
ALTER TABLE intents.position ADD COLUMN price_at timestamptz, ADD COLUMN price_source text
    CONSTRAINT position_price_source_check CHECK (price_source IN ('fill', 'broker'));
"""

# The newest of what the broker quotes, what it reports with the position, and what the account traded at.
REFERENCE_PRICE = """
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
REFERENCE_PRICE_BEFORE = """
CREATE OR REPLACE VIEW intents_api.reference_price AS
    SELECT account_id, symbol, last_price AS price,
           CASE WHEN quantity <> 0 AND reconciled_at > updated_at THEN 'position' ELSE 'fill' END AS source,
           CASE WHEN quantity <> 0 THEN greatest(updated_at, reconciled_at) ELSE updated_at END AS priced_at
    FROM intents.position WHERE last_price IS NOT NULL;
"""
PRICE_READERS = ("intents", "intents_web", "controls_web")


def upgrade() -> None:
    op.execute(SCHEDULE)
    op.execute(PACE)
    op.execute(tenancy.protect_from_web("intents.broker_pace"))
    op.execute(QUOTE)
    op.execute(tenancy.protect("intents.quote"))
    op.execute(POSITION)
    op.execute(REFERENCE_PRICE)
    op.execute(publish("intents_api.reference_price", *PRICE_READERS))


def downgrade() -> None:
    op.execute(REFERENCE_PRICE_BEFORE)
    op.execute(publish("intents_api.reference_price", *PRICE_READERS))
    op.execute("ALTER TABLE intents.position DROP COLUMN price_at, DROP COLUMN price_source")
    op.execute("DROP TABLE intents.quote; DROP TABLE intents.broker_pace")
    op.execute(
        "DROP POLICY tenant ON intents.broker_account; DROP TRIGGER broker_account_organization "
        "ON intents.broker_account"
    )
    op.execute(f"REVOKE ALL ON intents.broker_account FROM {WEB}")
    op.execute(
        "ALTER TABLE intents.broker_account DROP COLUMN organization_id, DROP COLUMN next_read_at, "
        "DROP COLUMN attempted_at, DROP COLUMN read_failures"
    )
