"""What controls refused: kept for the statistics only."""

import json
from uuid import uuid4

from intents import model
from intents.store.direct import Direct, Statement

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


def refuse(
    direct: Direct, account: model.Account, actor: model.Actor, command: model.Command, refusal: model.ControlRejected
) -> None:
    """Keep a refusal by controls for the statistics; it leaves no trace in the log."""
    direct.write(
        _REFUSE,
        (
            str(account.id),
            str(uuid4()),
            str(account.organization_id),
            command.type,
            refusal.symbol,
            *actor,
            json.dumps(refusal.reasons),
            refusal.moment,
            sorted({str(reason["code"]) for reason in refusal.reasons}),
        ),
    )
