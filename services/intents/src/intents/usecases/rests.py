"""What a batch leaves to others: rests between commands that are written one by one."""

import math
import time
from dataclasses import dataclass
from typing import Self

REST_FACTOR, LONGEST_REST_S, MOST_REST_S = 4.0, 0.1, 4.0
RESTS_END_S = 5.5  # after it began: a stopping web worker waits seven seconds, and an ingress fifteen from the arrival


@dataclass(frozen=True)
class Rests:
    """Between commands that are written one by one: time that the request has beyond its own.

    What an order costs behind this process comes right after it: without rests a hundred would fill every processor.
    """

    longest_s: float
    until: float = math.inf

    @classmethod
    def among(cls, commands: int) -> Self:
        """As long after the last of them as after the first."""
        return cls(min(LONGEST_REST_S, MOST_REST_S / commands), time.monotonic() + RESTS_END_S)

    def after(self, took_s: float) -> None:
        time.sleep(max(0.0, min(REST_FACTOR * took_s, self.longest_s, self.until - time.monotonic())))


NO_RESTS = Rests(0.0)
