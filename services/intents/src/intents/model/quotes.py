"""A price, where it comes from and how old it is."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class Quote:
    """Bid and ask are of `quoted_at`, `last` is of `traded_at`; all are null while nobody has read them.

    `read_at` is when the broker was queried for them, `now` when they were read here.
    """

    symbol: str
    bid: Decimal | None
    ask: Decimal | None
    last: Decimal | None
    source: str | None
    quoted_at: datetime | None
    traded_at: datetime | None
    read_at: datetime | None
    now: datetime

    @property
    def age_seconds(self) -> float | None:
        """Of the newest of its prices."""
        moments = [moment for moment in (self.quoted_at, self.traded_at) if moment is not None]
        return max(0.0, (self.now - max(moments)).total_seconds()) if moments else None

    def was_read_within(self, seconds: float) -> bool:
        return self.read_at is not None and (self.now - self.read_at).total_seconds() <= seconds
