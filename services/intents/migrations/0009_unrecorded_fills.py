"""A position knows which fills the broker's report of it contains that are not recorded yet."""

from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.execute("ALTER TABLE intents.position ADD COLUMN unrecorded_fills jsonb NOT NULL DEFAULT '{}'")


def downgrade() -> None:
    op.execute("ALTER TABLE intents.position DROP COLUMN unrecorded_fills")
