"""Signing in with the local provider: passwords, one-time codes, second factors, sessions, clients, token families."""

from alembic import op

from chassis import tenancy
from chassis.migrations import role

revision = "0002"
down_revision = "0001"

COLUMNS = "ALTER TABLE identity.organization ADD COLUMN totp_required boolean NOT NULL DEFAULT false"

# Of codes, tokens and cookies only digests; the secret of a second factor is sealed like the signing keys.
TABLES = """
CREATE TABLE identity.password (
    user_id    uuid CONSTRAINT password_pkey PRIMARY KEY
               CONSTRAINT password_user_id_fkey REFERENCES identity.app_user,
    hash       text NOT NULL,
    changed_at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE identity.one_time_code (
    user_id    uuid CONSTRAINT one_time_code_pkey PRIMARY KEY
               CONSTRAINT one_time_code_user_id_fkey REFERENCES identity.app_user,
    digest     bytea NOT NULL,
    tries      integer NOT NULL DEFAULT 0,
    expires_at timestamptz NOT NULL
);
CREATE TABLE identity.totp (
    user_id       uuid CONSTRAINT totp_pkey PRIMARY KEY
                  CONSTRAINT totp_user_id_fkey REFERENCES identity.app_user,
    sealed_secret bytea NOT NULL,
    confirmed     boolean NOT NULL DEFAULT false,
    last_step     bigint NOT NULL DEFAULT 0,
    failures      integer NOT NULL DEFAULT 0
);
CREATE TABLE identity.sign_in_session (
    digest     bytea CONSTRAINT sign_in_session_pkey PRIMARY KEY,
    user_id    uuid NOT NULL CONSTRAINT sign_in_session_user_id_fkey REFERENCES identity.app_user,
    signed_in  boolean NOT NULL,
    totp       boolean NOT NULL,
    tries      integer NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL
);
CREATE INDEX sign_in_session_user_id_idx ON identity.sign_in_session (user_id);
CREATE INDEX sign_in_session_expires_at_idx ON identity.sign_in_session (expires_at);
CREATE TABLE identity.oauth_client (
    client_id     text CONSTRAINT oauth_client_pkey PRIMARY KEY,
    name          text NOT NULL,
    redirect_uris text[] NOT NULL,
    created_at    timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE identity.token_family (
    id              uuid CONSTRAINT token_family_pkey PRIMARY KEY,
    client_id       text NOT NULL,
    user_id         uuid NOT NULL CONSTRAINT token_family_user_id_fkey REFERENCES identity.app_user,
    organization_id uuid NOT NULL CONSTRAINT token_family_organization_id_fkey REFERENCES identity.organization,
    totp            boolean NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT now(),
    expires_at      timestamptz NOT NULL,
    revoked_at      timestamptz
);
CREATE INDEX token_family_user_id_idx ON identity.token_family (user_id);
CREATE INDEX token_family_expires_at_idx ON identity.token_family (expires_at);
CREATE TABLE identity.authorization_code (
    digest         bytea CONSTRAINT authorization_code_pkey PRIMARY KEY,
    family_id      uuid NOT NULL
                   CONSTRAINT authorization_code_family_id_fkey REFERENCES identity.token_family ON DELETE CASCADE,
    redirect_uri   text NOT NULL,
    code_challenge text NOT NULL,
    expires_at     timestamptz NOT NULL,
    spent_at       timestamptz
);
CREATE INDEX authorization_code_family_id_idx ON identity.authorization_code (family_id);
CREATE TABLE identity.device_code (
    digest           bytea CONSTRAINT device_code_pkey PRIMARY KEY,
    user_code_digest bytea NOT NULL CONSTRAINT device_code_user_code_digest_key UNIQUE,
    client_id        text NOT NULL,
    family_id        uuid CONSTRAINT device_code_family_id_fkey REFERENCES identity.token_family ON DELETE CASCADE,
    denied           boolean NOT NULL DEFAULT false,
    interval_s       integer NOT NULL,
    polled_at        timestamptz,
    expires_at       timestamptz NOT NULL,
    spent_at         timestamptz
);
CREATE INDEX device_code_family_id_idx ON identity.device_code (family_id);
CREATE INDEX device_code_expires_at_idx ON identity.device_code (expires_at);
CREATE TABLE identity.refresh_token (
    digest     bytea CONSTRAINT refresh_token_pkey PRIMARY KEY,
    family_id  uuid NOT NULL
               CONSTRAINT refresh_token_family_id_fkey REFERENCES identity.token_family ON DELETE CASCADE,
    created_at timestamptz NOT NULL DEFAULT now(),
    spent_at   timestamptz
);
CREATE INDEX refresh_token_family_id_idx ON identity.refresh_token (family_id);
"""

# They are found by what a browser or client shows, before it is known who that is: like a user they are of no
# organization, and only identity's web process sees them.
OF_USERS = (
    "password",
    "one_time_code",
    "totp",
    "sign_in_session",
    "oauth_client",
    "token_family",
    "authorization_code",
    "device_code",
    "refresh_token",
)
ALL = ", ".join(f"identity.{table}" for table in OF_USERS)

WEB, WORKER = role("identity_web"), role("identity")
GRANTS = f"""
GRANT SELECT, INSERT ON {ALL} TO {WEB};
GRANT UPDATE (totp_required) ON identity.organization TO {WEB};
GRANT UPDATE (hash, changed_at) ON identity.password TO {WEB};
GRANT UPDATE (digest, tries, expires_at), DELETE ON identity.one_time_code TO {WEB};
GRANT UPDATE (sealed_secret, confirmed, last_step, failures), DELETE ON identity.totp TO {WEB};
GRANT UPDATE (tries), DELETE ON identity.sign_in_session TO {WEB};
GRANT UPDATE (name, redirect_uris) ON identity.oauth_client TO {WEB};
GRANT UPDATE (revoked_at) ON identity.token_family TO {WEB};
GRANT UPDATE (spent_at) ON identity.authorization_code TO {WEB};
GRANT UPDATE (family_id, denied, interval_s, polled_at, spent_at) ON identity.device_code TO {WEB};
GRANT UPDATE (spent_at) ON identity.refresh_token TO {WEB};
"""
# The scheduler removes what has run out, and everything of deleted users. It reads no digest and makes nothing.
TASKS = f"""
REVOKE ALL ON {ALL} FROM {WORKER};
GRANT SELECT (user_id), DELETE ON identity.password, identity.totp TO {WORKER};
GRANT SELECT (user_id, expires_at), DELETE ON identity.one_time_code, identity.sign_in_session, identity.token_family
    TO {WORKER};
GRANT SELECT (expires_at), DELETE ON identity.device_code TO {WORKER};
"""


def upgrade() -> None:
    op.execute(COLUMNS)
    op.execute(TABLES)
    op.execute(TASKS)
    op.execute(GRANTS)
    for table in OF_USERS:
        op.execute(tenancy.protect_from_web(f"identity.{table}"))
        op.execute(f"CREATE POLICY users ON identity.{table} TO {WEB} USING (true)")


def downgrade() -> None:
    for table in reversed(OF_USERS):
        op.execute(f"DROP TABLE identity.{table}")
    op.execute("ALTER TABLE identity.organization DROP COLUMN totp_required")
