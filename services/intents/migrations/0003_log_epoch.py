"""The log epoch: one name for all accounts' logs, given anew whenever the database was restored to an earlier state."""

from alembic import op

from chassis.migrations import publish, publish_function, role

revision = "0003"
down_revision = "0002"

TABLE = """
CREATE TABLE intents.log_epoch (
    number            bigint CONSTRAINT log_epoch_pkey PRIMARY KEY,
    epoch             uuid NOT NULL CONSTRAINT log_epoch_epoch_key UNIQUE DEFAULT gen_random_uuid(),
    started_at        timestamptz NOT NULL DEFAULT now(),
    reason            text NOT NULL
                      CONSTRAINT log_epoch_reason_check CHECK (reason IN ('INSTALLED', 'RESTORED', 'OPERATOR')),
    database_identity text NOT NULL
);
CREATE TRIGGER log_epoch_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON intents.log_epoch
    FOR EACH STATEMENT EXECUTE FUNCTION intents.refuse_change();
"""

# Every way back to an earlier state changes one of the four: a restored dump the system identifier, or at least the
# table's own oid; recovery to a point in time and the promotion of a standby the timeline; a copied database its oid.
# A crash and a restart change none. The timeline is that of the next write: what the control file says may be older.
IDENTITY = """
CREATE FUNCTION intents.database_identity() RETURNS text
    LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
    SELECT concat_ws(':', (SELECT system_identifier FROM pg_control_system()),
                     left(pg_walfile_name(pg_current_wal_insert_lsn()), 8),
                     (SELECT oid FROM pg_database WHERE datname = current_database()),
                     CAST(CAST('intents.log_epoch' AS regclass) AS oid))
$$;
"""

# Of those who notice a restore at the same moment one writes the next number; the others wait for it and read it.
# In recovery nobody can tell yet where the log will end: the answer is "not now", as from a server that starts.
CURRENT = """
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

VIEW = """
CREATE VIEW intents_api.log_epoch AS
    SELECT epoch, started_at, reason FROM intents.log_epoch ORDER BY number DESC LIMIT 1;
"""

READERS = ("intents", "stream_gateway")


def upgrade() -> None:
    op.execute(TABLE)
    op.execute(f"REVOKE INSERT, UPDATE, DELETE ON intents.log_epoch FROM {role('intents')}")
    op.execute(IDENTITY)
    op.execute(CURRENT)
    op.execute(VIEW)
    op.execute(publish("intents_api.log_epoch", *READERS))
    op.execute(publish_function("intents_api.current_log_epoch()", *READERS, "intents_web"))
    op.execute(
        "INSERT INTO intents.log_epoch (number, reason, database_identity) "
        "VALUES (1, 'INSTALLED', intents.database_identity())"
    )


def downgrade() -> None:
    op.execute("DROP VIEW intents_api.log_epoch; DROP FUNCTION intents_api.current_log_epoch()")
    op.execute("DROP FUNCTION intents.database_identity(); DROP TABLE intents.log_epoch")
