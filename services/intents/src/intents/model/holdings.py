"""What an account holds, as its broker last reported it."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

BROKER, FILL = "broker", "fill"
"""Sources of a quantity or balance: the broker's report of the account, a fill that came since."""


@dataclass(frozen=True, slots=True)
class Position:
    """`reconciled_at` is when the broker last reported it, `updated_at` when it last changed.

    The average entry price is of that report; a fill since makes it unknown. The last price is the newest that is known
    of the symbol, and what the position is worth follows from it.
    """

    symbol: str
    quantity: Decimal
    average_entry_price: Decimal | None
    last_price: Decimal | None
    price_as_of: datetime | None
    price_source: str | None
    updated_at: datetime
    reconciled_at: datetime | None

    @property
    def source(self) -> str:
        return FILL if self.reconciled_at is None or self.reconciled_at < self.updated_at else BROKER

    @property
    def as_of(self) -> datetime:
        return self.updated_at if self.reconciled_at is None else max(self.updated_at, self.reconciled_at)

    @property
    def market_value(self) -> Decimal | None:
        return None if self.last_price is None else self.quantity * self.last_price

    @property
    def unrealized_profit(self) -> Decimal | None:
        if self.last_price is None or self.average_entry_price is None:
            return None
        return self.quantity * (self.last_price - self.average_entry_price)


@dataclass(frozen=True, slots=True)
class Balance:
    """Without an `updated_at` the broker was not queried yet."""

    currency: str | None = None
    cash: Decimal | None = None
    equity: Decimal | None = None
    buying_power: Decimal | None = None
    updated_at: datetime | None = None

    @property
    def as_of(self) -> datetime | None:
        return self.updated_at

    @property
    def source(self) -> str | None:
        return None if self.updated_at is None else BROKER
