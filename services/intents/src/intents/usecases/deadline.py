"""By when a request is to be answered, and so how long it may wait for others.

It counts from the request's arrival: what it has waited for a thread it cannot wait for a lock as well.
"""

import time
from typing import NamedTuple, Self

# Longer than Postgres lets a frozen holder of a lock keep it (five seconds), shorter than a stopping web worker waits
# for its requests (seven) and the ingress for an answer (fifteen).
TIME_LIMIT_S = 6.0
LEAST_S = 0.1  # a lock that is nearly free is worth a moment, however late it is


class Deadline(NamedTuple):
    """A moment of this process's monotonic clock, which goes on while the process is stopped."""

    at: float

    @classmethod
    def of_request(cls, arrived: float | None = None) -> Self:
        """Of one that arrived then, by the same clock, or now."""
        return cls((time.monotonic() if arrived is None else arrived) + TIME_LIMIT_S)

    @classmethod
    def after(cls, seconds: float) -> Self:
        """So many seconds from now."""
        return cls(time.monotonic() + seconds)

    @property
    def left_s(self) -> float:
        return max(self.at - time.monotonic(), LEAST_S)
