"""When an account is read at its broker, and how many may be read at a broker at once.

An account that holds something is read often, an idle one rarely, each at a time of its own. Reads of one broker are
paid for in advance: each costs `1 / reads_per_second` seconds, and nothing is granted that is not paid for by a second
from now, or by the time of one read if that is longer. So however many accounts are due and however many reconcilers
there are, in any `t` seconds at most `(t + 1) * reads_per_second` reads begin, of a rate below one
`t * reads_per_second + 1`. Accounts with open orders are compared besides, and do not pay.
"""

from datetime import datetime, timedelta
from typing import NamedTuple

BURST_SECONDS = 1.0
ROUNDING = 1e-6  # of a read
JITTER = 0.25
FIRST_RETRY_SECONDS = 1.0
LONGEST_RETRY_SECONDS = 60.0


class ReadSchedule(NamedTuple):
    holding_seconds: float = 30.0
    idle_seconds: float = 3600.0
    reads_per_second: float = 50.0

    def seconds_until_next(self, *, holding: bool, chance: float) -> float:
        """`chance` from 0 to 1 spreads accounts that were read together."""
        return _spread(self.holding_seconds if holding else self.idle_seconds, chance)

    def seconds_until_retry(self, failures: int, chance: float) -> float:
        """After so many reads in a row that failed."""
        pause = FIRST_RETRY_SECONDS * 2.0 ** min(failures, 10)
        return _spread(min(LONGEST_RETRY_SECONDS, self.idle_seconds, pause), chance)


class Pace(NamedTuple):
    """Until when the reads of a broker are paid for."""

    paid_until: datetime

    def grant(self, now: datetime, reads_per_second: float, waiting: int) -> tuple[int, "Pace"]:
        """How many of those that wait may begin now, and the pace after them."""
        paid_until = max(self.paid_until, now)
        free = (now - paid_until).total_seconds() + max(BURST_SECONDS, 1 / reads_per_second)
        granted = max(0, min(waiting, int(free * reads_per_second + ROUNDING)))
        return granted, Pace(paid_until + timedelta(seconds=granted / reads_per_second))


def _spread(seconds: float, chance: float) -> float:
    return seconds * (1 - JITTER + 2 * JITTER * chance)
