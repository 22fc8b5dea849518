"""The health report counts which of the failed rows were driven again."""

from alembic import op

from chassis.migrations import role

revision = "0004"
down_revision = "0003"

COLUMNS = "SELECT (id, redriven_from) ON accounts.outbox"


def upgrade() -> None:
    op.execute(f"GRANT {COLUMNS} TO {role('accounts_web')}")


def downgrade() -> None:
    op.execute(f"REVOKE {COLUMNS} FROM {role('accounts_web')}")
