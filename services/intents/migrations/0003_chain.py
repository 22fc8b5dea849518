"""One chain for each log: an account event is hashed as it is inserted, by a trigger, like an action."""

from alembic import op

from chassis import tenancy
from chassis.migrations import publish, role

revision = "0003"
down_revision = "0002"

# Events that are there already keep an empty hash: they were written before events were part of the chain.
COLUMNS = """
ALTER TABLE intents.account_event ADD COLUMN previous_hash bytea NOT NULL DEFAULT '',
    ADD COLUMN hash bytea NOT NULL DEFAULT '';
ALTER TABLE intents.account_event ALTER COLUMN previous_hash DROP DEFAULT, ALTER COLUMN hash DROP DEFAULT;
"""


def moment(column: str) -> str:
    """The same text whatever the time zone of the session is."""
    return f"""to_char({column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')"""


def content(row: str) -> str:
    """SQL for the text that the hash of an event covers: everything in its row but its place in the chain."""
    plain = (
        *("id", "account_id", "organization_id", "type", "intent_id", "broker_execution_id"),
        *("from_status", "to_status", "payload", "traceparent"),
    )
    moments = ("intent_created_at", "occurred_at", "created_at")
    values = {name: f"{row}.{name}" for name in plain} | {name: moment(f"{row}.{name}") for name in moments}
    pairs = ", ".join(f"'{name}', {value}" for name, value in values.items())
    return f"jsonb_build_object({pairs})::text"


# Whoever took the sequence holds the head's lock. Rows of one account come in the order of their sequences, and what
# came before in the same statement is visible here. If the entry before is no event, or one without a hash, it is the
# last that the head knows. The head changes with the last event only: every change leaves a dead version of it behind.
# The trigger comes after the one that fills in the organization: triggers run in the order of their names.
CHAIN_EVENT = f"""
CREATE FUNCTION intents.chain_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    SELECT e.hash INTO NEW.previous_hash FROM intents.account_event e
    WHERE e.account_id = NEW.account_id AND e.sequence = NEW.sequence - 1 AND e.hash <> '';
    IF NOT FOUND THEN
        SELECT h.last_hash INTO NEW.previous_hash FROM intents.account_head h WHERE h.account_id = NEW.account_id;
    END IF;
    NEW.hash := sha256(NEW.previous_hash || int8send(NEW.sequence) || sha256(convert_to({content("NEW")}, 'UTF8')));
    UPDATE intents.account_head SET previous_hash = NEW.previous_hash, last_hash = NEW.hash
    WHERE account_id = NEW.account_id AND last_sequence = NEW.sequence;
    RETURN NEW;
END $$;
CREATE TRIGGER account_event_previous_hash BEFORE INSERT ON intents.account_event
    FOR EACH ROW EXECUTE FUNCTION intents.chain_event();
REVOKE ALL ON FUNCTION intents.chain_event() FROM PUBLIC;
"""  # noqa: S608 - only our own words

EVENT_CONTENT = f"""
CREATE FUNCTION intents.event_content(event intents.account_event) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT {content("event")}
$$;
REVOKE ALL ON FUNCTION intents.event_content(intents.account_event) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION intents.event_content(intents.account_event) TO {role("intents")}, {role("intents_web")};
"""  # noqa: S608 - only our own words

# Signed heads that stay: one an hour of each account, or one for so many entries. A statement ends with one of them.
SIGNED_HEAD_HISTORY = f"""
CREATE TABLE intents.signed_head_history (
    account_id      uuid NOT NULL,
    organization_id uuid NOT NULL,
    sequence        bigint NOT NULL,
    hash            bytea NOT NULL,
    epoch           uuid NOT NULL,
    signed_at       timestamptz NOT NULL,
    key_id          text NOT NULL CONSTRAINT signed_head_history_key_id_fkey REFERENCES intents.log_signing_key,
    signature       bytea NOT NULL,
    CONSTRAINT signed_head_history_pkey PRIMARY KEY (account_id, sequence)
);
REVOKE INSERT, UPDATE, DELETE ON intents.signed_head_history FROM {role("intents")};
GRANT SELECT ON intents.signed_head_history TO {role("intents_web")};
GRANT SELECT, INSERT ON intents.signed_head_history TO {role("intents_signer")};
"""

SIGNER_READS_EVENTS = f"""
GRANT SELECT (account_id, sequence, previous_hash, hash) ON intents.account_event TO {role("intents_signer")};
"""

# As in 0001, with the hashes of every entry, and what a CREATE may carry beside its order.
EVENT_LOG = """
CREATE VIEW intents_api.event_log AS
    SELECT account_id, sequence, id AS event_id, 'INTENT_ACTION' AS type, created_at AS occurred_at, traceparent,
           jsonb_build_object(
               'id', id, 'sequence', sequence, 'intent_id', intent_id, 'account_id', account_id,
               'organization_id', organization_id, 'environment', environment,
               'command', jsonb_build_object('type', type, 'payload', payload),
               'symbol', symbol, 'order_side', order_side, 'spec', spec, 'route_strategy', route_strategy,
               'ref_intent_id', ref_intent_id, 'actor', jsonb_build_object('type', actor_type, 'id', actor_id),
               'reason', reason, 'controls', controls, 'status', to_status,
               'previous_hash', encode(previous_hash, 'hex'), 'hash', encode(hash, 'hex'),
               'client_id', payload -> 'client_id', 'tags', payload -> 'tags') AS payload{of_actions}
    FROM intents.action
    UNION ALL
    SELECT account_id, sequence, id, type, occurred_at, traceparent, payload{of_events} FROM intents.account_event;
"""
HASHES = ", encode(previous_hash, 'hex'){}, encode(hash, 'hex'){}"


def replace_event_log(of_actions: str, of_events: str) -> None:
    op.execute("DROP VIEW intents_api.event_log")
    op.execute(EVENT_LOG.format(of_actions=of_actions, of_events=of_events))
    op.execute(publish("intents_api.event_log", "stream_gateway"))


def upgrade() -> None:
    op.execute(COLUMNS)
    op.execute(CHAIN_EVENT)
    op.execute(EVENT_CONTENT)
    op.execute(SIGNER_READS_EVENTS)
    op.execute(SIGNED_HEAD_HISTORY)
    op.execute(tenancy.protect("intents.signed_head_history"))
    replace_event_log(HASHES.format(" AS previous_hash", " AS hash"), HASHES.format("", ""))


def downgrade() -> None:
    replace_event_log("", "")
    op.execute("DROP TABLE intents.signed_head_history")
    op.execute("DROP FUNCTION intents.event_content(intents.account_event)")
    op.execute("DROP TRIGGER account_event_previous_hash ON intents.account_event")
    op.execute("DROP FUNCTION intents.chain_event()")
    op.execute("ALTER TABLE intents.account_event DROP COLUMN previous_hash, DROP COLUMN hash")
