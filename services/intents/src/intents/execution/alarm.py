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

    def wait(self, at_most: float) -> None:
        """Until it rings, or for so many seconds; then whatever was set is off."""
        self.set(at_most)
        with self._earlier:
            while (left := self.seconds) > 0:
                self._earlier.wait(left)
            self._at = math.inf

    @property
    def seconds(self) -> float:
        """Until it rings."""
        return self._at - time.monotonic()
