"""What the orders of an API key with a budget have come to in its day, and what each of its orders has taken of it.

`key_budget` has one row for each such key, whatever accounts it trades on. `day_ends_at` names the day.
"""

from alembic import op

from chassis import tenancy
from chassis.migrations import publish, publish_function, role

revision = "0019"
down_revision = "0018"

WEB, WORKER = role("intents_web"), role("intents")
READERS = ("intents_web", "controls_web")
OF_INTENT = ("budget_key_id", "budget_day_ends_at", "budget_notional", "budget_quantity")

TABLES = """
CREATE TABLE intents.key_budget (
    key_id          uuid CONSTRAINT key_budget_pkey PRIMARY KEY,
    organization_id uuid NOT NULL,
    day_ends_at     timestamptz NOT NULL,
    spent           numeric NOT NULL
);
ALTER TABLE intents.intent ADD budget_key_id uuid, ADD budget_day_ends_at timestamptz, ADD budget_notional numeric,
    ADD budget_quantity numeric;
"""
GRANTS = f"""
REVOKE ALL ON intents.key_budget FROM {WORKER};
GRANT SELECT, INSERT, UPDATE (day_ends_at, spent) ON intents.key_budget TO {WEB}, {WORKER};
GRANT UPDATE ({", ".join(OF_INTENT)}) ON intents.intent TO {WEB};
"""
VIEWS = {
    "key_spending": "SELECT key_id, day_ends_at, spent FROM intents.key_budget",
    "key_order": """
        SELECT account_id, id AS intent_id, budget_key_id AS key_id, budget_day_ends_at AS day_ends_at,
               budget_notional AS notional
        FROM intents.intent WHERE budget_key_id IS NOT NULL""",
}
FUNCTION = "intents_api.key_budget(uuid, uuid, uuid)"
# The same for a submit, a dry run and a preview. `charged` is what the intent has taken in the same day.
KEY_BUDGET = """
CREATE FUNCTION intents_api.key_budget(of_key uuid, of_account uuid, of_intent uuid)
RETURNS TABLE (day_ends_at timestamptz, spent numeric, charged numeric) LANGUAGE sql STABLE ROWS 1 AS $$
    SELECT b.day_ends_at, b.spent, coalesce(o.notional, 0)
    FROM intents_api.key_spending b
    LEFT JOIN intents_api.key_order o ON o.account_id = of_account AND o.intent_id = of_intent
         AND o.key_id = b.key_id AND o.day_ends_at = b.day_ends_at
    WHERE b.key_id = of_key
$$
"""


def upgrade() -> None:
    op.execute(TABLES)
    op.execute(tenancy.protect("intents.key_budget"))
    op.execute(GRANTS)
    for name, query in VIEWS.items():
        op.execute(f"CREATE VIEW intents_api.{name} AS {query}")
        op.execute(publish(f"intents_api.{name}", *READERS))
    op.execute(KEY_BUDGET)
    op.execute(publish_function(FUNCTION, *READERS))


def downgrade() -> None:
    op.execute(f"DROP FUNCTION {FUNCTION}")
    for name in VIEWS:
        op.execute(f"DROP VIEW intents_api.{name}")
    op.execute("DROP TABLE intents.key_budget")
    op.execute(f"ALTER TABLE intents.intent {', '.join(f'DROP {column}' for column in OF_INTENT)}")
