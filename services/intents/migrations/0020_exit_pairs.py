"""Order groups whose exits are one order at the broker."""

from alembic import op

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    op.execute("ALTER TABLE intents.intent_group ADD paired boolean NOT NULL DEFAULT false")


def downgrade() -> None:
    op.execute("ALTER TABLE intents.intent_group DROP paired")
