"""What an account holds, as the reconciler saved it: reads for the API."""

from dataclasses import fields
from uuid import UUID

from sqlalchemy import Connection, text

from intents.model.holdings import Balance, Position


def _columns(of: type[Position] | type[Balance]) -> str:
    return ", ".join(column.name for column in fields(of))


_POSITION_COLUMNS, _BALANCE_COLUMNS = _columns(Position), _columns(Balance)
_HELD = "FROM intents.position WHERE account_id = :account_id AND quantity <> 0"
_POSITIONS = text(f"SELECT {_POSITION_COLUMNS} {_HELD} ORDER BY symbol")
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
