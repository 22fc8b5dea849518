"""It is known of which account at the broker the positions and the balance are."""

from alembic import op

from chassis.migrations import role

revision = "0013"
down_revision = "0012"

WORKER = role("intents")

# Of an account with logins to several accounts at the broker the next reading says it.
UPGRADE = """
ALTER TABLE intents.broker_account ADD held_account text, ADD awaits_reading boolean NOT NULL DEFAULT false;
UPDATE intents.broker_account k SET held_account = login.held_account FROM (
    SELECT account_id, min(broker_account) AS held_account FROM intents.broker_login
    GROUP BY account_id HAVING count(DISTINCT broker_account) = 1
) login WHERE login.account_id = k.account_id;
"""


def upgrade() -> None:
    op.execute(UPGRADE)
    op.execute(f"GRANT DELETE ON intents.balance TO {WORKER}")


def downgrade() -> None:
    op.execute(f"REVOKE DELETE ON intents.balance FROM {WORKER}")
    op.execute("ALTER TABLE intents.broker_account DROP held_account, DROP awaits_reading")
