"""Operators drive failed outbox rows again: the web process reads rows, and only in transactions that serve them."""

from alembic import op

from chassis import tenancy
from chassis.migrations import role

revision = "0006"
down_revision = "0005"

WEB = role("accounts_web")
COLUMNS = "SELECT (event_id, ordering_key, payload, traceparent, last_error, settled_at), INSERT (redriven_from)"


def upgrade() -> None:
    op.execute("DROP POLICY health ON accounts.outbox")
    op.execute(tenancy.admit_operators("accounts.outbox", WEB))
    op.execute(f"GRANT {COLUMNS} ON accounts.outbox TO {WEB}")


def downgrade() -> None:
    op.execute(f"REVOKE {COLUMNS} ON accounts.outbox FROM {WEB}")
    op.execute("DROP POLICY operator ON accounts.outbox")
    op.execute(f"CREATE POLICY health ON accounts.outbox FOR SELECT TO {WEB} USING (true)")
