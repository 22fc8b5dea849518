"""What an account holds, as the reconciler saved it: reads for the API."""

from dataclasses import fields
from uuid import UUID

from sqlalchemy import Connection, text

from intents.model.holdings import Balance, Position

_BALANCE_COLUMNS = ", ".join(column.name for column in fields(Balance))
_HELD = "FROM intents.position WHERE account_id = :account_id AND quantity <> 0"
_POSITIONS = text("""
    SELECT symbol, quantity, average_entry_price, last_price AS position_price, price_at AS position_price_at,
           price_source AS position_price_source, coalesce(last, (bid + ask) / 2) AS quote_price,
           CASE WHEN last IS NOT NULL THEN traded_at ELSE quoted_at END AS quote_price_at, updated_at, reconciled_at
    FROM intents.position LEFT JOIN intents.quote USING (account_id, symbol)
    WHERE account_id = :account_id AND quantity <> 0 ORDER BY symbol
""")
_COUNT = text(f"SELECT count(*) {_HELD}")
_BALANCE = text(f"SELECT {_BALANCE_COLUMNS} FROM intents.balance WHERE account_id = :account_id")  # noqa: S608


def position_count(tx: Connection, account_id: UUID) -> int:
    """How many rows `positions` gives."""
    count: int = tx.execute(_COUNT, {"account_id": account_id}).scalar_one()
    return count


def positions(tx: Connection, account_id: UUID) -> list[Position]:
    return [Position(**row) for row in tx.execute(_POSITIONS, {"account_id": account_id}).mappings()]


def balance(tx: Connection, account_id: UUID) -> Balance:
    row = tx.execute(_BALANCE, {"account_id": account_id}).mappings().one_or_none()
    return Balance(**row) if row else Balance()
