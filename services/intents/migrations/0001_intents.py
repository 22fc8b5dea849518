"""The schema of intents: accounts' logs, what execution keeps, the log epoch, signed heads; what others may read.

Longer than 300 lines because it is the whole schema, and one revision builds it.
"""

from alembic import op

from chassis import feed, tenancy
from chassis.migrations import publish, publish_function, role
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
    accepted_at        timestamptz,
    lease_holder       integer,
    absences           integer NOT NULL DEFAULT 0,
    overordered        boolean NOT NULL DEFAULT false,
    CONSTRAINT intent_pkey PRIMARY KEY (account_id, id)
);
CREATE INDEX intent_work_idx ON intents.intent (organization_id, next_attempt_at) WHERE open_actions > 0;
CREATE INDEX intent_lease_idx ON intents.intent (lease_holder) WHERE lease_until IS NOT NULL;
CREATE INDEX intent_overordered_idx ON intents.intent (account_id, id) WHERE overordered;
CREATE INDEX intent_open_idx ON intents.intent (account_id, symbol)
    WHERE status NOT IN ('FILLED', 'CANCELED', 'REJECTED', 'DENIED', 'EXPIRED', 'FAILED');
CREATE TABLE intents.position (
    account_id          uuid NOT NULL,
    organization_id     uuid NOT NULL,
    symbol              text NOT NULL,
    quantity            numeric NOT NULL,
    last_price          numeric,
    updated_at          timestamptz NOT NULL,
    average_entry_price numeric,
    market_value        numeric,
    unrealized_profit   numeric,
    reconciled_at       timestamptz,
    CONSTRAINT position_pkey PRIMARY KEY (account_id, symbol)
);
CREATE INDEX position_unconfirmed_idx ON intents.position (account_id)
    WHERE reconciled_at IS NULL OR reconciled_at < updated_at;
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

# A row of broker_order is written before the order is sent: it is the recovery point, and how an update that overtakes
# the answer finds its intent. Without an intent it is an external order. `credential` is the one it is
# sent under, and broker_login says which account at the broker that credential opens. MISSING is what may have been
# sent and was not found at the broker; `unwanted_since` marks an open order that its intent no longer asks for.
EXECUTION_TABLES = """
CREATE TABLE intents.broker_order (
    account_id        uuid NOT NULL,
    client_order_id   text NOT NULL,
    intent_id         uuid,
    action_sequence   bigint,
    broker_order_id   text,
    status            text NOT NULL,
    executions        text[] NOT NULL DEFAULT '{}',
    filled_quantity   numeric NOT NULL DEFAULT 0
                      CONSTRAINT broker_order_filled_quantity_check
                      CHECK (filled_quantity >= 0 AND filled_quantity <> 'NaN'),
    executed_quantity numeric NOT NULL DEFAULT 0,
    filled_value      numeric NOT NULL DEFAULT 0,
    quantity          numeric,
    credential        text,
    unwanted_since    timestamptz,
    created_at        timestamptz NOT NULL DEFAULT now(),
    updated_at        timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT broker_order_pkey PRIMARY KEY (account_id, client_order_id)
);
CREATE INDEX broker_order_intent_idx ON intents.broker_order (account_id, intent_id);
CREATE INDEX broker_order_unended_idx ON intents.broker_order (account_id)
    WHERE status NOT IN ('FILLED', 'CANCELED', 'EXPIRED', 'REJECTED', 'REPLACED');
CREATE TABLE intents.broker_login (
    account_id     uuid NOT NULL,
    credential     text NOT NULL,
    broker_account text NOT NULL,
    created_at     timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT broker_login_pkey PRIMARY KEY (account_id, credential)
);
CREATE TABLE intents.broker_account (
    account_id         uuid CONSTRAINT broker_account_pkey PRIMARY KEY,
    lease_token        uuid,
    lease_until        timestamptz,
    reconciled_at      timestamptz,
    refused_credential text,
    epoch              uuid
);
CREATE TABLE intents.balance (
    account_id      uuid CONSTRAINT balance_pkey PRIMARY KEY,
    organization_id uuid NOT NULL,
    currency        text NOT NULL,
    cash            numeric NOT NULL,
    equity          numeric NOT NULL,
    buying_power    numeric NOT NULL,
    updated_at      timestamptz NOT NULL
);
"""

LOG_EPOCH_TABLE = """
CREATE TABLE intents.log_epoch (
    number            bigint CONSTRAINT log_epoch_pkey PRIMARY KEY,
    epoch             uuid NOT NULL CONSTRAINT log_epoch_epoch_key UNIQUE DEFAULT gen_random_uuid(),
    started_at        timestamptz NOT NULL DEFAULT now(),
    reason            text NOT NULL
                      CONSTRAINT log_epoch_reason_check CHECK (reason IN ('INSTALLED', 'RESTORED', 'OPERATOR')),
    database_identity text NOT NULL
);
"""

