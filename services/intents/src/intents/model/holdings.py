"""What an account holds, as its broker last reported it."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class Position:
    """`reconciled_at` is when the broker last reported it, `updated_at` when it last changed."""

    symbol: str
    quantity: Decimal
    average_entry_price: Decimal | None
    last_price: Decimal | None
    market_value: Decimal | None
    unrealized_profit: Decimal | None
    updated_at: datetime
    reconciled_at: datetime | None


@dataclass(frozen=True, slots=True)
class Balance:
    """Without an `updated_at` the broker was not queried yet."""

    currency: str | None = None
    cash: Decimal | None = None
    equity: Decimal | None = None
    buying_power: Decimal | None = None
    updated_at: datetime | None = None
