"""Events that concern no intent: appended to the same logs, in the same sequences."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Uuid, bindparam, text
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from chassis import tracing
from intents.store.account_head import take_sequences

_TAKE_ONE_FOR_EACH = take_sequences("""
    SELECT account_id, CAST(:organization_id AS uuid) AS organization_id, 1 AS sequences
    FROM unnest(:account_ids) account_id
""")
_EVENT_FOR_ALL = text(f"""
    WITH head AS ({_TAKE_ONE_FOR_EACH})
    INSERT INTO intents.account_event (account_id, organization_id, sequence, id, type, payload, traceparent,
                                      occurred_at)
    SELECT account_id, organization_id, last_sequence, :id, :type, :payload, :traceparent, :occurred_at FROM head
    RETURNING account_id, sequence
""").bindparams(bindparam("payload", type_=JSONB), bindparam("account_ids", type_=ARRAY(Uuid)))  # noqa: S608 - a constant


def append_to_all(
    tx: Connection, organization_id: UUID, account_ids: Sequence[UUID], event: Mapping[str, Any]
) -> dict[UUID, int]:
    """The same event, which concerns no intent, in the log of each account; the sequence it has there.

    The accounts are the organization's. Of one that was deleted since the event the organization can no longer be read.
    """
    values = {
        "organization_id": organization_id,
        "account_ids": sorted(account_ids),
        "traceparent": tracing.traceparent(),
    }
    return {row.account_id: row.sequence for row in tx.execute(_EVENT_FOR_ALL, {**values, **event})}
