"""A circuit breaker for each way to a broker: when it is down, nobody waits for time-outs to find that out again."""

import threading
import time
from collections.abc import Callable

FAILURES = 5  # in a row, before the circuit opens
FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 15.0

CLOSED, HALF_OPEN, OPEN = 0, 1, 2
_WORDS = ("closed", "half_open", "open")


class Breaker:
    """Closed: all may pass. Open: nobody, for a while. Half open: one, whose fate decides."""

    def __init__(
        self, changed: Callable[[int], None] = lambda _state: None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._changed, self._clock = changed, clock
        self._lock = threading.Lock()
        self._failures, self._pause, self._until = 0, FIRST_PAUSE_SECONDS, 0.0
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
                return left
            self._set(HALF_OPEN)
            self._until = self._clock() + self._pause  # should the one who passes never come back
            return 0.0

    def succeeded(self) -> None:
        if self.state == CLOSED and self._failures == 0:
            return
        with self._lock:
            self._failures, self._pause = 0, FIRST_PAUSE_SECONDS
            self._set(CLOSED)

    def failed(self) -> None:
        with self._lock:
            self._failures += 1
            if self.state == HALF_OPEN:
                self._pause = min(LONGEST_PAUSE_SECONDS, self._pause * 2)
            elif self._failures < FAILURES:
                return
            self._until = self._clock() + self._pause
            self._set(OPEN)

    def _set(self, state: int) -> None:
        if self.state != state:
            self.state = state
            self._changed(state)
