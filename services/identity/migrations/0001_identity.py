"""Organizations, users, memberships, API keys, service accounts, entitlements, signing keys; what others may read."""

from alembic import op

from chassis import tenancy
from chassis.migrations import publish, publish_function, role, web_names
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
CREATE VIEW identity_api.usable_api_key AS
    SELECT k.id, k.prefix, k.key_digest, k.organization_id, k.environment, k.permissions, o.entitlements
    FROM identity.api_key k JOIN identity_api.organization o ON o.id = k.organization_id
    WHERE NOT k.disabled AND NOT o.disabled AND (k.expires_at IS NULL OR k.expires_at > now());
CREATE VIEW identity_api.app_user AS
    SELECT id, provider, subject, deleted_at IS NOT NULL AS deleted FROM identity.app_user;
CREATE VIEW identity_api.membership AS
    SELECT organization_id, user_id, CASE WHEN removed_at IS NULL THEN role END AS role FROM identity.membership;
CREATE VIEW identity_api.service_account AS
    SELECT client_id, scopes, disabled FROM identity.service_account;
CREATE VIEW identity_api.signing_key AS
    SELECT kid, algorithm, public_jwk FROM identity.signing_key WHERE retired_at IS NULL;
"""

# Who calls is found out before anybody is served: these see every organization, and answer only whoever can already
# show the key, or the name that a checked token states. In PL/pgSQL, because its plans are kept by the connection.
IDENTIFYING = {
    "organizations_of_keys(bytea[])": """
CREATE FUNCTION identity_api.organizations_of_keys(digests bytea[]) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (SELECT coalesce(array_agg(DISTINCT k.organization_id), '{}')::text
            FROM identity.api_key k WHERE k.key_digest = ANY (digests));
END $$
""",
    "usable_key(bytea)": """
CREATE FUNCTION identity_api.usable_key(of_digest bytea)
RETURNS TABLE (id uuid, key_digest bytea, organization_id uuid, environment text, permissions text[],
               entitlements text[])
LANGUAGE plpgsql STABLE SECURITY DEFINER ROWS 1 SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY SELECT k.id, k.key_digest, k.organization_id, k.environment, k.permissions, k.entitlements
    FROM identity_api.usable_api_key k WHERE k.key_digest = of_digest;
END $$
""",
    "identified_user(text, text, text)": """
CREATE FUNCTION identity_api.identified_user(of_provider text, of_subject text, of_external_id text)
RETURNS TABLE (user_id uuid, deleted boolean, organization_id uuid, decided boolean, role text, entitlements text[])
LANGUAGE plpgsql STABLE SECURITY DEFINER ROWS 1 SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY SELECT u.id, u.deleted, o.id, m.user_id IS NOT NULL, m.role, coalesce(o.entitlements, '{}')
    FROM (SELECT) one
    LEFT JOIN identity_api.app_user u ON u.provider = of_provider AND u.subject = of_subject
    LEFT JOIN identity_api.organization o
           ON o.provider = of_provider AND o.external_id = of_external_id AND NOT o.disabled
    LEFT JOIN identity_api.membership m ON m.user_id = u.id AND m.organization_id = o.id;
END $$
""",
    "identified_service_account(text, uuid)": """
CREATE FUNCTION identity_api.identified_service_account(of_client_id text, of_organization uuid)
RETURNS TABLE (scopes text[], organization_id uuid, entitlements text[])
LANGUAGE plpgsql STABLE SECURITY DEFINER ROWS 1 SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY SELECT a.scopes, o.id, coalesce(o.entitlements, '{}')
    FROM identity_api.service_account a
    LEFT JOIN identity_api.organization o ON o.id = of_organization AND NOT o.disabled
    WHERE a.client_id = of_client_id AND NOT a.disabled;
END $$
""",
}

# The workers deliver the outbox, finish deletions, note when a key was used and retire signing keys. They make
# nothing, no credential above all.
WORKER = role("identity")
UNNEEDED = f"""
REVOKE ALL ON identity.organization, identity.app_user, identity.membership, identity.entitlement, identity.api_key,
    identity.service_account, identity.signing_key FROM {WORKER};
