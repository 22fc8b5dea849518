"""How long a worker that finds nothing to do rests until it polls again."""

import time
from collections.abc import Callable
from threading import Event

FIRST_S = 1.0
LONGEST_S = 5.0
"""How long a lost wake-up can go unnoticed where nothing else happens."""
TURN_S = 1.0
"""How soon one who rests notices that it is to stop."""


class Rest:
    """Twice as long each time, up to `LONGEST_S`; a wake-up, or something to do, begins anew. For one thread."""

    def __init__(self, first_s: float | None = None) -> None:
        self._first_s = FIRST_S if first_s is None else first_s
        self._seconds = self._first_s

    def begin_anew(self) -> None:
        self._seconds = self._first_s

    def wait(self, woken: Callable[[float], object], stop: Event) -> None:
        """Until it is time to poll, or earlier: `woken` waits for so many seconds, and says whether to poll at once."""
        ends = time.monotonic() + self._seconds
        self._seconds = min(2 * self._seconds, max(self._first_s, LONGEST_S))
        while (left := ends - time.monotonic()) > 0 and not stop.is_set():
            if woken(min(left, TURN_S)):
                self.begin_anew()
                return
