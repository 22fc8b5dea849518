"""The end of the day whose loss is limited is kept, so that another time zone does not begin a day within a day."""

from alembic import op

from chassis.migrations import publish

revision = "0010"
down_revision = "0009"

READERS = ("intents", "intents_web", "controls_web")
# A zone that Postgres does not know counts as UTC, as it does for the rule.
TABLE = """
ALTER TABLE intents.day_equity ADD ends_at timestamptz;
UPDATE intents.day_equity d SET ends_at = (d.day + 1)::timestamp AT TIME ZONE coalesce(
    (SELECT z.name FROM accounts_api.account a JOIN pg_timezone_names z ON z.name = a.time_zone
     WHERE a.id = d.account_id), 'UTC');
ALTER TABLE intents.day_equity ALTER ends_at SET NOT NULL;
"""
EQUITY = """
CREATE OR REPLACE VIEW intents_api.equity AS
    SELECT b.account_id, b.equity, d.day, coalesce(d.equity, b.equity) AS day_start_equity, d.ends_at AS day_ends_at
    FROM intents.balance b LEFT JOIN intents.day_equity d USING (account_id);
"""
EQUITY_BEFORE = """
DROP VIEW intents_api.equity;
CREATE VIEW intents_api.equity AS
    SELECT b.account_id, b.equity, d.day, coalesce(d.equity, b.equity) AS day_start_equity
    FROM intents.balance b LEFT JOIN intents.day_equity d USING (account_id);
"""


def upgrade() -> None:
    op.execute(TABLE)
    op.execute(EQUITY)
    op.execute(publish("intents_api.equity", *READERS))


def downgrade() -> None:
    op.execute(EQUITY_BEFORE)
    op.execute(publish("intents_api.equity", *READERS))
    op.execute("ALTER TABLE intents.day_equity DROP ends_at")
