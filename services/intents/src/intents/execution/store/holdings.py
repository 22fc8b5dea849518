"""What a broker reports that an account holds: positions, with an event for each that has changed, and the balance."""

import json
from typing import Any, NamedTuple
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
_IS_HELD = """
    (CAST(:broker_account AS text) IS NULL OR EXISTS (
        SELECT FROM intents.broker_account WHERE account_id = :account_id AND held_account = :broker_account))"""
# What the broker does not show any more is flat. Where it is not clear which fills a report contains, the position
# stays as it is. Logged is what differs, and what has moved since the broker last reported it; not what moved
# meanwhile, which is no report of the broker's.
_POSITIONS = f"""
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
        FROM given LEFT JOIN beyond USING (symbol) WHERE symbol NOT IN (SELECT symbol FROM unclear) AND {_IS_HELD}
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
    ), logged AS (
        INSERT INTO intents.account_event (account_id, sequence, id, type, payload, occurred_at)
        SELECT :account_id, head.last_sequence - (SELECT count(*) FROM news) + place, gen_random_uuid(),
               'BROKER_POSITION', jsonb_build_object('symbol', symbol, 'quantity', quantity::text,
                                                     'last_price', last_price::text), :read_at
        FROM news CROSS JOIN head ORDER BY place
        RETURNING sequence
    )
    SELECT {_IS_HELD} AS is_held, (SELECT max(sequence) FROM logged) AS head
"""  # noqa: S608 - a constant
_BALANCE = f"""
    INSERT INTO intents.balance (account_id, currency, cash, equity, buying_power, updated_at)
    SELECT :account_id, :currency, :cash, :equity, :buying_power, :read_at WHERE {_IS_HELD}
    ON CONFLICT (account_id) DO UPDATE SET currency = excluded.currency, cash = excluded.cash,
        equity = excluded.equity, buying_power = excluded.buying_power, updated_at = excluded.updated_at
"""
# A read that was requested while this one was under way stands.
_RECONCILED = f"""
    UPDATE intents.broker_account SET reconciled_at = :read_at, read_failures = 0, awaits_reading = false,
        next_read_at = CASE WHEN {NOT_REQUESTED} AND (attempted_at IS NULL OR attempted_at <= :read_at)
                            THEN now() + make_interval(secs => :seconds) ELSE next_read_at END
    WHERE account_id = :account_id AND (CAST(:broker_account AS text) IS NULL OR held_account = :broker_account)
"""  # noqa: S608 - a constant
# Heads before positions, as everywhere. One message: the log is not locked while its sender waits for a processor.
_LOCK = LOCK_EXISTING.text
_SAVE = text(f"{_LOCK}; {_RECONCILED}; {_BALANCE}; {_POSITIONS}")


class SavedHoldings(NamedTuple):
    is_held: bool
    """Whether the account at the broker is the one of which the holdings count; otherwise nothing is saved."""
    head: int | None
    """The new head of the account's log, if a position has changed."""


def save_holdings(
    tx: Connection,
    account_id: UUID,
    holdings: Holdings,
    next_read_seconds: float = 0.0,
    broker_account: str | None = None,
) -> SavedHoldings:
    """`broker_account`: of which they are; None if that is sure to be the one whose holdings count."""
    values: dict[str, Any] = {"account_id": account_id, "read_at": holdings.began_at, "seconds": next_read_seconds}
    values |= {"broker_account": broker_account, **holdings.balance._asdict(), **_reported(holdings)}
    return SavedHoldings(*tx.execute(_SAVE, values).one())


def _reported(holdings: Holdings) -> dict[str, Any]:
    return {
        "positions": json.dumps([position._asdict() for position in holdings.positions], default=str),
        "symbols": [position.symbol for position in holdings.positions],
        "filled": json.dumps(holdings.filled, default=str),
        "keys": list(holdings.filled),
        "in_other_account": list(holdings.in_other_account),
        "sequence": holdings.sequence,
    }
