"""What waits for an open circuit has a queue of its own: it need not be claimed to find out that it waits."""

from alembic import op

revision = "0022"
down_revision = "0021"

_UP = """
ALTER TABLE intents.intent ADD waiting_since timestamptz;
CREATE INDEX intent_waiting_idx ON intents.intent (lane, organization_id, waiting_since)
    WHERE open_actions > 0 AND waiting_since IS NOT NULL;
"""
_DOWN = """
DROP INDEX intents.intent_waiting_idx;
ALTER TABLE intents.intent DROP waiting_since;
"""


def upgrade() -> None:
    op.execute(_UP)


def downgrade() -> None:
    op.execute(_DOWN)
