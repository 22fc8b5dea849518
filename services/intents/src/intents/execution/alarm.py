"""When a loop has to turn next: at the earliest moment that anybody has set."""

import math
import threading
import time


class Alarm:
    """Set by many threads, waited for by one."""

    def __init__(self) -> None:
        self._at = math.inf
        self._earlier = threading.Condition()

    def set(self, seconds: float = 0.0) -> None:
        """Ring in so many seconds, unless it rings before."""
        at = time.monotonic() + seconds
        with self._earlier:
            if at < self._at:
                self._at = at
                self._earlier.notify()

    def wait(self, at_most: float) -> bool:
        """Until it rings, or for so many seconds; whether it has rung."""
        ends = time.monotonic() + at_most
        with self._earlier:
            while (left := min(self._at, ends) - time.monotonic()) > 0:
                self._earlier.wait(left)
        return self.seconds <= 0

    def clear(self) -> None:
        """Whatever was set is off: what it was set for is done next."""
        with self._earlier:
            self._at = math.inf

    @property
    def seconds(self) -> float:
        """Until it rings."""
        return self._at - time.monotonic()
