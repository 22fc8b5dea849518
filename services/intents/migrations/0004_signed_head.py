"""Signed heads: where each account's chain had come to, signed by a process that cannot write the chain."""

from alembic import op

from chassis import tenancy
from chassis.migrations import role

revision = "0004"
down_revision = "0003"

# One row an account, the newest: it covers everything before it, because each hash covers the one before.
TABLES = """
CREATE TABLE intents.log_signing_key (
    key_id     text CONSTRAINT log_signing_key_pkey PRIMARY KEY,
    public_key bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE intents.signed_head (
    account_id      uuid CONSTRAINT signed_head_pkey PRIMARY KEY,
    organization_id uuid NOT NULL,
    sequence        bigint NOT NULL,
    hash            bytea NOT NULL,
    epoch           uuid NOT NULL,
    signed_at       timestamptz NOT NULL,
    key_id          text NOT NULL CONSTRAINT signed_head_key_id_fkey REFERENCES intents.log_signing_key,
    signature       bytea NOT NULL
);
"""
GRANTS = f"""
REVOKE INSERT, UPDATE, DELETE ON intents.log_signing_key, intents.signed_head FROM {role("intents")};
GRANT SELECT ON intents.log_signing_key, intents.signed_head TO {role("intents_web")};
GRANT USAGE ON SCHEMA intents, intents_api TO {role("intents_signer")};
GRANT SELECT ON intents.account_head TO {role("intents_signer")};
GRANT SELECT (account_id, sequence, previous_hash, hash) ON intents.action TO {role("intents_signer")};
GRANT SELECT, INSERT, UPDATE ON intents.signed_head TO {role("intents_signer")};
GRANT SELECT, INSERT ON intents.log_signing_key TO {role("intents_signer")};
GRANT EXECUTE ON FUNCTION intents_api.current_log_epoch() TO {role("intents_signer")};
"""


def upgrade() -> None:
    op.execute(TABLES)
    op.execute(tenancy.protect("intents.signed_head"))
    op.execute(GRANTS)


def downgrade() -> None:
    op.execute("DROP TABLE intents.signed_head; DROP TABLE intents.log_signing_key")
