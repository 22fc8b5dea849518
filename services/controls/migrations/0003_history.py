"""What changed about each control, by whom and when."""

from alembic import op

from chassis import tenancy
from chassis.migrations import role

revision = "0003"
down_revision = "0002"

WEB, WORKER = role("controls_web"), role("controls")

# The second wall is the trigger; the first is that no role has the right to try.
HISTORY = f"""
CREATE TABLE controls.control_change (
    id              bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT control_change_pkey PRIMARY KEY,
    organization_id uuid NOT NULL,
    account_id      uuid,
    symbol          text COLLATE "C",
    control         text NOT NULL,
    version         bigint NOT NULL,
    value_before    json,
    value_after     json,
    actor_type      text NOT NULL,
    actor_id        text NOT NULL,
    request_id      text,
    created_at      timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX control_change_account_idx ON controls.control_change (account_id, id);
CREATE INDEX control_change_symbol_idx ON controls.control_change (account_id, symbol, id);
CREATE INDEX control_change_organization_idx ON controls.control_change (organization_id, id) WHERE account_id IS NULL;
{tenancy.protect("controls.control_change")}
REVOKE UPDATE, DELETE ON controls.control_change FROM {WORKER};
GRANT SELECT, INSERT ON controls.control_change TO {WEB};
CREATE FUNCTION controls.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'insufficient_privilege';
END $$;
REVOKE ALL ON FUNCTION controls.refuse_change() FROM PUBLIC;
CREATE TRIGGER control_change_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON controls.control_change
    FOR EACH STATEMENT EXECUTE FUNCTION controls.refuse_change();
"""


def upgrade() -> None:
    op.execute(HISTORY)


def downgrade() -> None:
    op.execute("DROP TABLE controls.control_change; DROP FUNCTION controls.refuse_change()")
