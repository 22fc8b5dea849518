"""Invitations: who may become a member of an organization, by a code of which only a digest is stored."""

from alembic import op

from chassis import tenancy
from chassis.migrations import role

revision = "0004"
down_revision = "0003"

WEB, WORKER = role("identity_web"), role("identity")

INVITATIONS = f"""
CREATE TABLE identity.invitation (
    id              uuid CONSTRAINT invitation_pkey PRIMARY KEY,
    organization_id uuid NOT NULL CONSTRAINT invitation_organization_id_fkey REFERENCES identity.organization,
    subject         text NOT NULL,
    role            text NOT NULL CONSTRAINT invitation_role_check CHECK (role IN ('admin', 'member', 'read_only')),
    invited_by      text NOT NULL,
    code_digest     bytea NOT NULL CONSTRAINT invitation_code_digest_key UNIQUE,
    created_at      timestamptz NOT NULL DEFAULT now(),
    expires_at      timestamptz NOT NULL,
    CONSTRAINT invitation_organization_id_subject_key UNIQUE (organization_id, subject)
);
{tenancy.protect("identity.invitation")}
{tenancy.admit_operators("identity.invitation", WEB)}
REVOKE ALL ON identity.invitation FROM {WORKER};
"""
GRANTS = f"GRANT SELECT, INSERT, DELETE ON identity.invitation TO {WEB}"


def upgrade() -> None:
    op.execute(INVITATIONS)
    op.execute(GRANTS)


def downgrade() -> None:
    op.execute("DROP TABLE identity.invitation")
