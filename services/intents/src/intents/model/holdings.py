"""What an account holds, as its broker last reported it."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

BROKER, FILL, QUOTE = "broker", "fill", "quote"
"""Sources of a figure: the broker's report of the account, a fill that came since, the market's price."""


@dataclass(frozen=True, slots=True)
class Position:
    """`reconciled_at` is when the broker last reported it, `updated_at` when it last changed.

    The average entry price is of that report; a fill since makes it unknown. Of the two prices, the one that came with
    the position and the market's, the newer counts, and what the position is worth follows from it.
    """

    symbol: str
    quantity: Decimal
    average_entry_price: Decimal | None
    position_price: Decimal | None
    position_price_at: datetime | None
    position_price_source: str | None
    quote_price: Decimal | None
    quote_price_at: datetime | None
    updated_at: datetime
    reconciled_at: datetime | None

    @property
    def source(self) -> str:
        return FILL if self.reconciled_at is None or self.reconciled_at < self.updated_at else BROKER

    @property
    def as_of(self) -> datetime:
        return self.updated_at if self.reconciled_at is None else max(self.updated_at, self.reconciled_at)

    @property
    def _is_quoted(self) -> bool:
        if self.quote_price is None or self.quote_price_at is None:
            return False
        return self.position_price_at is None or self.quote_price_at >= self.position_price_at

    @property
    def last_price(self) -> Decimal | None:
        return self.quote_price if self._is_quoted else self.position_price

    @property
    def price_as_of(self) -> datetime | None:
        return self.quote_price_at if self._is_quoted else self.position_price_at

    @property
    def price_source(self) -> str | None:
        return QUOTE if self._is_quoted else self.position_price_source

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
