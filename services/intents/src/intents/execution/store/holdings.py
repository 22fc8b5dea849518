"""What a broker reports that an account holds: positions, with an event for each that has changed, and the balance."""

import json
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text

from intents.execution.model.known_orders import Holdings
from intents.execution.store.expressions import NOT_REQUESTED, UNCONFIRMED
from intents.execution.store.positions import BEYOND
from intents.store.account_head import LOCK_EXISTING, take_sequences

_TAKE_SEQUENCES = take_sequences("""
    SELECT CAST(:account_id AS uuid) AS account_id, NULL::uuid AS organization_id, count(*) AS sequences
    FROM news HAVING count(*) > 0
""")
# What the broker does not show any more is flat. Where it is not clear which fills a report contains, the position
# stays as it is. Logged is what differs, and what has moved since the broker last reported it; not what moved
# meanwhile, which is no report of the broker's.
_POSITIONS = text(f"""
    WITH {BEYOND}, before AS MATERIALIZED (
        SELECT symbol, quantity, {UNCONFIRMED} AS unconfirmed
        FROM intents.position WHERE account_id = :account_id
    ), given AS (
        SELECT * FROM jsonb_to_recordset(CAST(:positions AS jsonb)) AS given(symbol text, quantity numeric,
            last_price numeric, average_entry_price numeric, market_value numeric, unrealized_profit numeric)
        UNION ALL
        SELECT symbol, 0, NULL, NULL, 0, 0 FROM (
            SELECT symbol FROM before WHERE quantity <> 0 OR unconfirmed
            UNION SELECT symbol FROM beyond WHERE moved <> 0 OR unrecorded_fills <> '{{}}'
        ) flat WHERE NOT (symbol = ANY(:symbols))
    ), reported AS (
        SELECT symbol, quantity + coalesce(moved, 0) AS quantity, coalesce(moved, 0) <> 0 AS has_moved,
               coalesce(unrecorded_fills, '{{}}') AS unrecorded_fills, last_price, average_entry_price, market_value,
               unrealized_profit
        FROM given LEFT JOIN beyond USING (symbol) WHERE symbol NOT IN (SELECT symbol FROM unclear)
    ), saved AS (
        INSERT INTO intents.position AS held (account_id, symbol, quantity, last_price, updated_at,
            average_entry_price, market_value, unrealized_profit, reconciled_at, price_at, price_source,
            unrecorded_fills)
        SELECT :account_id, symbol, quantity, last_price, CASE WHEN has_moved THEN clock_timestamp() ELSE :read_at END,
               CASE WHEN NOT has_moved THEN average_entry_price END, CASE WHEN NOT has_moved THEN market_value END,
               CASE WHEN NOT has_moved THEN unrealized_profit END, :read_at,
               CASE WHEN last_price IS NOT NULL THEN CAST(:read_at AS timestamptz) END,
               CASE WHEN last_price IS NOT NULL THEN 'broker' END, unrecorded_fills
        FROM reported ORDER BY symbol
        ON CONFLICT (account_id, symbol) DO UPDATE SET quantity = excluded.quantity,
            updated_at = CASE WHEN excluded.updated_at > excluded.reconciled_at THEN excluded.updated_at
                              ELSE held.updated_at END,
            unrecorded_fills = excluded.unrecorded_fills,
            last_price = coalesce(excluded.last_price, held.last_price),
            price_at = coalesce(excluded.price_at, held.price_at),
            price_source = coalesce(excluded.price_source, held.price_source),
            average_entry_price = excluded.average_entry_price, market_value = excluded.market_value,
            unrealized_profit = excluded.unrealized_profit, reconciled_at = excluded.reconciled_at
            WHERE held.reconciled_at IS NULL OR held.reconciled_at <= excluded.reconciled_at
        RETURNING symbol, quantity, last_price, updated_at > reconciled_at AS has_moved
    ), news AS (
        SELECT saved.*, row_number() OVER (ORDER BY symbol) AS place FROM saved LEFT JOIN before USING (symbol)
        WHERE NOT has_moved AND (before.unconfirmed OR saved.quantity <> coalesce(before.quantity, 0))
    ), head AS (
        {_TAKE_SEQUENCES}
    )
    INSERT INTO intents.account_event (account_id, sequence, id, type, payload, occurred_at)
    SELECT :account_id, head.last_sequence - (SELECT count(*) FROM news) + place, gen_random_uuid(), 'BROKER_POSITION',
           jsonb_build_object('symbol', symbol, 'quantity', quantity::text, 'last_price', last_price::text), :read_at
    FROM news CROSS JOIN head ORDER BY place
    RETURNING sequence
""")  # noqa: S608 - a constant
_BALANCE = text("""
    INSERT INTO intents.balance (account_id, currency, cash, equity, buying_power, updated_at)
    VALUES (:account_id, :currency, :cash, :equity, :buying_power, :read_at)
    ON CONFLICT (account_id) DO UPDATE SET currency = excluded.currency, cash = excluded.cash,
        equity = excluded.equity, buying_power = excluded.buying_power, updated_at = excluded.updated_at
""")
# A read that was requested while this one was under way stands.
_RECONCILED = text(f"""
    UPDATE intents.broker_account SET reconciled_at = :read_at, read_failures = 0, awaits_reading = false,
        next_read_at = CASE WHEN {NOT_REQUESTED} AND (attempted_at IS NULL OR attempted_at <= :read_at)
                            THEN now() + make_interval(secs => :seconds) ELSE next_read_at END
    WHERE account_id = :account_id
""")  # noqa: S608 - a constant


def save_holdings(tx: Connection, account_id: UUID, holdings: Holdings, next_read_seconds: float = 0.0) -> int | None:
    """The new head of the account's log, if a position has changed."""
    values: dict[str, Any] = {"account_id": account_id, "read_at": holdings.began_at}
    tx.execute(LOCK_EXISTING, values)  # heads before positions, as everywhere
    events = tx.execute(_POSITIONS, values | _reported(holdings))
    sequences = [row.sequence for row in events]
    tx.execute(_BALANCE, values | holdings.balance._asdict())
    tx.execute(_RECONCILED, values | {"seconds": next_read_seconds})
    return max(sequences, default=None)


def _reported(holdings: Holdings) -> dict[str, Any]:
    return {
        "positions": json.dumps([position._asdict() for position in holdings.positions], default=str),
        "symbols": [position.symbol for position in holdings.positions],
        "filled": json.dumps(holdings.filled, default=str),
        "keys": list(holdings.filled),
        "in_other_account": list(holdings.in_other_account),
        "sequence": holdings.sequence,
    }
