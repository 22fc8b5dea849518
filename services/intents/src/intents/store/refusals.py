"""What controls refused: counted in the statistics, and kept for a time."""

import json
from uuid import uuid4

from sqlalchemy import Connection, text

from intents import model
from intents.store.connections import Statement, Transaction
from intents.store.statistics import KEPT

_REFUSE = Statement(
    "intents_refuse",
    ("uuid", "uuid", "uuid", "text", "text", "text", "text", "jsonb", "timestamptz", "text[]"),
    """
    WITH kept AS (
        INSERT INTO intents.refusal (account_id, id, organization_id, type, symbol, actor_type, actor_id, reasons,
                                     created_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
    )
    INSERT INTO intents.statistic AS counted (account_id, organization_id, width, bucket, kind, key, amount)
    SELECT $1, $3, width, date_trunc(width, $9, 'UTC'), 'refusal', code, 1
    FROM unnest(ARRAY['minute', 'hour', 'day']) width, unnest($10) code ORDER BY width, code
    ON CONFLICT (account_id, width, bucket, kind, key) DO UPDATE SET amount = counted.amount + 1
    RETURNING 1
    """,
)


def refuse(tx: Transaction, submission: model.Submission, refusal: model.ControlRejected) -> None:
    """Keep a refusal by controls for the statistics; it leaves no trace in the log."""
    organization_id = submission.caller.organization_id if submission.caller else None
    tx.write(
        _REFUSE,
        (
            str(submission.account_id),
            str(uuid4()),
            organization_id and str(organization_id),
            submission.command.type,
            refusal.symbol,
            *submission.actor,
            json.dumps(refusal.reasons),
            refusal.moment,
            sorted({str(reason["code"]) for reason in refusal.reasons}),
        ),
    )


_PRUNE = text("""
    WITH old AS (
        DELETE FROM intents.refusal WHERE ctid IN (
            SELECT ctid FROM intents.refusal WHERE created_at < now() - make_interval(days => :days) LIMIT :most)
        RETURNING account_id
    ), counted AS (
        DELETE FROM intents.statistic WHERE account_id IN (SELECT account_id FROM old)
        AND (width = 'minute' AND bucket < now() - CAST(:minute AS interval)
             OR width = 'hour' AND bucket < now() - CAST(:hour AS interval))
    )
    SELECT count(*) FROM old
""")
PRUNED_AT_ONCE = 5_000


def prune_refusals(tx: Connection, days: int) -> int:
    """Delete refusals older than that, and of their accounts the fine buckets that are out of use.

    The buckets of an account are pruned when its log grows, which of one that only refuses it never does.
    """
    values = {"days": days, "most": PRUNED_AT_ONCE, **KEPT}
    pruned: int = tx.execute(_PRUNE, values).scalar_one()
    return pruned
