"""Finding orders: the caller's own id and tags of an intent, and the indexes that a page of orders is read by.

Refusals as data: the command that was refused, and whether the refusal is in the log (0: beyond what a minute logs).
"""

from alembic import op

from chassis import tenancy
from chassis.migrations import publish, role

revision = "0002"
down_revision = "0001"

WEB, WORKER = role("intents_web"), role("intents")

# A tag is a row, ordered as orders are listed: an array of them could be searched but not paged through in order.
ORDERS = f"""
ALTER TABLE intents.intent ADD COLUMN client_id text, ADD COLUMN tags text[] NOT NULL DEFAULT '{{}}';
CREATE UNIQUE INDEX intent_client_id_key ON intents.intent (account_id, client_id) WHERE client_id IS NOT NULL;
CREATE INDEX intent_status_order_idx ON intents.intent (account_id, status, created_at, id);
CREATE INDEX intent_symbol_order_idx ON intents.intent (account_id, symbol, status, created_at, id);
CREATE TABLE intents.intent_tag (
    account_id      uuid NOT NULL,
    organization_id uuid NOT NULL,
    tag             text NOT NULL,
    created_at      timestamptz NOT NULL,
    intent_id       uuid NOT NULL,
    CONSTRAINT intent_tag_pkey PRIMARY KEY (account_id, tag, created_at, intent_id)
);
{tenancy.protect("intents.intent_tag")}
REVOKE ALL ON intents.intent_tag FROM {WORKER};
GRANT SELECT, INSERT ON intents.intent_tag TO {WEB};
"""

REFUSALS = f"""
ALTER TABLE intents.refusal ADD COLUMN order_side text, ADD COLUMN spec json, ADD COLUMN ref_intent_id uuid,
    ADD COLUMN request_id text, ADD COLUMN sequence bigint;
UPDATE intents.refusal SET sequence = 0;
CREATE INDEX refusal_unlogged_idx ON intents.refusal (account_id, created_at, id) WHERE sequence IS NULL;
GRANT SELECT ON intents.refusal TO {WEB};
GRANT UPDATE (sequence) ON intents.refusal TO {WORKER};
"""  # noqa: S608 - only our own words
EVENT_TYPES = """
ALTER TABLE intents.account_event DROP CONSTRAINT account_event_type_check;
ALTER TABLE intents.account_event ADD CONSTRAINT account_event_type_check CHECK (type IN ({types}));
"""
TYPES = "'BROKER_ORDER', 'BROKER_TRADE', 'BROKER_POSITION', 'CONTROL', 'ACCOUNT'"

# As in 0001, and the tags of each CREATE.
TALLY = """
CREATE OR REPLACE VIEW intents.tally WITH (security_invoker = true) AS
    SELECT account_id, sequence, created_at AS moment, 'type' AS kind, type AS key, 1 AS amount FROM intents.action
    UNION ALL
    SELECT account_id, sequence, created_at, 'symbol', symbol, 1 FROM intents.action
    UNION ALL
    SELECT account_id, sequence, intent_created_at, 'status', to_status, 1 FROM intents.action
    UNION ALL
    SELECT account_id, sequence, intent_created_at, 'status', from_status, -1 FROM intents.action
    WHERE from_status IS NOT NULL
    UNION ALL
    SELECT account_id, sequence, intent_created_at, 'status', to_status, 1 FROM intents.account_event
    WHERE to_status IS NOT NULL
    UNION ALL
    SELECT account_id, sequence, intent_created_at, 'status', from_status, -1 FROM intents.account_event
    WHERE from_status IS NOT NULL
    UNION ALL
    SELECT account_id, sequence, intent_created_at,
           CASE to_status WHEN 'FILLED' THEN 'fill_ms' ELSE 'submit_ms' END,
           ceil(4 * log(2, greatest(1, 1000 * extract(epoch FROM created_at - intent_created_at))::numeric))::text, 1
    FROM intents.account_event
    WHERE (to_status = 'FILLED' AND from_status <> 'FILLED')
       OR (to_status = 'ACCEPTED' AND from_status IN ('PENDING', 'SUBMITTED'))
"""
TAGS = """
    UNION ALL
    SELECT account_id, sequence, created_at, 'tag', tag, 1
    FROM intents.action, json_array_elements_text(payload -> 'tags') AS tag WHERE type = 'CREATE'
"""

EVENT_LOG = """
CREATE OR REPLACE VIEW intents_api.event_log AS
    SELECT account_id, sequence, id AS event_id, 'INTENT_ACTION' AS type, created_at AS occurred_at, traceparent,
           jsonb_build_object(
               'id', id, 'sequence', sequence, 'intent_id', intent_id, 'account_id', account_id,
               'organization_id', organization_id, 'environment', environment,
               'command', jsonb_build_object('type', type, 'payload', payload),
               'symbol', symbol, 'order_side', order_side, 'spec', spec, 'route_strategy', route_strategy,
               'ref_intent_id', ref_intent_id, 'actor', jsonb_build_object('type', actor_type, 'id', actor_id),
               'reason', reason, 'controls', controls, 'status', to_status,
               'previous_hash', encode(previous_hash, 'hex'), 'hash', encode(hash, 'hex'){more}) AS payload
    FROM intents.action
    UNION ALL
    SELECT account_id, sequence, id, type, occurred_at, traceparent, payload FROM intents.account_event;
"""
OWN_ID_AND_TAGS = ", 'client_id', payload -> 'client_id', 'tags', payload -> 'tags'"


def upgrade() -> None:
    op.execute(ORDERS)
    op.execute(REFUSALS)
    op.execute(EVENT_TYPES.format(types=f"{TYPES}, 'REFUSAL'"))
    op.execute(TALLY + TAGS)
    _publish_event_log(OWN_ID_AND_TAGS)


def _publish_event_log(more: str) -> None:
    op.execute(EVENT_LOG.format(more=more))
    op.execute(publish("intents_api.event_log", "stream_gateway"))


def downgrade() -> None:
    op.execute(EVENT_TYPES.format(types=TYPES))
    op.execute("DROP INDEX intents.refusal_unlogged_idx")
    op.execute(f"REVOKE SELECT ON intents.refusal FROM {WEB}")  # noqa: S608 - only our own words
    for column in ("order_side", "spec", "ref_intent_id", "request_id", "sequence"):
        op.execute(f"ALTER TABLE intents.refusal DROP COLUMN {column}")
    _publish_event_log("")
    op.execute(TALLY)
    op.execute("DROP TABLE intents.intent_tag")
    op.execute("DROP INDEX intents.intent_status_order_idx, intents.intent_symbol_order_idx")
    op.execute("ALTER TABLE intents.intent DROP COLUMN client_id, DROP COLUMN tags")
