"""An account says whether the platform closes what an order group has filled beyond what it was for."""

from alembic import op

from chassis.migrations import publish

revision = "0005"
down_revision = "0004"

VIEW = """
CREATE VIEW accounts_api.account_setting AS
    SELECT id, flatten_excess FROM accounts.account WHERE deleted_at IS NULL
"""


def upgrade() -> None:
    op.execute("ALTER TABLE accounts.account ADD COLUMN flatten_excess boolean NOT NULL DEFAULT false")
    op.execute(VIEW)
    op.execute(publish("accounts_api.account_setting", "intents"))


def downgrade() -> None:
    op.execute("DROP VIEW accounts_api.account_setting")
    op.execute("ALTER TABLE accounts.account DROP COLUMN flatten_excess")
