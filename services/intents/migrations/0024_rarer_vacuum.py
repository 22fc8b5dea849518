"""The tables of intents are vacuumed and analyzed after 20 000 changed rows, not after 50 (docs/decisions/0025)."""

from alembic import op

revision = "0024"
down_revision = "0023"

SETTINGS = ("autovacuum_vacuum_threshold", "autovacuum_vacuum_insert_threshold", "autovacuum_analyze_threshold")
EACH_TABLE = """
    DO $$ DECLARE name regclass; BEGIN
        FOR name IN SELECT oid FROM pg_class WHERE relnamespace = 'intents'::regnamespace AND relkind = 'r' LOOP
            EXECUTE format('ALTER TABLE %s {change}', name);
        END LOOP;
    END $$
"""


def upgrade() -> None:
    rarely = ", ".join(f"{setting} = 20000" for setting in SETTINGS)
    op.execute(EACH_TABLE.format(change=f"SET ({rarely})"))


def downgrade() -> None:
    op.execute(EACH_TABLE.format(change=f"RESET ({', '.join(SETTINGS)})"))
