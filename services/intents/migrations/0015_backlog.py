"""Whose commands wait too long to be sent: an account's, or an organization's at a broker."""

from alembic import op

from chassis import tenancy
from chassis.migrations import role

revision = "0015"
down_revision = "0014"

# A scope is the id of an account, or a broker and an environment: then it is about all accounts of the organization
# there. A row that is not renewed ends by itself.
TABLE = f"""
CREATE TABLE intents.backlog (
    organization_id uuid NOT NULL,
    scope           text NOT NULL,
    expires_at      timestamptz NOT NULL,
    CONSTRAINT backlog_pkey PRIMARY KEY (organization_id, scope)
);
GRANT SELECT ON intents.backlog TO {role("intents_web")};
"""


def upgrade() -> None:
    op.execute(TABLE)
    op.execute(tenancy.protect("intents.backlog"))


def downgrade() -> None:
    op.execute("DROP TABLE intents.backlog")
