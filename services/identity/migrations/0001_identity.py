"""Organizations, users, memberships, API keys, service accounts, entitlements, signing keys; what others may read."""

from alembic import op

from chassis.migrations import publish
from chassis.outbox import ddl

revision = "0001"
down_revision = None

TABLES = """
CREATE TABLE identity.organization (
    id          uuid CONSTRAINT organization_pkey PRIMARY KEY,
    provider    text NOT NULL,
    external_id text NOT NULL,
    name        text NOT NULL,
    disabled    boolean NOT NULL DEFAULT false,
    created_at  timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT organization_provider_external_id_key UNIQUE (provider, external_id)
);
CREATE INDEX organization_created_at_id_idx ON identity.organization (created_at, id);
CREATE TABLE identity.app_user (
    id           uuid CONSTRAINT app_user_pkey PRIMARY KEY,
    provider     text NOT NULL,
    subject      text NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    deletion_begun_at timestamptz,
    deleted_at   timestamptz,
    CONSTRAINT app_user_provider_subject_key UNIQUE (provider, subject)
);
CREATE INDEX app_user_unfinished_idx ON identity.app_user (deletion_begun_at)
    WHERE deletion_begun_at IS NOT NULL AND deleted_at IS NULL;
CREATE TABLE identity.membership (
    organization_id uuid NOT NULL CONSTRAINT membership_organization_id_fkey REFERENCES identity.organization,
    user_id         uuid NOT NULL CONSTRAINT membership_user_id_fkey REFERENCES identity.app_user,
    role            text NOT NULL CONSTRAINT membership_role_check CHECK (role IN ('admin', 'member', 'read_only')),
    created_at      timestamptz NOT NULL DEFAULT now(),
    removed_at      timestamptz,
    CONSTRAINT membership_pkey PRIMARY KEY (organization_id, user_id)
);
CREATE INDEX membership_user_id_idx ON identity.membership (user_id);
CREATE TABLE identity.entitlement (
    organization_id uuid NOT NULL CONSTRAINT entitlement_organization_id_fkey REFERENCES identity.organization,
    name            text NOT NULL
                    CONSTRAINT entitlement_name_check CHECK (name IN ('controls_premium', 'trading_live')),
    expires_at      timestamptz,
    created_at      timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT entitlement_pkey PRIMARY KEY (organization_id, name)
);
CREATE TABLE identity.api_key (
    id              uuid CONSTRAINT api_key_pkey PRIMARY KEY,
    organization_id uuid NOT NULL CONSTRAINT api_key_organization_id_fkey REFERENCES identity.organization,
    name            text NOT NULL,
    environment     text NOT NULL CONSTRAINT api_key_environment_check CHECK (environment IN ('paper', 'live')),
    permissions     text[] NOT NULL,
    prefix          text NOT NULL,
    key_digest      bytea NOT NULL CONSTRAINT api_key_key_digest_key UNIQUE,
    disabled        boolean NOT NULL DEFAULT false,
    expires_at      timestamptz,
    last_used_at    timestamptz,
    created_at      timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX api_key_prefix_idx ON identity.api_key (prefix);
CREATE INDEX api_key_organization_id_created_at_id_idx ON identity.api_key (organization_id, created_at, id);
CREATE TABLE identity.service_account (
    client_id     text CONSTRAINT service_account_pkey PRIMARY KEY,
    name          text NOT NULL,
    secret_digest bytea NOT NULL,
    scopes        text[] NOT NULL,
    disabled      boolean NOT NULL DEFAULT false,
    created_at    timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE identity.signing_key (
    kid         text CONSTRAINT signing_key_pkey PRIMARY KEY,
    algorithm   text NOT NULL,
    public_jwk  jsonb NOT NULL,
    sealed_key  bytea NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT now(),
    needed_until timestamptz,
    retired_at  timestamptz
);
"""

# The contract with the other services. Expired entitlements are not entitlements. A deleted user stays known, so that
# a provider's token cannot bring one back; so does a membership taken away, without its role.
VIEWS = """
CREATE VIEW identity_api.organization AS
    SELECT o.id, o.provider, o.external_id, o.name, o.disabled,
           ARRAY(SELECT e.name FROM identity.entitlement e
                 WHERE e.organization_id = o.id AND (e.expires_at IS NULL OR e.expires_at > now())) AS entitlements
    FROM identity.organization o;
CREATE VIEW identity_api.api_key AS
    SELECT k.id, k.prefix, k.key_digest, k.organization_id, k.environment, k.permissions, k.disabled, k.expires_at,
           o.disabled AS organization_disabled, o.entitlements
    FROM identity.api_key k JOIN identity_api.organization o ON o.id = k.organization_id;
CREATE VIEW identity_api.app_user AS
    SELECT id, provider, subject, deleted_at IS NOT NULL AS deleted FROM identity.app_user;
CREATE VIEW identity_api.membership AS
    SELECT organization_id, user_id, CASE WHEN removed_at IS NULL THEN role END AS role FROM identity.membership;
CREATE VIEW identity_api.service_account AS
    SELECT client_id, scopes, disabled FROM identity.service_account;
CREATE VIEW identity_api.signing_key AS
    SELECT kid, algorithm, public_jwk FROM identity.signing_key WHERE retired_at IS NULL;
"""

READERS = ("identity", "accounts", "controls", "intents", "stream_gateway")
PUBLISHED = ("organization", "api_key", "app_user", "membership", "service_account", "signing_key", "feed")


def upgrade() -> None:
    op.execute(TABLES)
    op.execute(ddl.create_v1("identity"))
    op.execute(VIEWS)
    for view in PUBLISHED:
        op.execute(publish(f"identity_api.{view}", *READERS))


def downgrade() -> None:
    for view in ("signing_key", "service_account", "membership", "app_user", "api_key", "organization"):
        op.execute(f"DROP VIEW identity_api.{view}")
    op.execute(ddl.drop_v1("identity"))
    for table in ("signing_key", "service_account", "api_key", "entitlement", "membership", "app_user", "organization"):
        op.execute(f"DROP TABLE identity.{table}")
