"""A credential is tested on request: which test is to be made, and what came of the last one."""

from alembic import op

from chassis.migrations import publish, role

revision = "0007"
down_revision = "0006"

READERS = ("accounts", "intents")
WORKER = role("accounts")
RESULT = "UPDATE (test_status, tested_at) ON accounts.credential"

COLUMNS = """
ALTER TABLE accounts.credential
    ADD COLUMN test_id     uuid,
    ADD COLUMN test_status text CONSTRAINT credential_test_status_check
                           CHECK (test_status IN ('pending', 'accepted', 'refused', 'failed')),
    ADD COLUMN tested_at   timestamptz
"""
VIEW = """
CREATE VIEW accounts_api.credential AS
    SELECT c.id, c.account_id, a.organization_id, a.broker, a.environment, a.broker_account_id, c.label, c.status,
           c.fingerprint, c.created_at, c.version, c.vault_version, o.key_id, o.wrapped_key, o.ciphertext{more}
    FROM accounts.credential c
    JOIN accounts_api.account a ON a.id = c.account_id
    LEFT JOIN accounts.vault_object o ON o.credential_id = c.id AND o.version = c.vault_version
    WHERE c.deleted_at IS NULL
"""
TEST = ", CASE WHEN c.test_status = 'pending' THEN c.test_id END AS test_id"


def upgrade() -> None:
    op.execute(COLUMNS)
    op.execute(VIEW.format(more=TEST).replace("CREATE VIEW", "CREATE OR REPLACE VIEW"))
    op.execute(publish("accounts_api.credential", *READERS))
    op.execute(f"GRANT {RESULT} TO {WORKER}")


def downgrade() -> None:
    op.execute("DROP VIEW accounts_api.credential")
    op.execute("ALTER TABLE accounts.credential DROP COLUMN test_id, DROP COLUMN test_status, DROP COLUMN tested_at")
    op.execute(VIEW.format(more=""))
    op.execute(publish("accounts_api.credential", *READERS))
