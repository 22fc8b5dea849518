"""What an account has lost since its day began."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import NamedTuple
from uuid import UUID

from control_rules import wall_day


class DayEquity(NamedTuple):
    """What an account was worth when its day began, and whether it lost too much that day.

    `balance_at` is when the broker reported the last balance that was judged.
    """

    account_id: UUID
    organization_id: UUID
    day: date
    equity: Decimal
    balance_at: datetime
    breached: bool


class NewBalance(NamedTuple):
    """A balance that was not judged yet. `before` is None if the account has none that was."""

    account_id: UUID
    organization_id: UUID
    time_zone: str
    equity: Decimal
    updated_at: datetime
    max_daily_loss: Decimal | None
    before: DayEquity | None

    def judged(self) -> DayEquity:
        """The first balance of a day begins it. Realised and unrealised profit are both in the equity.

        A day that has begun is not begun again, nor one before it: whoever moves the account to another time zone
        would otherwise forget what it has lost.
        """
        day = wall_day(self.updated_at, self.time_zone) or self.updated_at.astimezone(UTC).date()
        if self.before and day <= self.before.day:
            breached = self.before.breached or self._is_too_low(self.before.equity)
            return self.before._replace(balance_at=self.updated_at, breached=breached)
        return DayEquity(self.account_id, self.organization_id, day, self.equity, self.updated_at, breached=False)

    def begins_breach(self, after: DayEquity) -> bool:
        """Whether this balance is the day's first that is too low."""
        return after.breached and self.before is not None and not self.before.breached

    def _is_too_low(self, start: Decimal) -> bool:
        return self.max_daily_loss is not None and start - self.equity > self.max_daily_loss
