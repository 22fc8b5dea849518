"""What a broker reports that an account holds: positions, with an event for each that has changed, and the balance."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text

from intents.brokers.protocol import Balance, Position
from intents.execution.store.expressions import NOT_REQUESTED, UNCONFIRMED
from intents.store.account_head import LOCK_EXISTING, take_sequences

_TAKE_SEQUENCES = take_sequences("""
    SELECT CAST(:account_id AS uuid) AS account_id, NULL::uuid AS organization_id, count(*) AS sequences
    FROM news HAVING count(*) > 0
""")
# What the broker does not show any more is flat. What a fill has changed since the broker was queried stays: the next
# reconciliation will see both. Logged is what differs, and what has moved since the broker last reported it.
_POSITIONS = text(f"""
    WITH before AS MATERIALIZED (
        SELECT symbol, quantity, {UNCONFIRMED} AS unconfirmed
        FROM intents.position WHERE account_id = :account_id
    ), given AS (
        SELECT * FROM jsonb_to_recordset(CAST(:positions AS jsonb)) AS given(symbol text, quantity numeric,
            last_price numeric, average_entry_price numeric, market_value numeric, unrealized_profit numeric)
        UNION ALL
        SELECT symbol, 0, NULL, NULL, 0, 0 FROM before
        WHERE (quantity <> 0 OR unconfirmed) AND NOT (symbol = ANY(:symbols))
    ), saved AS (
        INSERT INTO intents.position AS held (account_id, symbol, quantity, last_price, updated_at,
            average_entry_price, market_value, unrealized_profit, reconciled_at, price_at, price_source)
        SELECT :account_id, symbol, quantity, last_price, :read_at, average_entry_price, market_value,
               unrealized_profit, :read_at, CASE WHEN last_price IS NOT NULL THEN CAST(:read_at AS timestamptz) END,
               CASE WHEN last_price IS NOT NULL THEN 'broker' END
        FROM given ORDER BY symbol
        ON CONFLICT (account_id, symbol) DO UPDATE SET quantity = excluded.quantity,
            last_price = coalesce(excluded.last_price, held.last_price),
            price_at = coalesce(excluded.price_at, held.price_at),
            price_source = coalesce(excluded.price_source, held.price_source),
            average_entry_price = excluded.average_entry_price, market_value = excluded.market_value,
            unrealized_profit = excluded.unrealized_profit, reconciled_at = excluded.reconciled_at
            WHERE held.updated_at <= excluded.reconciled_at
        RETURNING symbol, quantity, last_price
    ), news AS (
        SELECT saved.*, row_number() OVER (ORDER BY symbol) AS place FROM saved LEFT JOIN before USING (symbol)
        WHERE before.unconfirmed OR saved.quantity <> coalesce(before.quantity, 0)
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
    UPDATE intents.broker_account SET reconciled_at = :read_at, read_failures = 0,
        next_read_at = CASE WHEN {NOT_REQUESTED} AND (attempted_at IS NULL OR attempted_at <= :read_at)
                            THEN now() + make_interval(secs => :seconds) ELSE next_read_at END
    WHERE account_id = :account_id
""")  # noqa: S608 - a constant


def save_holdings(
    tx: Connection,
    account_id: UUID,
    positions: Sequence[Position],
    balance: Balance,
    read_at: datetime,
    next_read_seconds: float = 0.0,
) -> int | None:
    """The new head of the account's log, if a position has changed. `read_at` is before the broker was queried."""
    values: dict[str, Any] = {"account_id": account_id, "read_at": read_at}
    shown = json.dumps([position._asdict() for position in positions], default=str)
    symbols = [position.symbol for position in positions]
    tx.execute(LOCK_EXISTING, values)  # heads before positions, as everywhere
    events = tx.execute(_POSITIONS, values | {"positions": shown, "symbols": symbols})
    sequences = [row.sequence for row in events]
    tx.execute(_BALANCE, values | balance._asdict())
    tx.execute(_RECONCILED, values | {"seconds": next_read_seconds})
    return max(sequences, default=None)
