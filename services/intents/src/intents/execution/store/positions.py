"""What a position is: what the broker reported, and what was filled of our orders beyond that report.

With a report it is known how much of each order it contains (`model.known_orders.Holdings`). A fill is therefore
counted once, whether it is recorded before or after the report is saved, and no clock is compared with another:

- A report that is saved gets what is recorded of each order beyond it. What it contains and is not recorded yet is kept
  with it (`unrecorded_fills`: the filled quantity of each such order, by its key).
- A fill that is recorded moves the position by what is beyond `unrecorded_fills`; of an order that had ended before the
  report was read by nothing, since the report contains all of it.

Both are done under the head of the account's log, so that neither misses the other.
"""

from intents.execution.store.expressions import ENDED_SQL, PERHAPS_SENT, UNENDED
from intents.execution.store.pairs import to_be_adopted

# By how much each position of $3 moves. `held` is the row as it is under its lock.
MOVED = f"""
    SELECT coalesce(sum(sign(fill.moved) * (greatest(fill.before + abs(fill.moved), contained.quantity)
                                            - greatest(fill.before, contained.quantity))), 0) AS moved
    FROM jsonb_to_recordset(given.fills) AS fill(key text, before numeric, moved numeric)
    CROSS JOIN LATERAL (
        SELECT coalesce((held.unrecorded_fills ->> fill.key)::numeric, 0) AS quantity) contained
    WHERE (SELECT o.status IN ({ENDED_SQL}) AND o.updated_at <= held.reconciled_at FROM intents.broker_order o
           WHERE o.account_id = given.account_id AND o.client_order_id = fill.key) IS NOT TRUE
"""  # noqa: S608 - a constant

# Of each order that the report may contain: what is recorded, and what the report contains; NULL if that is not known.
_RECORDED = f"""
    SELECT o.client_order_id AS key, i.symbol, CASE i.order_side WHEN 'BUY' THEN 1 ELSE -1 END AS side,
           o.filled_quantity, (CAST(:filled AS jsonb) ->> o.client_order_id)::numeric AS contained
    FROM (
        SELECT account_id, client_order_id, intent_id, filled_quantity FROM intents.broker_order
        WHERE account_id = :account_id AND client_order_id = ANY(:keys)
        UNION
        SELECT account_id, client_order_id, intent_id, filled_quantity FROM intents.broker_order o
        WHERE account_id = :account_id AND (({UNENDED}) OR {PERHAPS_SENT}) AND client_order_id <> ALL(:in_other_account)
    ) o JOIN intents.intent i ON i.account_id = o.account_id AND i.id = o.intent_id
"""  # noqa: S608 - a constant

# CTEs of a statement that saves a report: `beyond` is what is recorded beyond it by symbol, with what it contains that
# is not recorded; `unclear` are the symbols of orders of which it is not known what the report contains, because they
# were filled or sent meanwhile, or have not been found yet as legs of others.
BEYOND = f"""
    recorded AS MATERIALIZED ({_RECORDED}), beyond AS (
        SELECT symbol, sum(side * greatest(filled_quantity - contained, 0)) AS moved,
               coalesce(jsonb_object_agg(key, contained) FILTER (WHERE contained > filled_quantity), '{{}}')
                   AS unrecorded_fills
        FROM recorded GROUP BY symbol
    ), unclear AS (
        SELECT symbol FROM recorded WHERE contained IS NULL
        UNION
        {to_be_adopted(":account_id")}
        UNION
        SELECT e.payload ->> 'symbol' FROM intents.account_event e
        WHERE e.account_id = :account_id AND e.sequence > :sequence AND e.type = 'BROKER_TRADE' AND NOT EXISTS (
            SELECT FROM intents.broker_order o
            WHERE o.account_id = e.account_id AND o.intent_id = e.intent_id
              AND o.broker_order_id = e.payload ->> 'broker_order_id'
              AND (o.client_order_id = ANY(:keys) OR o.client_order_id = ANY(:in_other_account)))
    )
"""  # noqa: S608 - a constant
