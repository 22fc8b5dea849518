"""The action log and everything that stands beside it, keyed by account; what the stream gateway may read."""

from alembic import op

from chassis import feed, tenancy
from chassis.migrations import publish, role
from chassis.outbox import ddl

revision = "0001"
down_revision = None

STATUSES = (
    "PENDING",
    "SUBMITTED",
    "ACCEPTED",
    "PARTIALLY_FILLED",
    "PENDING_REPLACE",
    "PENDING_CANCEL",
    "FILLED",
    "CANCELED",
    "REJECTED",
    "DENIED",
    "EXPIRED",
    "FAILED",
)
_ONE_OF_STATUSES = ", ".join(f"'{status}'" for status in STATUSES)

# The head gives each account its sequence and holds the end of its chain of hashes. Sequences begin with 1: whoever
# verifies or signs a log begins there, so nothing may stand before it. What was sent is json and not jsonb, which would
# put its keys into another order.
TABLES = f"""
CREATE TABLE intents.account_head (
    account_id      uuid CONSTRAINT account_head_pkey PRIMARY KEY,
    organization_id uuid NOT NULL,
    last_sequence   bigint NOT NULL,
    last_hash       bytea NOT NULL,
    previous_hash   bytea NOT NULL
);
CREATE TABLE intents.action (
    account_id        uuid NOT NULL,
    sequence          bigint NOT NULL CONSTRAINT action_sequence_check CHECK (sequence > 0),
    id                uuid NOT NULL,
    organization_id   uuid NOT NULL,
    environment       text NOT NULL CONSTRAINT action_environment_check CHECK (environment IN ('paper', 'live')),
    intent_id         uuid NOT NULL,
    type              text NOT NULL CONSTRAINT action_type_check CHECK (type IN ('CREATE', 'REPLACE', 'CANCEL')),
    payload           json NOT NULL,
    symbol            text NOT NULL,
    order_side        text NOT NULL CONSTRAINT action_order_side_check CHECK (order_side IN ('BUY', 'SELL')),
    spec              json,
    route_strategy    text NOT NULL,
    ref_intent_id     uuid,
    actor_type        text NOT NULL,
    actor_id          text NOT NULL,
    reason            text,
    controls          json NOT NULL,
    from_status       text,
    to_status         text NOT NULL,
    intent_created_at timestamptz NOT NULL,
    traceparent       text,
    previous_hash     bytea NOT NULL,
    hash              bytea NOT NULL,
    created_at        timestamptz NOT NULL,
    CONSTRAINT action_pkey PRIMARY KEY (account_id, sequence)
);
CREATE INDEX action_intent_idx ON intents.action (account_id, intent_id, sequence);
CREATE INDEX action_created_at_idx ON intents.action (account_id, created_at);
CREATE TABLE intents.intent (
    account_id         uuid NOT NULL,
    id                 uuid NOT NULL,
    organization_id    uuid NOT NULL,
    environment        text NOT NULL,
    symbol             text NOT NULL,
    order_side         text NOT NULL,
    route_strategy     text NOT NULL,
    spec               json NOT NULL,
    quantity           numeric NOT NULL CONSTRAINT intent_quantity_check CHECK (quantity > 0 AND quantity <> 'NaN'),
    status             text NOT NULL CONSTRAINT intent_status_check CHECK (status IN ({_ONE_OF_STATUSES})),
    filled_quantity    numeric NOT NULL DEFAULT 0 CONSTRAINT intent_filled_quantity_check
                       CHECK (filled_quantity >= 0 AND filled_quantity <> 'NaN'),
    average_fill_price numeric,
    broker_order_id    text,
    reason_code        text,
    outcome            text CONSTRAINT intent_outcome_check CHECK (outcome IN ('unknown')),
    version            bigint NOT NULL DEFAULT 1,
    created_at         timestamptz NOT NULL,
    updated_at         timestamptz NOT NULL,
    open_actions       integer NOT NULL DEFAULT 1,
    done_sequence      bigint NOT NULL DEFAULT 0,
    next_attempt_at    timestamptz NOT NULL,
    attempts           integer NOT NULL DEFAULT 0,
    submit_started_at  timestamptz,
    lease_token        uuid,
    lease_until        timestamptz,
    CONSTRAINT intent_pkey PRIMARY KEY (account_id, id)
);
CREATE INDEX intent_work_idx ON intents.intent (organization_id, next_attempt_at) WHERE open_actions > 0;
CREATE INDEX intent_open_idx ON intents.intent (account_id, symbol)
    WHERE status NOT IN ('FILLED', 'CANCELED', 'REJECTED', 'DENIED', 'EXPIRED', 'FAILED');
CREATE TABLE intents.position (
    account_id      uuid NOT NULL,
    organization_id uuid NOT NULL,
    symbol          text NOT NULL,
    quantity        numeric NOT NULL,
    last_price      numeric,
    updated_at      timestamptz NOT NULL,
    CONSTRAINT position_pkey PRIMARY KEY (account_id, symbol)
);
CREATE TABLE intents.account_event (
    account_id          uuid NOT NULL,
    organization_id     uuid NOT NULL,
    sequence            bigint NOT NULL CONSTRAINT account_event_sequence_check CHECK (sequence > 0),
    id                  uuid NOT NULL,
    type                text NOT NULL CONSTRAINT account_event_type_check
                        CHECK (type IN ('BROKER_ORDER', 'BROKER_TRADE', 'BROKER_POSITION', 'CONTROL', 'ACCOUNT')),
    intent_id           uuid,
    broker_execution_id text,
    from_status         text,
    to_status           text,
    intent_created_at   timestamptz,
    payload             jsonb NOT NULL,
    traceparent         text,
    occurred_at         timestamptz NOT NULL,
    created_at          timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT account_event_pkey PRIMARY KEY (account_id, sequence)
);
CREATE INDEX account_event_intent_idx ON intents.account_event (account_id, intent_id, sequence);
CREATE TABLE intents.idempotency (
    account_id      uuid NOT NULL,
    key             text NOT NULL,
    request_hash    bytea NOT NULL,
    intent_id       uuid NOT NULL,
    action_id       uuid NOT NULL,
    state           jsonb NOT NULL,
    created_at      timestamptz NOT NULL,
    created         boolean NOT NULL DEFAULT true,
    organization_id uuid NOT NULL,
    CONSTRAINT idempotency_pkey PRIMARY KEY (account_id, key)
);
CREATE INDEX idempotency_created_at_idx ON intents.idempotency (created_at);
CREATE TABLE intents.refusal (
    account_id      uuid NOT NULL,
    id              uuid NOT NULL,
    organization_id uuid NOT NULL,
    type            text NOT NULL,
    symbol          text NOT NULL,
    actor_type      text NOT NULL,
    actor_id        text NOT NULL,
    reasons         jsonb NOT NULL,
    created_at      timestamptz NOT NULL,
    CONSTRAINT refusal_pkey PRIMARY KEY (account_id, created_at, id)
);
CREATE INDEX refusal_created_at_idx ON intents.refusal (created_at);
CREATE TABLE intents.statistic (
    account_id      uuid NOT NULL,
    organization_id uuid NOT NULL,
    width           text NOT NULL CONSTRAINT statistic_width_check CHECK (width IN ('minute', 'hour', 'day')),
    bucket          timestamptz NOT NULL,
    kind            text NOT NULL,
    key             text NOT NULL,
    amount          bigint NOT NULL,
    CONSTRAINT statistic_pkey PRIMARY KEY (account_id, width, bucket, kind, key)
);
CREATE TABLE intents.statistic_head (
    account_id      uuid CONSTRAINT statistic_head_pkey PRIMARY KEY,
    organization_id uuid NOT NULL,
    last_sequence   bigint NOT NULL
);
"""

