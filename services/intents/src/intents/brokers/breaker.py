"""A circuit breaker for each way to a broker: when it is down, nobody waits for time-outs to find that out again.

Each pause is a quarter of the outage so far: however long the broker was away, the way is open again before another
quarter of that time has passed, and a long outage costs few tries.
"""

import threading
import time
from collections.abc import Callable

FAILURES = 5  # in a row, before the circuit opens
PAUSE_PART = 0.25
SHORTEST_PAUSE_SECONDS = 0.25
LONGEST_PAUSE_SECONDS = 15.0
LONGEST_TRY_SECONDS = 15.0  # after which whoever passed the half-open circuit will not tell how it went

CLOSED, HALF_OPEN, OPEN = 0, 1, 2
_WORDS = ("closed", "half_open", "open")


class Breaker:
    """Closed: all may pass. Open: nobody, for a while. Half open: one, whose fate decides."""

    def __init__(
        self, changed: Callable[[int], None] = lambda _state: None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._changed, self._clock = changed, clock
        self._lock = threading.Lock()
        self._failures, self._failing_from, self._until = 0, 0.0, 0.0
        self.state = CLOSED
        changed(CLOSED)

    @property
    def word(self) -> str:
        return _WORDS[self.state]

    def wait(self) -> float:
        """Seconds until the next try; 0 means that the caller may pass, and must then tell how it went."""
        with self._lock:
            if self.state == CLOSED:
                return 0.0
            left = self._until - self._clock()
            if left > 0:
                return left if self.state == OPEN else min(left, self._pause())
            self._set(HALF_OPEN)
            self._until = self._clock() + LONGEST_TRY_SECONDS
            return 0.0

    def succeeded(self) -> None:
        if self.state == CLOSED and self._failures == 0:
            return
        with self._lock:
            self._failures = 0
            self._set(CLOSED)

    def failed(self) -> float:
        """Seconds until the next try; 0 while the circuit is still closed."""
        with self._lock:
            self._failures += 1
            if self._failures == 1:
                self._failing_from = self._clock()
            if self._failures < FAILURES:
                return 0.0
            pause = self._pause()
            self._until = self._clock() + pause
            self._set(OPEN)
            return pause

    def let_another_try(self) -> None:
        """Of one who passed and then had nothing to try: the next may pass instead."""
        with self._lock:
            if self.state == HALF_OPEN:
                self._until = self._clock()
                self._set(OPEN)

    def _pause(self) -> float:
        outage = self._clock() - self._failing_from
        return min(LONGEST_PAUSE_SECONDS, max(SHORTEST_PAUSE_SECONDS, PAUSE_PART * outage))

    def _set(self, state: int) -> None:
        if self.state != state:
            self.state = state
            self._changed(state)
