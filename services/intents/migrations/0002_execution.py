"""What execution keeps: the orders we asked brokers for, what brokers say an account holds, who watches an account."""

from alembic import op

from chassis import tenancy
from chassis.migrations import role

revision = "0002"
down_revision = "0001"

# A row of broker_order is written before the order is sent: it is the recovery point, and how an update that overtakes
# the answer finds its intent. Without an intent it is an order that was placed elsewhere. `credential` is the one it is
# sent under, and broker_login says which account at the broker that credential opens. MISSING is what may have been
# sent and was not found at the broker; `unwanted_since` marks an open order that its intent no longer asks for.
UP = """
ALTER TABLE intents.intent
    ADD COLUMN accepted_at  timestamptz,
    ADD COLUMN lease_holder integer,
    ADD COLUMN absences     integer NOT NULL DEFAULT 0,
    ADD COLUMN overordered  boolean NOT NULL DEFAULT false;
CREATE INDEX intent_lease_idx ON intents.intent (lease_holder) WHERE lease_until IS NOT NULL;
CREATE INDEX intent_overordered_idx ON intents.intent (account_id, id) WHERE overordered;
CREATE TABLE intents.broker_order (
    account_id        uuid NOT NULL,
    client_order_id   text NOT NULL,
    intent_id         uuid,
    action_sequence   bigint,
    broker_order_id   text,
    status            text NOT NULL,
    executions        text[] NOT NULL DEFAULT '{}',
    filled_quantity   numeric NOT NULL DEFAULT 0
                      CONSTRAINT broker_order_filled_quantity_check
                      CHECK (filled_quantity >= 0 AND filled_quantity <> 'NaN'),
    executed_quantity numeric NOT NULL DEFAULT 0,
    filled_value      numeric NOT NULL DEFAULT 0,
    quantity          numeric,
    credential        text,
    unwanted_since    timestamptz,
    created_at        timestamptz NOT NULL DEFAULT now(),
    updated_at        timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT broker_order_pkey PRIMARY KEY (account_id, client_order_id)
);
CREATE INDEX broker_order_intent_idx ON intents.broker_order (account_id, intent_id);
CREATE INDEX broker_order_unended_idx ON intents.broker_order (account_id)
    WHERE status NOT IN ('FILLED', 'CANCELED', 'EXPIRED', 'REJECTED', 'REPLACED');
CREATE TABLE intents.broker_login (
    account_id     uuid NOT NULL,
    credential     text NOT NULL,
    broker_account text NOT NULL,
    created_at     timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT broker_login_pkey PRIMARY KEY (account_id, credential)
);
CREATE TABLE intents.broker_account (
    account_id         uuid CONSTRAINT broker_account_pkey PRIMARY KEY,
    lease_token        uuid,
    lease_until        timestamptz,
    looked_at          timestamptz,
    refused_credential text,
    epoch              uuid
);
CREATE TABLE intents.balance (
    account_id      uuid CONSTRAINT balance_pkey PRIMARY KEY,
    organization_id uuid NOT NULL,
    currency        text NOT NULL,
    cash            numeric NOT NULL,
    equity          numeric NOT NULL,
    buying_power    numeric NOT NULL,
    updated_at      timestamptz NOT NULL
);
CREATE TRIGGER balance_organization BEFORE INSERT ON intents.balance
    FOR EACH ROW WHEN (NEW.organization_id IS NULL) EXECUTE FUNCTION intents.fill_organization();
ALTER TABLE intents.position
    ADD COLUMN average_entry_price numeric,
    ADD COLUMN market_value        numeric,
    ADD COLUMN unrealized_profit   numeric,
    ADD COLUMN reconciled_at       timestamptz;
CREATE INDEX position_unsaid_idx ON intents.position (account_id)
    WHERE reconciled_at IS NULL OR reconciled_at < updated_at;
"""
DOWN = """
DROP INDEX intents.position_unsaid_idx;
ALTER TABLE intents.position DROP COLUMN average_entry_price, DROP COLUMN market_value, DROP COLUMN unrealized_profit,
    DROP COLUMN reconciled_at;
DROP TABLE intents.balance;
DROP TABLE intents.broker_account;
DROP TABLE intents.broker_login;
DROP TABLE intents.broker_order;
DROP INDEX intents.intent_lease_idx;
ALTER TABLE intents.intent DROP COLUMN accepted_at, DROP COLUMN lease_holder, DROP COLUMN absences,
    DROP COLUMN overordered;
"""


def upgrade() -> None:
    op.execute(UP)
    op.execute(tenancy.protect("intents.balance"))
    op.execute(f"GRANT SELECT ON intents.balance TO {role('intents_web')}")
    op.execute(f"REVOKE DELETE ON intents.balance, intents.broker_account FROM {role('intents')}")
    op.execute(f"REVOKE UPDATE, DELETE ON intents.broker_login FROM {role('intents')}")
    for table in ("broker_order", "broker_login", "broker_account"):
        op.execute(tenancy.protect_from_web(f"intents.{table}"))


def downgrade() -> None:
    op.execute(DOWN)
