"""What an account holds and what that is worth."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal


@dataclass(frozen=True)
class Position:
    """What is held of a symbol. Every figure has its age and source."""

    symbol: str
    quantity: Decimal
    """Negative when short."""
    average_entry_price: Decimal | None
    last_price: Decimal | None
    market_value: Decimal | None
    unrealized_profit: Decimal | None
    updated_at: datetime
    reconciled_at: datetime | None
    as_of: datetime
    source: str
    price_as_of: datetime | None
    price_source: str | None


@dataclass(frozen=True)
class Positions:
    account_id: str
    data: tuple[Position, ...]


@dataclass(frozen=True)
class Balances:
    """The account's money; all None before the broker was queried."""

    account_id: str
    currency: str | None
    cash: Decimal | None
    equity: Decimal | None
    buying_power: Decimal | None
    updated_at: datetime | None
    as_of: datetime | None
    source: str | None


@dataclass(frozen=True)
class Quote:
    """The latest price of a symbol that is known, with its age."""

    account_id: str
    symbol: str
    bid: Decimal | None
    ask: Decimal | None
    last: Decimal | None
    source: str | None
    quoted_at: datetime | None
    traded_at: datetime | None
    read_at: datetime | None
    age_seconds: float | None


@dataclass(frozen=True)
class Refresh:
    account_id: str
