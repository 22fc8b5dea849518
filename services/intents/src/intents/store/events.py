"""Events that concern no intent: appended to the same logs, in the same sequences."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Uuid, bindparam, text
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from chassis import tracing
from chassis.feed import FeedEvent
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

# Organizations take turns.
_WAITING_CANCELS = """
    SELECT position, event_id, event_type, payload, traceparent FROM (
        SELECT *, row_number() OVER (PARTITION BY payload ->> 'organization_id' ORDER BY position) AS turn
        FROM {source}_api.feed
        WHERE position > :consumed AND payload ->> 'cancel_open' = 'true' AND NOT (position = ANY(:begun))
    ) waiting ORDER BY turn, position LIMIT :most
"""


def feed_position(tx: Connection, source: str) -> int:
    """How far the feed was consumed."""
    found = tx.execute(text("SELECT position FROM intents.feed_position WHERE source = :source"), {"source": source})
    return found.scalar() or 0


def waiting_cancels(tx: Connection, source: str, consumed: int, begun: Iterable[int], most: int) -> list[FeedEvent]:
    """Events with `cancel_open` that the feed holds after what was consumed, without those that were begun."""
    values = {"consumed": consumed, "begun": list(begun), "most": most}
    return [FeedEvent(*row) for row in tx.execute(text(_WAITING_CANCELS.format(source=source)), values)]


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
