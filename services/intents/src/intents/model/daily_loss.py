"""What an account has lost since its day began."""

from datetime import date, datetime
from decimal import Decimal
from typing import NamedTuple
from uuid import UUID

from control_rules import end_of_day, has_begun_after, wall_day


class DayEquity(NamedTuple):
    """What an account was worth when its day began, and whether it lost too much that day.

    `balance_at` is when the broker reported the last balance that was judged. The next day begins when `ends_at` has
    passed and a day of the account's zone has begun since.
    """

    account_id: UUID
    organization_id: UUID
    day: date
    equity: Decimal
    balance_at: datetime
    breached: bool
    ends_at: datetime


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
        """The first balance of a day begins it. Realised and unrealised profit are both in the equity."""
        before = self.before
        if before is None or has_begun_after(before.ends_at, self.updated_at, self.time_zone):
            return self._begun()
        day = before if self.updated_at < before.ends_at else self._prolonged(before)
        breached = day.breached or self._is_too_low(day.equity)
        return day._replace(balance_at=self.updated_at, breached=breached)

    def _begun(self) -> DayEquity:
        day, ends_at = wall_day(self.updated_at, self.time_zone), end_of_day(self.updated_at, self.time_zone)
        return DayEquity(self.account_id, self.organization_id, day, self.equity, self.updated_at, False, ends_at)

    def _prolonged(self, before: DayEquity) -> DayEquity:
        """A day that has ended where the account was, and goes on until midnight where it has been moved to.

        It would have begun anew with this equity: if that is higher, a fall is measured from there.
        """
        ends_at = end_of_day(self.updated_at, self.time_zone)
        return before._replace(equity=max(before.equity, self.equity), ends_at=ends_at)

    def begins_breach(self, after: DayEquity) -> bool:
        """Whether this balance is the day's first that is too low."""
        return after.breached and self.before is not None and not self.before.breached

    def _is_too_low(self, start: Decimal) -> bool:
        return self.max_daily_loss is not None and start - self.equity > self.max_daily_loss