REVOKE INSERT ON identity.outbox_head FROM {WORKER};
REVOKE DELETE ON identity.outbox_head, identity.outbox_completed FROM {WORKER};
"""
TASKS = f"""
GRANT SELECT, UPDATE (deletion_begun_at, deleted_at) ON identity.app_user TO {WORKER};
GRANT SELECT (user_id, removed_at), UPDATE (removed_at) ON identity.membership TO {WORKER};
GRANT SELECT (id, last_used_at), UPDATE (last_used_at) ON identity.api_key TO {WORKER};
GRANT SELECT, UPDATE (retired_at) ON identity.signing_key TO {WORKER};
"""
# The web process: operators (service accounts) run all organizations through it, and a user who is deleted leaves all.
# A user is of no organization; who may see one is decided by memberships.
WEB = role("identity_web")
OF_ORGANIZATIONS = ("organization", "membership", "entitlement", "api_key")
GRANTS = f"""
GRANT USAGE ON SCHEMA identity TO {WEB};
GRANT SELECT, INSERT ON identity.organization, identity.app_user, identity.membership, identity.entitlement,
    identity.api_key, identity.service_account, identity.signing_key TO {WEB};
GRANT UPDATE (name, disabled) ON identity.organization TO {WEB};
GRANT UPDATE (deletion_begun_at, deleted_at) ON identity.app_user TO {WEB};
GRANT UPDATE (role, removed_at) ON identity.membership TO {WEB};
GRANT UPDATE (expires_at), DELETE ON identity.entitlement TO {WEB};
GRANT UPDATE (name, permissions, disabled, expires_at), DELETE ON identity.api_key TO {WEB};
GRANT UPDATE (name, scopes, disabled, secret_digest), DELETE ON identity.service_account TO {WEB};
GRANT UPDATE (needed_until) ON identity.signing_key TO {WEB};
CREATE POLICY users ON identity.app_user TO {WEB} USING (true);
"""

# The stream gateway reads the callers of all its streams at once, a submit the key and all else in one query.
PUBLISHED = {
    "organization": ("stream_gateway",),
    "usable_api_key": ("stream_gateway", "intents", "intents_web"),
    "app_user": ("stream_gateway",),
    "membership": ("stream_gateway",),
    "service_account": ("stream_gateway",),
    "signing_key": ("stream_gateway", *web_names()),
    "feed": ("identity",),
}
# Whoever identifies a caller. The organizations of presented keys are read by a submit, and by identity to validate a
# key.
CALLERS = dict.fromkeys(IDENTIFYING, ("stream_gateway", *web_names())) | {
    "organizations_of_keys(bytea[])": ("identity_web", "intents_web")
}


def upgrade() -> None:
    op.execute(TABLES)
    op.execute(ddl.create_v1("identity"))
    op.execute(UNNEEDED)
    op.execute(TASKS)
    op.execute(tenancy.protect("identity.organization", "id"))
    for table in ("membership", "entitlement", "api_key"):
        op.execute(tenancy.protect(f"identity.{table}"))
    op.execute(tenancy.protect_from_web("identity.app_user"))
    op.execute(GRANTS)
    op.execute(ddl.let_append("identity", WEB))
    for table in (*OF_ORGANIZATIONS, "outbox"):
        op.execute(tenancy.admit_operators(f"identity.{table}", WEB))
    op.execute(VIEWS)
    for view, readers in PUBLISHED.items():
        op.execute(publish(f"identity_api.{view}", *readers))
    for function, definition in IDENTIFYING.items():
        op.execute(definition)
        op.execute(publish_function(f"identity_api.{function}", *CALLERS[function]))


def downgrade() -> None:
    for function in IDENTIFYING:
        op.execute(f"DROP FUNCTION identity_api.{function}")
    for view in ("signing_key", "service_account", "membership", "app_user", "usable_api_key", "organization"):
        op.execute(f"DROP VIEW identity_api.{view}")
    op.execute(ddl.drop_v1("identity"))
    for table in ("signing_key", "service_account", "api_key", "entitlement", "membership", "app_user", "organization"):
        op.execute(f"DROP TABLE identity.{table}")
