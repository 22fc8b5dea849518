"""A row is looked up by its key whatever the planner knows of the table.

While a table is small every index that has a column of the key seems as good as the key itself, and the plan of a
prepared statement outlives that. An index for one kind of query is therefore partial on a column of that query, which
makes it useless for any other; and what belongs to an intent is found by the intent's id alone.
"""

from alembic import op

revision = "0014"
down_revision = "0013"

UPGRADE = """
DROP INDEX intents.action_intent_idx, intents.account_event_intent_idx, intents.broker_order_intent_idx,
    intents.intent_status_order_idx, intents.intent_symbol_order_idx;
CREATE INDEX action_intent_idx ON intents.action (intent_id, sequence);
CREATE INDEX account_event_intent_idx ON intents.account_event (intent_id, sequence) WHERE intent_id IS NOT NULL;
CREATE INDEX broker_order_intent_idx ON intents.broker_order (intent_id) WHERE intent_id IS NOT NULL;
CREATE INDEX intent_status_order_idx ON intents.intent (account_id, status, created_at, id) WHERE status IS NOT NULL;
CREATE INDEX intent_symbol_order_idx ON intents.intent (account_id, symbol, status, created_at, id)
    WHERE symbol IS NOT NULL;
"""
DOWNGRADE = """
DROP INDEX intents.action_intent_idx, intents.account_event_intent_idx, intents.broker_order_intent_idx,
    intents.intent_status_order_idx, intents.intent_symbol_order_idx;
CREATE INDEX action_intent_idx ON intents.action (account_id, intent_id, sequence);
CREATE INDEX account_event_intent_idx ON intents.account_event (account_id, intent_id, sequence);
CREATE INDEX broker_order_intent_idx ON intents.broker_order (account_id, intent_id);
CREATE INDEX intent_status_order_idx ON intents.intent (account_id, status, created_at, id);
CREATE INDEX intent_symbol_order_idx ON intents.intent (account_id, symbol, status, created_at, id);
"""


def upgrade() -> None:
    op.execute(UPGRADE)


def downgrade() -> None:
    op.execute(DOWNGRADE)
