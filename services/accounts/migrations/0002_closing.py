"""Accounts that are being deleted: closed to new intents first, and gone once the broker has no order of theirs."""

from alembic import op

from chassis.migrations import publish, role

revision = "0002"
down_revision = "0001"

READERS = ("controls_web", "intents", "intents_web", "stream_gateway")
WORKER = role("accounts")

COLUMNS = """
ALTER TABLE accounts.account ADD COLUMN closing_at timestamptz, ADD COLUMN closing_operation_id uuid;
CREATE INDEX account_closing_at_idx ON accounts.account (closing_at)
    WHERE closing_at IS NOT NULL AND deleted_at IS NULL;
"""

# To everybody else an account that is being deleted is a disabled one.
VIEW = """
CREATE OR REPLACE VIEW accounts_api.account AS
    SELECT id, organization_id, name, broker, environment, broker_account_id, time_zone,
           disabled OR closing_at IS NOT NULL AS disabled,
           CASE WHEN closing_at IS NULL THEN disabled_reason ELSE 'It is being deleted.' END AS disabled_reason,
           version
    FROM accounts.account WHERE deleted_at IS NULL;
"""
VIEW_BEFORE = """
CREATE OR REPLACE VIEW accounts_api.account AS
    SELECT id, organization_id, name, broker, environment, broker_account_id, time_zone, disabled, disabled_reason,
           version
    FROM accounts.account WHERE deleted_at IS NULL;
"""

# The worker finishes deletions.
GRANTS = f"""
GRANT UPDATE (deleted_at, closing_at, closing_operation_id, updated_at, version) ON accounts.account TO {WORKER};
GRANT UPDATE (deleted_at) ON accounts.credential TO {WORKER};
"""


def upgrade() -> None:
    op.execute(COLUMNS)
    op.execute(VIEW)
    op.execute(publish("accounts_api.account", *READERS))
    op.execute(GRANTS)


def downgrade() -> None:
    op.execute(VIEW_BEFORE)
    op.execute(publish("accounts_api.account", *READERS))
    op.execute(f"REVOKE UPDATE ON accounts.account FROM {WORKER}")
    op.execute(f"REVOKE UPDATE (deleted_at) ON accounts.credential FROM {WORKER}")
    op.execute("ALTER TABLE accounts.account DROP COLUMN closing_at, DROP COLUMN closing_operation_id")
