"""Work is queued by broker and environment, so that what waits for one broker is not gone through for another.

Intents that have ended have nothing to be queued, and stay without a lane: there may be millions of them.
"""

from alembic import op

revision = "0021"
down_revision = "0020"

_UP = """
ALTER TABLE intents.intent ADD lane text COLLATE "C" NOT NULL DEFAULT '';
UPDATE intents.intent i SET lane = a.broker || ' ' || a.environment
    FROM accounts_api.account a WHERE a.id = i.account_id
    AND i.status NOT IN ('FILLED', 'CANCELED', 'REJECTED', 'DENIED', 'EXPIRED', 'FAILED');
DROP INDEX intents.intent_work_idx;
CREATE INDEX intent_work_idx ON intents.intent (lane, organization_id, next_attempt_at) WHERE open_actions > 0;
"""
_DOWN = """
DROP INDEX intents.intent_work_idx;
CREATE INDEX intent_work_idx ON intents.intent (organization_id, next_attempt_at) WHERE open_actions > 0;
ALTER TABLE intents.intent DROP lane;
"""


def upgrade() -> None:
    op.execute(_UP)


def downgrade() -> None:
    op.execute(_DOWN)