# The second wall; the first is that the service's role has no right to try.
APPEND_ONLY = """
CREATE FUNCTION intents.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER action_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON intents.action
    FOR EACH STATEMENT EXECUTE FUNCTION intents.refuse_change();
CREATE TRIGGER account_event_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON intents.account_event
    FOR EACH STATEMENT EXECUTE FUNCTION intents.refuse_change();
"""

# Whoever writes about an account need not know whose it is.
OWNER = """
CREATE FUNCTION intents.fill_organization() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.organization_id := coalesce(
        (SELECT organization_id FROM intents.account_head WHERE account_id = NEW.account_id),
        (SELECT organization_id FROM accounts_api.account WHERE id = NEW.account_id));
    RETURN NEW;
END $$;
REVOKE ALL ON FUNCTION intents.fill_organization() FROM PUBLIC;
"""
FILL = """
CREATE TRIGGER {table}_organization BEFORE INSERT ON intents.{table}
    FOR EACH ROW WHEN (NEW.organization_id IS NULL) EXECUTE FUNCTION intents.fill_organization();
"""
FILLED = ("account_head", "position", "account_event", "idempotency", "statistic", "statistic_head")

# Nothing of the log is ever changed or deleted, and of what stands beside it little.
WORKER = role("intents")
UNNEEDED = f"""
REVOKE UPDATE, DELETE ON intents.action, intents.account_event FROM {WORKER};
REVOKE UPDATE ON intents.refusal FROM {WORKER};
REVOKE INSERT ON intents.intent, intents.outbox_head FROM {WORKER};
REVOKE DELETE ON intents.account_head, intents.intent, intents.position, intents.statistic_head, intents.outbox_head,
    intents.outbox_completed, intents.feed_position FROM {WORKER};
REVOKE UPDATE ON intents.account_head FROM {WORKER};
GRANT UPDATE (last_sequence, last_hash, previous_hash) ON intents.account_head TO {WORKER};
REVOKE ALL ON FUNCTION intents.refuse_change() FROM PUBLIC;
"""

