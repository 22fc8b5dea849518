"""Whether an order may trade outside the regular hours: what its CREATE said, kept for its replacements."""

from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    op.execute("ALTER TABLE intents.intent ADD extended_hours boolean NOT NULL DEFAULT false")


def downgrade() -> None:
    op.execute("ALTER TABLE intents.intent DROP extended_hours")
