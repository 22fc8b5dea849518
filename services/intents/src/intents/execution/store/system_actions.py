"""Intents for which the system itself submits a command.

Of a deleted account nothing can be canceled: left in, enough of them would fill every batch. A cancel that the broker
rejected is not repeated at once: the order is left alone for a minute.
"""

from typing import NamedTuple
from uuid import UUID

from sqlalchemy import Connection, text

NOT_CANCELED_LATELY = """
    NOT EXISTS (
        SELECT FROM intents.action a WHERE a.intent_id = i.id
           AND a.type = 'CANCEL' AND a.actor_type = 'system' AND a.created_at > now() - interval '1 minute')"""
_STALE = text(f"""
    SELECT i.account_id, i.id AS intent_id
    FROM controls_api.symbol_time t
    JOIN intents.intent i ON i.account_id = t.account_id AND i.symbol = t.symbol
    JOIN accounts_api.account ON account.id = i.account_id
    WHERE t.stale_order_millis IS NOT NULL AND i.status IN ('ACCEPTED', 'PARTIALLY_FILLED')
      AND i.accepted_at < now() - t.stale_order_millis * interval '1 millisecond' AND {NOT_CANCELED_LATELY}
    LIMIT :limit
""")  # noqa: S608 - a constant
_OVERORDERED = text(f"""
    SELECT i.account_id, i.id AS intent_id, (
        SELECT count(*) FROM intents.action a
        WHERE a.intent_id = i.id AND a.type = 'REPLACE' AND a.actor_type = 'system'
    ) AS replacements
    FROM intents.intent i
    JOIN accounts_api.account ON account.id = i.account_id
    WHERE i.overordered AND i.status IN ('ACCEPTED', 'PARTIALLY_FILLED') AND {NOT_CANCELED_LATELY}
    LIMIT :limit
""")  # noqa: S608 - a constant


class StaleOrder(NamedTuple):
    account_id: UUID
    intent_id: UUID


class OverorderedIntent(NamedTuple):
    account_id: UUID
    intent_id: UUID
    replacements: int
    """How many of them the system has made already."""


def stale_orders(tx: Connection, limit: int) -> list[StaleOrder]:
    """Intents whose order has been open for longer than the symbol's control allows."""
    return [StaleOrder(**row) for row in tx.execute(_STALE, {"limit": limit}).mappings()]


def overordered(tx: Connection, limit: int) -> list[OverorderedIntent]:
    """Intents whose order can fill more than they still ask for."""
    return [OverorderedIntent(**row) for row in tx.execute(_OVERORDERED, {"limit": limit}).mappings()]
