"""Orders by keyset: first the keys, from the one index that has them in order, then the orders of those keys.

What a page costs depends on its limit and on nothing else: the keys of each status are read from that status' own part
of an index, so that a page of open orders does not pass over those that have ended.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, TextClause, text

from intents import model
from intents.store.reads import ACTION_COLUMNS, INTENT_COLUMNS, to_action

NIL = UUID(int=0)  # before every id

_RANGE = {
    False: "(created_at, {id}) > (CAST(:created_at AS timestamptz), :id) AND created_at < CAST(:until AS timestamptz)",
    True: "(created_at, {id}) < (CAST(:created_at AS timestamptz), :id) AND created_at >= CAST(:since AS timestamptz)",
}
_OF_STATUSES = """
    SELECT found.created_at, found.id FROM unnest(CAST(:statuses AS text[])) AS wanted (status)
    CROSS JOIN LATERAL (
        SELECT created_at, id FROM intents.intent
        WHERE account_id = :account_id AND status = wanted.status {and_symbol} AND {range}
        ORDER BY created_at {direction}, id {direction} LIMIT :limit
    ) AS found ORDER BY created_at {direction}, id {direction} LIMIT :limit
"""
_OF_TAG = """
    SELECT created_at, intent_id AS id FROM intents.intent_tag WHERE account_id = :account_id AND tag = :tag AND {range}
    ORDER BY created_at {direction}, intent_id {direction} LIMIT :limit
"""
_OF_CLIENT_ID = """
    SELECT created_at, id FROM intents.intent WHERE account_id = :account_id AND client_id = :client_id AND {range}
"""
_OF_GROUP = """
    SELECT created_at, id FROM intents.intent WHERE account_id = :account_id AND group_id = :group_id AND {range}
    ORDER BY created_at {direction}, id {direction} LIMIT :limit
"""
# OFFSET 0 keeps the subquery apart: each intent is read by its key. The planner underestimates how many are open.
_ORDERS = """
    SELECT i.client_id, i.tags, i.extended_hours, i.spec AS intent_spec, i.created_at AS intent_created_at, {columns}
    FROM unnest(CAST(:ids AS uuid[])) AS wanted (id)
    CROSS JOIN LATERAL (SELECT * FROM intents.intent WHERE account_id = :account_id AND id = wanted.id OFFSET 0) AS i
    CROSS JOIN LATERAL (
        SELECT * FROM intents.action WHERE intent_id = i.id ORDER BY sequence DESC LIMIT 1
    ) AS a
    WHERE i.status = ANY(CAST(:statuses AS text[])) AND i.symbol = coalesce(:symbol, i.symbol)
      AND (:tag IS NULL OR :tag = ANY(i.tags)) AND (CAST(:group_id AS uuid) IS NULL OR i.group_id = :group_id)
    ORDER BY i.created_at {direction}, i.id {direction} LIMIT :limit
"""


def order_keys(
    tx: Connection, account_id: UUID, wanted: model.OrderFilter, after: model.OrderKey | None, limit: int
) -> list[model.OrderKey]:
    """The next keys of the index that fits the filter best; some of their orders may not pass all of it."""
    begin = (wanted.until or "infinity") if wanted.descending else (wanted.since or "-infinity")
    created_at, intent_id = after or (begin, NIL)
    values = {**_values(account_id, wanted, limit), "created_at": created_at, "id": intent_id}
    values |= {"since": wanted.since or "-infinity", "until": wanted.until or "infinity"}
    return [model.OrderKey(*row) for row in tx.execute(keys_statement(wanted), values)]


def keys_statement(wanted: model.OrderFilter) -> TextClause:
    if wanted.client_id:
        return _keys(_OF_CLIENT_ID, "id", descending=wanted.descending)
    if wanted.group_id:
        return _keys(_OF_GROUP, "id", descending=wanted.descending)
    if wanted.tag:
        return _keys(_OF_TAG, "intent_id", descending=wanted.descending)
    and_symbol = "AND symbol = :symbol" if wanted.symbol else ""
    return _keys(_OF_STATUSES.replace("{and_symbol}", and_symbol), "id", descending=wanted.descending)


@cache
def _keys(statement: str, id_column: str, *, descending: bool) -> TextClause:
    direction = "DESC" if descending else "ASC"
    return text(statement.format(range=_RANGE[descending].format(id=id_column), direction=direction))


def orders(
    tx: Connection, account_id: UUID, wanted: model.OrderFilter, keys: Sequence[model.OrderKey], limit: int
) -> list[model.Order]:
    """Those of the keys' orders that pass the filter, in its order."""
    values = {**_values(account_id, wanted, limit), "ids": [key.intent_id for key in keys]}
    return [_order(row) for row in tx.execute(_orders(descending=wanted.descending), values).mappings()]


@cache
def _orders(*, descending: bool) -> TextClause:
    columns = ", ".join([*(f"a.{name}" for name in ACTION_COLUMNS), *(f"i.{name}" for name in INTENT_COLUMNS)])
    return text(_ORDERS.format(columns=columns, direction="DESC" if descending else "ASC"))


def _values(account_id: UUID, wanted: model.OrderFilter, limit: int) -> dict[str, Any]:
    named = {"symbol": wanted.symbol, "tag": wanted.tag, "client_id": wanted.client_id, "group_id": wanted.group_id}
    return {"account_id": account_id, "statuses": [str(status) for status in wanted.statuses], "limit": limit, **named}


def _order(row: Any) -> model.Order:
    named = row["client_id"], row["tags"]
    return model.Order(*named, row["intent_spec"], row["intent_created_at"], to_action(row), row["extended_hours"])
