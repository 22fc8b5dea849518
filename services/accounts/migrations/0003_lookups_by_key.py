"""An account is looked up by its key whatever the planner knows: the index of lists serves lists only."""

from alembic import op

revision = "0003"
down_revision = "0002"

INDEX = "CREATE INDEX account_organization_id_created_at_id_idx ON accounts.account (organization_id, created_at, id)"
DROP = "DROP INDEX accounts.account_organization_id_created_at_id_idx"


def upgrade() -> None:
    op.execute(f"{DROP}; {INDEX} WHERE deleted_at IS NULL AND organization_id IS NOT NULL")


def downgrade() -> None:
    op.execute(f"{DROP}; {INDEX} WHERE deleted_at IS NULL")
