"""What an account holds, as the reconciler saved it: reads for the API."""

from dataclasses import fields
from uuid import UUID

from sqlalchemy import Connection, text

from intents.model.holdings import Balance, Position

_BALANCE_COLUMNS = ", ".join(column.name for column in fields(Balance))
_HELD = "FROM intents.position WHERE account_id = :account_id AND quantity <> 0"
_POSITIONS = text("""
    SELECT held.symbol, quantity, average_entry_price, price.price AS last_price, price.priced_at AS price_as_of,
           price.source AS price_source, updated_at, reconciled_at
    FROM intents.position held
    LEFT JOIN LATERAL (SELECT * FROM intents_api.reference_price known WHERE known.account_id = held.account_id
                       AND known.symbol = held.symbol LIMIT 1) price ON true
    WHERE held.account_id = :account_id AND quantity <> 0 ORDER BY held.symbol
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
