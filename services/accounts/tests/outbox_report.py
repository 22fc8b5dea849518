"""The outbox health report, counted the slow way."""

from typing import Any

from sqlalchemy import text

from chassis.outbox import Outbox

PATH = "/v1/accounts/outbox/health"
TOTALS = ("pending", "processing", "failed", "completed")
NAIVE = text("""
    SELECT status, event_type, count(*) AS count, min(created_at) AS oldest_created_at, max(attempts) AS max_attempts,
           min(claimed_at) FILTER (WHERE status = 'processing') AS oldest_claimed_at
    FROM accounts.outbox GROUP BY status, event_type ORDER BY status, event_type
""")
REDRIVEN = text("""
    SELECT count(DISTINCT failed.id)
    FROM accounts.outbox failed JOIN accounts.outbox copy ON copy.redriven_from = failed.id
    WHERE failed.status = 'failed'
""")


def expected_report(outbox: Outbox) -> dict[str, Any]:
    """The report counted the slow way, straight from the rows."""
    with outbox.engine.connect() as tx:
        rows = [dict(row._mapping) for row in tx.execute(NAIVE)]
        redriven = tx.execute(REDRIVEN).scalar_one()

    def formatted(moment: Any) -> str | None:
        return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ") if moment else None

    def oldest(status: str, field: str) -> str | None:
        return formatted(min((row[field] for row in rows if row["status"] == status), default=None))

    return {
        "entries": [
            {**row, **{k: formatted(row[k]) for k in ("oldest_created_at", "oldest_claimed_at")}} for row in rows
        ],
        **{status: sum(row["count"] for row in rows if row["status"] == status) for status in TOTALS},
        "redriven": redriven,
        "oldest_claim_at": oldest("processing", "oldest_claimed_at"),
        "oldest_failed_at": oldest("failed", "oldest_created_at"),
        "oldest_pending_at": oldest("pending", "oldest_created_at"),
    }
