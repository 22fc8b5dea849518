-- What the gateway keeps. Nobody else reads or writes it.
CREATE SCHEMA IF NOT EXISTS fix;

CREATE TABLE IF NOT EXISTS fix.session (
    name text PRIMARY KEY,
    next_out bigint NOT NULL DEFAULT 1,
    next_in bigint NOT NULL DEFAULT 1,
    owner uuid,
    lease_until timestamptz NOT NULL DEFAULT '-infinity'
);

-- Application messages, each written before it is sent.
CREATE TABLE IF NOT EXISTS fix.message (
    session text NOT NULL REFERENCES fix.session,
    number bigint NOT NULL,
    type text NOT NULL,
    body jsonb NOT NULL,
    sent_at timestamptz NOT NULL,
    PRIMARY KEY (session, number)
);
CREATE INDEX IF NOT EXISTS message_sent_at_idx ON fix.message (sent_at);

CREATE TABLE IF NOT EXISTS fix.order (
    session text NOT NULL REFERENCES fix.session,
    client_order_id text NOT NULL,
    account text NOT NULL,
    symbol text NOT NULL,
    side text NOT NULL,
    kind text NOT NULL,
    time_in_force text NOT NULL,
    quantity numeric NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    limit_price numeric,
    stop_price numeric,
    destination text,
    status text NOT NULL,
    filled numeric NOT NULL,
    average numeric,
    base numeric NOT NULL,
    base_value numeric NOT NULL,
    order_id text,
    replaces text,
    replaced_by text,
    number bigint NOT NULL,
    cancels integer NOT NULL,
    rejected_cancel integer NOT NULL,
    reason text,
    PRIMARY KEY (session, client_order_id)
);
CREATE INDEX IF NOT EXISTS order_account_idx ON fix.order (session, account, created_at);
CREATE INDEX IF NOT EXISTS order_open_idx ON fix.order (session, account)
    WHERE status NOT IN ('sent', 'absent', 'refused', 'filled', 'canceled', 'expired', 'rejected', 'replaced');
CREATE INDEX IF NOT EXISTS order_sent_idx ON fix.order (session) WHERE status = 'sent';

-- ExecIDs that were seen, so that each counts once, and what was filled by them.
CREATE TABLE IF NOT EXISTS fix.execution (
    session text NOT NULL REFERENCES fix.session,
    order_id text NOT NULL,
    exec_id text NOT NULL,
    position bigint NOT NULL GENERATED ALWAYS AS IDENTITY UNIQUE,
    account text NOT NULL,
    client_order_id text NOT NULL,
    symbol text NOT NULL,
    side text NOT NULL,
    quantity numeric NOT NULL,
    price numeric NOT NULL,
    occurred_at timestamptz NOT NULL,
    PRIMARY KEY (session, order_id, exec_id)
);
CREATE INDEX IF NOT EXISTS execution_account_idx ON fix.execution (session, account, occurred_at);

GRANT USAGE ON SCHEMA fix TO {role};
GRANT SELECT, INSERT, UPDATE ON fix.session, fix.order TO {role};
GRANT SELECT, INSERT ON fix.execution TO {role};
GRANT SELECT, INSERT, DELETE ON fix.message TO {role};
