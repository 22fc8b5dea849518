"""The audit log: every change of an organization, its people, keys and entitlements, and who made it."""

from alembic import op

from chassis import tenancy
from chassis.migrations import role

revision = "0003"
down_revision = "0002"

WEB, WORKER = role("identity_web"), role("identity")

# No foreign key: it would wait for the organization's row, which others have who wait for their turn here.
# The second wall is the trigger; the first is that no role has the right to try. The scheduler writes here, too: it
# finishes deletions of users.
AUDIT_LOG = f"""
CREATE TABLE identity.audit_entry (
    organization_id uuid NOT NULL,
    sequence        bigint NOT NULL,
    type            text NOT NULL,
    target          text NOT NULL,
    value_before    json,
    value_after     json,
    actor_type      text NOT NULL,
    actor_id        text NOT NULL,
    request_id      text,
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT audit_entry_pkey PRIMARY KEY (organization_id, sequence)
);
CREATE INDEX audit_entry_type_idx ON identity.audit_entry (organization_id, type, sequence);
CREATE INDEX audit_entry_target_idx ON identity.audit_entry (organization_id, target, sequence);
CREATE INDEX audit_entry_actor_idx ON identity.audit_entry (organization_id, actor_id, sequence);
{tenancy.protect("identity.audit_entry")}
{tenancy.admit_operators("identity.audit_entry", WEB)}
REVOKE ALL ON identity.audit_entry FROM {WORKER};
CREATE FUNCTION identity.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'insufficient_privilege';
END $$;
REVOKE ALL ON FUNCTION identity.refuse_change() FROM PUBLIC;
CREATE TRIGGER audit_entry_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON identity.audit_entry
    FOR EACH STATEMENT EXECUTE FUNCTION identity.refuse_change();
"""
GRANTS = f"""
GRANT INSERT, SELECT ON identity.audit_entry TO {WEB};
GRANT INSERT, SELECT (organization_id, sequence) ON identity.audit_entry TO {WORKER};
GRANT SELECT (organization_id, role) ON identity.membership TO {WORKER};
"""


def upgrade() -> None:
    op.execute(AUDIT_LOG)
    op.execute(GRANTS)


def downgrade() -> None:
    op.execute(f"REVOKE ALL (organization_id, role) ON identity.membership FROM {WORKER}")
    op.execute("DROP TABLE identity.audit_entry; DROP FUNCTION identity.refuse_change()")
