"""Which backlogs are too old: measured by the scheduler, read with the facts of every submit."""

import json
from collections.abc import Iterable
from uuid import UUID

from sqlalchemy import Connection, text

LANE = "a.broker || ' ' || a.environment"
"""Of an account `a`: what waits for one broker in one environment, and holds up nothing that waits for another."""

# Two look-ups by key, which find nothing while nobody is behind.
BACKLOG = f"""
    (SELECT CASE b.scope WHEN a.id::text THEN 'account' ELSE 'broker' END FROM intents.backlog b
     WHERE b.organization_id = a.organization_id AND b.scope IN (a.id::text, {LANE})
       AND b.expires_at > now() LIMIT 1)
"""  # noqa: S608 - only our own words
"""Of an account `a`: whose backlog is too old, its own or that of its organization at its broker; of both any."""

# In the order of keys, and never waiting for a row to delete, so that two schedulers do not block each other.
_SAVE = text("""
    WITH given AS MATERIALIZED (
        SELECT * FROM jsonb_to_recordset(CAST(:overloads AS jsonb)) AS given (organization_id uuid, scope text)
    ), recovered AS (
        DELETE FROM intents.backlog WHERE (organization_id, scope) IN (
            SELECT b.organization_id, b.scope FROM intents.backlog b
            WHERE NOT EXISTS (SELECT FROM given g WHERE g.organization_id = b.organization_id AND g.scope = b.scope)
            FOR UPDATE SKIP LOCKED)
    )
    INSERT INTO intents.backlog (organization_id, scope, expires_at)
    SELECT organization_id, scope, now() + make_interval(secs => :seconds) FROM given ORDER BY organization_id, scope
    ON CONFLICT (organization_id, scope) DO UPDATE SET expires_at = excluded.expires_at
""")


def save_overloads(tx: Connection, overloads: Iterable[tuple[UUID, str]], seconds: float) -> None:
    """Replace all that is there; what is not saved again counts for so many seconds."""
    rows = [{"organization_id": str(organization_id), "scope": scope} for organization_id, scope in overloads]
    tx.execute(_SAVE, {"overloads": json.dumps(rows), "seconds": seconds})
