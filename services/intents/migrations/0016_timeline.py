"""The story of an order: the request of each command, and the calls to the broker that it took."""

from alembic import op

from chassis import tenancy
from chassis.migrations import role

revision = "0016"
down_revision = "0015"

# Calls that are repeated and come out alike share a row: an outage of hours costs no more than one of seconds.
UPGRADE = f"""
ALTER TABLE intents.action ADD request_id text;
CREATE TABLE intents.broker_call (
    account_id      uuid NOT NULL,
    organization_id uuid NOT NULL,
    intent_id       uuid NOT NULL,
    key             text NOT NULL,
    action_id       uuid NOT NULL,
    verb            text NOT NULL,
    started_at      timestamptz NOT NULL,
    last_started_at timestamptz NOT NULL,
    milliseconds    double precision NOT NULL,
    times           integer NOT NULL,
    result          text NOT NULL,
    reason          text,
    CONSTRAINT broker_call_pkey PRIMARY KEY (account_id, intent_id, key),
    CONSTRAINT broker_call_verb_check CHECK (verb IN ('create', 'replace', 'cancel', 'find', 'read'))
);
GRANT SELECT ON intents.broker_call TO {role("intents_web")};
REVOKE DELETE ON intents.broker_call FROM {role("intents")};
"""  # noqa: S608 - only our own words


def upgrade() -> None:
    op.execute(UPGRADE)
    op.execute(tenancy.protect("intents.broker_call"))


def downgrade() -> None:
    op.execute("DROP TABLE intents.broker_call")
    op.execute("ALTER TABLE intents.action DROP request_id")
