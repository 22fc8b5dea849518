"""An order that has ended is found by the broker's id, where a reading that is recorded late shows it without ours."""

from alembic import op

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    op.execute("""
        CREATE INDEX broker_order_ended_idx ON intents.broker_order (account_id, broker_order_id)
        WHERE status IN ('FILLED', 'CANCELED', 'EXPIRED', 'REJECTED', 'REPLACED')
    """)


def downgrade() -> None:
    op.execute("DROP INDEX intents.broker_order_ended_idx")