# One row an account, the newest: it covers everything before it, because each hash covers the one before.
SIGNED_HEAD_TABLES = """
CREATE TABLE intents.log_signing_key (
    key_id     text CONSTRAINT log_signing_key_pkey PRIMARY KEY,
    public_key bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE intents.signed_head (
    account_id      uuid CONSTRAINT signed_head_pkey PRIMARY KEY,
    organization_id uuid NOT NULL,
    sequence        bigint NOT NULL,
    hash            bytea NOT NULL,
    epoch           uuid NOT NULL,
    signed_at       timestamptz NOT NULL,
    key_id          text NOT NULL CONSTRAINT signed_head_key_id_fkey REFERENCES intents.log_signing_key,
    signature       bytea NOT NULL
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
CREATE TRIGGER log_epoch_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON intents.log_epoch
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
FILLED = ("account_head", "position", "account_event", "idempotency", "statistic", "statistic_head", "balance")

# Nothing of the log is ever changed or deleted, and of what stands beside it little.
WORKER = role("intents")
UNNEEDED = f"""
REVOKE UPDATE, DELETE ON intents.action, intents.account_event, intents.broker_login FROM {WORKER};
REVOKE INSERT, UPDATE, DELETE ON intents.log_epoch, intents.log_signing_key, intents.signed_head FROM {WORKER};
REVOKE UPDATE ON intents.refusal FROM {WORKER};
REVOKE INSERT ON intents.intent, intents.outbox_head FROM {WORKER};
REVOKE DELETE ON intents.account_head, intents.intent, intents.position, intents.statistic_head, intents.balance,
    intents.broker_account, intents.outbox_head, intents.outbox_completed, intents.feed_position FROM {WORKER};
REVOKE UPDATE ON intents.account_head FROM {WORKER};
GRANT UPDATE (last_sequence, last_hash, previous_hash) ON intents.account_head TO {WORKER};
REVOKE ALL ON FUNCTION intents.refuse_change() FROM PUBLIC;
"""

# What the web process does: it reads the log of an account, and appends to it.
WEB = role("intents_web")
GRANTS = f"""
GRANT USAGE ON SCHEMA intents TO {WEB};
GRANT SELECT ON intents.account_head, intents.action, intents.intent, intents.position, intents.account_event,
    intents.idempotency, intents.statistic, intents.statistic_head, intents.tally, intents.balance,
    intents.log_signing_key, intents.signed_head TO {WEB};
GRANT INSERT ON intents.account_head, intents.action, intents.intent, intents.idempotency, intents.refusal,
    intents.statistic TO {WEB};
GRANT UPDATE (last_sequence, last_hash, previous_hash) ON intents.account_head TO {WEB};
GRANT UPDATE (status, version, updated_at, open_actions, next_attempt_at) ON intents.intent TO {WEB};
GRANT UPDATE (request_hash, intent_id, action_id, state, created_at, created) ON intents.idempotency TO {WEB};
GRANT UPDATE (amount) ON intents.statistic TO {WEB};
"""

# What the signer does: it reads the chains and writes nothing but signatures.
SIGNER = role("intents_signer")
SIGNER_GRANTS = f"""
GRANT USAGE ON SCHEMA intents TO {SIGNER};
GRANT SELECT ON intents.account_head TO {SIGNER};
GRANT SELECT (account_id, sequence, previous_hash, hash) ON intents.action TO {SIGNER};
GRANT SELECT, INSERT, UPDATE ON intents.signed_head TO {SIGNER};
GRANT SELECT, INSERT ON intents.log_signing_key TO {SIGNER};
"""

# What each line of the log adds to the statistics. Statuses count in the moment their intent was created, so that a
# window shows what became of the intents made in it. Latencies go into bins a quarter of an octave wide.
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

# Every way back to an earlier state changes one of the four: a restored dump the system identifier, or at least the
# table's own oid; recovery to a point in time and the promotion of a standby the timeline; a copied database its oid.
# A crash and a restart change none. The timeline is that of the next write: what the control file says may be older.
DATABASE_IDENTITY = """
CREATE FUNCTION intents.database_identity() RETURNS text
    LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
    SELECT concat_ws(':', (SELECT system_identifier FROM pg_control_system()),
                     left(pg_walfile_name(pg_current_wal_insert_lsn()), 8),
                     (SELECT oid FROM pg_database WHERE datname = current_database()),
                     CAST(CAST('intents.log_epoch' AS regclass) AS oid))
