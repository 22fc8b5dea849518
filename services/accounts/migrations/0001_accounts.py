"""Trading accounts, broker credentials, sealed secrets, the local vault; what others may read."""

from alembic import op

from chassis import feed, tenancy
from chassis.migrations import publish, role
from chassis.outbox import ddl

revision = "0001"
down_revision = None

TABLES = """
CREATE TABLE accounts.account (
    id                uuid CONSTRAINT account_pkey PRIMARY KEY,
    organization_id   uuid NOT NULL,
    name              text NOT NULL,
    broker            text NOT NULL,
    environment       text NOT NULL CONSTRAINT account_environment_check CHECK (environment IN ('paper', 'live')),
    broker_account_id text,
    time_zone         text NOT NULL DEFAULT 'UTC',
    disabled          boolean NOT NULL DEFAULT false,
    disabled_reason   text,
    created_at        timestamptz NOT NULL DEFAULT now(),
    updated_at        timestamptz NOT NULL DEFAULT now(),
    deleted_at        timestamptz,
    version           integer NOT NULL DEFAULT 1
);
CREATE INDEX account_organization_id_created_at_id_idx ON accounts.account (organization_id, created_at, id)
    WHERE deleted_at IS NULL;
CREATE TABLE accounts.credential (
    id                uuid CONSTRAINT credential_pkey PRIMARY KEY,
    account_id        uuid NOT NULL CONSTRAINT credential_account_id_fkey REFERENCES accounts.account,
    organization_id   uuid NOT NULL,
    label             text NOT NULL,
    status            text NOT NULL DEFAULT 'pending'
                      CONSTRAINT credential_status_check CHECK (status IN ('pending', 'active', 'invalid', 'revoked')),
    fingerprint       text NOT NULL,
    created_at        timestamptz NOT NULL DEFAULT now(),
    updated_at        timestamptz NOT NULL DEFAULT now(),
    deleted_at        timestamptz,
    version           integer NOT NULL DEFAULT 1,
    vault_version     integer,
    destroyed_through integer NOT NULL DEFAULT 0
);
CREATE INDEX credential_account_id_created_at_id_idx ON accounts.credential (account_id, created_at, id)
    WHERE deleted_at IS NULL;
CREATE TABLE accounts.sealed_secret (
    credential_id   uuid NOT NULL CONSTRAINT sealed_secret_credential_id_fkey REFERENCES accounts.credential,
    version         integer NOT NULL,
    organization_id uuid NOT NULL,
    key_id          text NOT NULL,
    wrapped_key     bytea NOT NULL,
    ciphertext      bytea NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT sealed_secret_pkey PRIMARY KEY (credential_id, version)
);
CREATE TABLE accounts.vault_object (
    credential_id uuid NOT NULL CONSTRAINT vault_object_credential_id_fkey REFERENCES accounts.credential,
    version       integer NOT NULL,
    key_id        text,
    wrapped_key   bytea,
    ciphertext    bytea,
    created_at    timestamptz NOT NULL DEFAULT now(),
    destroyed_at  timestamptz,
    CONSTRAINT vault_object_pkey PRIMARY KEY (credential_id, version)
);
"""

# The contract with the other services. A deleted account is not an account. `vault_version` is the version of the
# secret that may be used now; key_id, wrapped_key and ciphertext are that object when the vault is the local one.
VIEWS = """
CREATE VIEW accounts_api.account AS
    SELECT id, organization_id, name, broker, environment, broker_account_id, time_zone, disabled, disabled_reason,
           version
    FROM accounts.account WHERE deleted_at IS NULL;
CREATE VIEW accounts_api.credential AS
    SELECT c.id, c.account_id, a.organization_id, a.broker, a.environment, a.broker_account_id, c.label, c.status,
           c.fingerprint, c.created_at, c.version, c.vault_version, o.key_id, o.wrapped_key, o.ciphertext
    FROM accounts.credential c
    JOIN accounts_api.account a ON a.id = c.account_id
    LEFT JOIN accounts.vault_object o ON o.credential_id = c.id AND o.version = c.vault_version
    WHERE c.deleted_at IS NULL;
"""

READERS = ("controls_web", "intents", "intents_web", "stream_gateway")
FEED_READERS = ("controls", "intents")
# Sealed as they are, secrets are shown only to whoever has to log in at a broker.
CREDENTIAL_READERS = ("accounts", "intents")

# The worker moves secrets into the vault and destroys them there.
WORKER = role("accounts")
UNNEEDED = f"""
REVOKE INSERT, UPDATE, DELETE ON accounts.account, accounts.credential FROM {WORKER};
GRANT UPDATE (status, updated_at, vault_version, destroyed_through) ON accounts.credential TO {WORKER};
REVOKE INSERT, UPDATE ON accounts.sealed_secret FROM {WORKER};
REVOKE INSERT ON accounts.outbox_head FROM {WORKER};
REVOKE DELETE ON accounts.vault_object, accounts.outbox_head, accounts.outbox_completed, accounts.feed_position
    FROM {WORKER};
"""

# The web process seals secrets and forgets them, and reads none. Of the outbox it reports the health, without payloads.
WEB = role("accounts_web")
GRANTS = f"""
GRANT USAGE ON SCHEMA accounts TO {WEB};
GRANT SELECT, INSERT, UPDATE ON accounts.account, accounts.credential TO {WEB};
GRANT INSERT, DELETE, SELECT (credential_id, version) ON accounts.sealed_secret TO {WEB};
GRANT SELECT (status, event_type, attempts, created_at, claimed_at, pending_xid) ON accounts.outbox TO {WEB};
CREATE POLICY health ON accounts.outbox FOR SELECT TO {WEB} USING (true);
GRANT SELECT ON accounts.outbox_head, accounts.outbox_completed, accounts.outbox_backlog TO {WEB};
GRANT UPDATE (counted_below) ON accounts.outbox_head TO {WEB};
GRANT INSERT, UPDATE (count), DELETE ON accounts.outbox_backlog TO {WEB};
"""


def upgrade() -> None:
    op.execute(TABLES)
    op.execute(ddl.create_v1("accounts"))
    op.execute(feed.create_v1("accounts"))
    for table in ("account", "credential", "sealed_secret"):
        op.execute(tenancy.protect(f"accounts.{table}"))
    op.execute(tenancy.protect_from_web("accounts.vault_object"))
    op.execute(UNNEEDED)
    op.execute(GRANTS)
    op.execute(ddl.let_append("accounts", WEB))
    op.execute(VIEWS)
    op.execute(publish("accounts_api.account", *READERS))
    op.execute(publish("accounts_api.feed", *FEED_READERS))
    op.execute(publish("accounts_api.credential", *CREDENTIAL_READERS))


def downgrade() -> None:
    op.execute("DROP VIEW accounts_api.credential")
    op.execute("DROP VIEW accounts_api.account")
    op.execute(feed.drop_v1("accounts"))
    op.execute(ddl.drop_v1("accounts"))
    for table in ("vault_object", "sealed_secret", "credential", "account"):
        op.execute(f"DROP TABLE accounts.{table}")
