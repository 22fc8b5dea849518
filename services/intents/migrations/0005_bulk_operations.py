"""Bulk operations: a request to cancel or close many orders of an account, kept until it is carried out."""

from alembic import op

from chassis import tenancy
from chassis.migrations import publish_function, role

revision = "0005"
down_revision = "0004"

# The id is unique within its account only: of an event about an organization each account has an operation with the
# event's id. What one concerns is what existed at `created_at`, so that is not the beginning of the transaction.
TABLE = """
CREATE TABLE intents.bulk_operation (
    account_id      uuid NOT NULL,
    id              uuid NOT NULL,
    organization_id uuid NOT NULL,
    type            text NOT NULL CONSTRAINT bulk_operation_type_check
                    CHECK (type IN ('CANCEL_ORDERS', 'CLOSE_POSITIONS')),
    symbol          text,
    order_side      text CONSTRAINT bulk_operation_order_side_check CHECK (order_side IN ('BUY', 'SELL')),
    reason          text NOT NULL,
    actor_type      text NOT NULL,
    actor_id        text NOT NULL,
    status          text NOT NULL DEFAULT 'PENDING' CONSTRAINT bulk_operation_status_check
                    CHECK (status IN ('PENDING', 'CANCELING', 'CLOSING', 'COMPLETED')),
    total           integer NOT NULL DEFAULT 0,
    done            integer NOT NULL DEFAULT 0,
    refusals        jsonb NOT NULL DEFAULT '[]',
    closing_since   timestamptz,
    closing_intents uuid[],
    idempotency_key text,
    request_hash    bytea,
    traceparent     text,
    next_attempt_at timestamptz NOT NULL DEFAULT now(),
    lease_token     uuid,
    lease_until     timestamptz,
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    completed_at    timestamptz,
    CONSTRAINT bulk_operation_pkey PRIMARY KEY (account_id, id)
);
CREATE UNIQUE INDEX bulk_operation_idempotency_key_idx ON intents.bulk_operation (account_id, idempotency_key);
CREATE INDEX bulk_operation_unfinished_idx ON intents.bulk_operation (organization_id, next_attempt_at)
    WHERE status <> 'COMPLETED';
CREATE INDEX bulk_operation_completed_at_idx ON intents.bulk_operation (completed_at);
"""

# What keeps accounts from deleting an account: an intent that has not ended, or an order that may be at the broker.
# What was given up may surface during a day.
OPEN_ORDERS = """
CREATE FUNCTION intents_api.open_orders(uuid) RETURNS bigint
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT (SELECT count(*) FROM intents.intent WHERE account_id = $1
            AND status NOT IN ('FILLED', 'CANCELED', 'REJECTED', 'DENIED', 'EXPIRED', 'FAILED'))
         + (SELECT count(*) FROM intents.broker_order WHERE account_id = $1 AND intent_id IS NOT NULL
            AND status NOT IN ('FILLED', 'CANCELED', 'EXPIRED', 'REJECTED', 'REPLACED')
            AND (broker_order_id IS NOT NULL
                 OR (status = 'MISSING' AND updated_at > now() - interval '24 hours')))
$$;
"""

WEB, WORKER = role("intents_web"), role("intents")
GRANTS = f"GRANT SELECT, INSERT ON intents.bulk_operation TO {WEB};"

# The scheduler submits the orders that close positions: it makes intents, and controls may refuse them.
CLOSING = f"""
GRANT INSERT ON intents.intent, intents.intent_tag TO {WORKER};
CREATE TRIGGER refusal_organization BEFORE INSERT ON intents.refusal
    FOR EACH ROW WHEN (NEW.organization_id IS NULL) EXECUTE FUNCTION intents.fill_organization();
"""


def upgrade() -> None:
    op.execute(TABLE)
    op.execute(tenancy.protect("intents.bulk_operation"))
    op.execute(GRANTS)
    op.execute(CLOSING)
    op.execute(OPEN_ORDERS)
    op.execute(publish_function("intents_api.open_orders(uuid)", "accounts", "accounts_web"))


def downgrade() -> None:
    op.execute("DROP TRIGGER refusal_organization ON intents.refusal")
    op.execute(f"REVOKE INSERT ON intents.intent, intents.intent_tag FROM {WORKER}")
    op.execute("DROP FUNCTION intents_api.open_orders(uuid)")
    op.execute("DROP TABLE intents.bulk_operation")