# What the web process does: it reads the log of an account, and appends to it.
WEB = role("intents_web")
GRANTS = f"""
GRANT USAGE ON SCHEMA intents TO {WEB};
GRANT SELECT ON intents.account_head, intents.action, intents.intent, intents.position, intents.account_event,
    intents.idempotency, intents.statistic, intents.statistic_head, intents.tally TO {WEB};
GRANT INSERT ON intents.account_head, intents.action, intents.intent, intents.idempotency, intents.refusal,
    intents.statistic TO {WEB};
GRANT UPDATE (last_sequence, last_hash, previous_hash) ON intents.account_head TO {WEB};
GRANT UPDATE (status, version, updated_at, open_actions, next_attempt_at) ON intents.intent TO {WEB};
GRANT UPDATE (request_hash, intent_id, action_id, state, created_at, created) ON intents.idempotency TO {WEB};
GRANT UPDATE (amount) ON intents.statistic TO {WEB};
"""

# What each line of the log adds to the statistics. Statuses count in the moment their intent was created, so that a
# window tells what became of the intents made in it. Latencies go into bins a quarter of an octave wide.
TALLY = """
CREATE VIEW intents.tally WITH (security_invoker = true) AS
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
       OR (to_status = 'ACCEPTED' AND from_status IN ('PENDING', 'SUBMITTED'));
"""

# The contract with the stream gateway: one log per account, in the order of its sequence.
VIEWS = """
CREATE VIEW intents_api.event_log AS
    SELECT account_id, sequence, id AS event_id, 'INTENT_ACTION' AS type, created_at AS occurred_at, traceparent,
           jsonb_build_object(
               'id', id, 'sequence', sequence, 'intent_id', intent_id, 'account_id', account_id,
               'organization_id', organization_id, 'environment', environment,
               'command', jsonb_build_object('type', type, 'payload', payload),
               'symbol', symbol, 'order_side', order_side, 'spec', spec, 'route_strategy', route_strategy,
               'ref_intent_id', ref_intent_id, 'actor', jsonb_build_object('type', actor_type, 'id', actor_id),
               'reason', reason, 'controls', controls, 'status', to_status,
               'previous_hash', encode(previous_hash, 'hex'), 'hash', encode(hash, 'hex')) AS payload
    FROM intents.action
    UNION ALL
    SELECT account_id, sequence, id, type, occurred_at, traceparent, payload FROM intents.account_event;
CREATE VIEW intents_api.account_head AS SELECT account_id, last_sequence FROM intents.account_head;
"""

READERS = ("stream_gateway",)
FEED_READERS = ("accounts",)  # who hears there that a broker refuses a credential
TABLE_NAMES = (
    "statistic_head",
    "statistic",
    "refusal",
    "idempotency",
    "account_event",
    "position",
    "intent",
    "action",
    "account_head",
)


def upgrade() -> None:
    op.execute(TABLES)
    op.execute(ddl.create_v1("intents"))
    op.execute(feed.create_v1("intents"))
    op.execute(APPEND_ONLY)
    op.execute(UNNEEDED)
    op.execute(OWNER)
    for table in FILLED:
        op.execute(FILL.format(table=table))
    for table in TABLE_NAMES:
        op.execute(tenancy.protect(f"intents.{table}"))
    op.execute(TALLY)
    op.execute(f"REVOKE INSERT, UPDATE, DELETE ON intents.tally FROM {WORKER}")
    op.execute(GRANTS)
    op.execute(ddl.let_append("intents", WEB))
    op.execute(VIEWS)
    for view in ("event_log", "account_head"):
        op.execute(publish(f"intents_api.{view}", *READERS))
    op.execute(publish("intents_api.feed", *FEED_READERS))


def downgrade() -> None:
    op.execute("DROP VIEW intents_api.account_head; DROP VIEW intents_api.event_log; DROP VIEW intents.tally")
    op.execute(feed.drop_v1("intents"))
    op.execute(ddl.drop_v1("intents"))
    for table in TABLE_NAMES:
        op.execute(f"DROP TABLE intents.{table}")
    op.execute("DROP FUNCTION intents.refuse_change(); DROP FUNCTION intents.fill_organization()")