$$;
"""

# Of those who notice a restore at the same moment one writes the next number; the others wait for it and read it.
# In recovery nobody knows yet where the log will end: the answer is "not now", as from a server that starts.
CURRENT_LOG_EPOCH = """
CREATE FUNCTION intents_api.current_log_epoch() RETURNS uuid
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    newest intents.log_epoch;
    identity text;
BEGIN
    IF pg_is_in_recovery() THEN
        RAISE EXCEPTION 'the database is in recovery' USING ERRCODE = 'cannot_connect_now';
    END IF;
    identity := intents.database_identity();
    SELECT * INTO newest FROM intents.log_epoch ORDER BY number DESC LIMIT 1;
    IF newest.database_identity IS DISTINCT FROM identity THEN
        INSERT INTO intents.log_epoch (number, reason, database_identity)
            VALUES (newest.number + 1, 'RESTORED', identity) ON CONFLICT DO NOTHING;
        SELECT * INTO newest FROM intents.log_epoch ORDER BY number DESC LIMIT 1;
    END IF;
    RETURN newest.epoch;
END $$;
REVOKE EXECUTE ON FUNCTION intents.database_identity() FROM PUBLIC;
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
CREATE VIEW intents_api.log_epoch AS
    SELECT epoch, started_at, reason FROM intents.log_epoch ORDER BY number DESC LIMIT 1;
"""

FIRST_EPOCH = """
INSERT INTO intents.log_epoch (number, reason, database_identity)
    VALUES (1, 'INSTALLED', intents.database_identity());
"""

READERS = ("stream_gateway",)
EPOCH_READERS = ("intents", "stream_gateway")
EPOCH_CALLERS = (*EPOCH_READERS, "intents_web", "intents_signer")
FEED_READERS = ("accounts",)  # which learns there that a broker refuses a credential
OF_ORGANIZATIONS = (
    "statistic_head",
    "statistic",
    "refusal",
    "idempotency",
    "account_event",
    "balance",
    "position",
    "intent",
    "action",
    "account_head",
    "signed_head",
)
OF_WORKERS = ("broker_order", "broker_login", "broker_account")
OF_ALL = ("log_signing_key", "log_epoch")


def upgrade() -> None:
    create_tables()
    protect_tables()
    op.execute(TALLY)
    op.execute(f"REVOKE INSERT, UPDATE, DELETE ON intents.tally FROM {WORKER}")
    op.execute(GRANTS)
    op.execute(SIGNER_GRANTS)
    op.execute(ddl.let_append("intents", WEB))
    op.execute(DATABASE_IDENTITY)
    op.execute(CURRENT_LOG_EPOCH)
    op.execute(VIEWS)
    publish_views()
    op.execute(FIRST_EPOCH)


def create_tables() -> None:
    for statements in (TABLES, EXECUTION_TABLES, LOG_EPOCH_TABLE, SIGNED_HEAD_TABLES):
        op.execute(statements)
    op.execute(ddl.create_v1("intents"))
    op.execute(feed.create_v1("intents"))


def protect_tables() -> None:
    op.execute(APPEND_ONLY)
    op.execute(UNNEEDED)
    op.execute(OWNER)
    for table in FILLED:
        op.execute(FILL.format(table=table))
    for table in OF_ORGANIZATIONS:
        op.execute(tenancy.protect(f"intents.{table}"))
    for table in OF_WORKERS:
        op.execute(tenancy.protect_from_web(f"intents.{table}"))


def publish_views() -> None:
    for view in ("event_log", "account_head"):
        op.execute(publish(f"intents_api.{view}", *READERS))
    op.execute(publish("intents_api.feed", *FEED_READERS))
    op.execute(publish("intents_api.log_epoch", *EPOCH_READERS))
    op.execute(publish_function("intents_api.current_log_epoch()", *EPOCH_CALLERS))


def downgrade() -> None:
    for view in ("intents_api.log_epoch", "intents_api.account_head", "intents_api.event_log", "intents.tally"):
        op.execute(f"DROP VIEW {view}")
    op.execute("DROP FUNCTION intents_api.current_log_epoch(); DROP FUNCTION intents.database_identity()")
    op.execute(feed.drop_v1("intents"))
    op.execute(ddl.drop_v1("intents"))
    for table in (*OF_ORGANIZATIONS, *OF_WORKERS, *OF_ALL):
        op.execute(f"DROP TABLE intents.{table}")
    op.execute("DROP FUNCTION intents.refuse_change(); DROP FUNCTION intents.fill_organization()")
