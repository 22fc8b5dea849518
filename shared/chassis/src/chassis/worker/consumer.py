"""A service's consumer: applies what other services' feeds hold."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Event

from chassis import queues
from chassis.worker.outage import unless_unavailable

# A row enters its feed when the relay completes it, a moment after the relay has published the message that wakes us.
FOLLOW_UP_S = (0.01, 0.05, 0.2)
TURN_S = 1.0
"""How long one feed is drained while others wait."""


class _Turn(Event):
    """Set when the consumer is to stop, and when it is the next feed's turn."""

    def __init__(self, stop: Event) -> None:
        super().__init__()
        self._stop, self._ends = stop, time.monotonic() + TURN_S

    def is_set(self) -> bool:
        return self._stop.is_set() or time.monotonic() >= self._ends


@dataclass(frozen=True)
class FeedConsumer:
    """Woken by its queue; without a message it polls after each rest (`chassis.rest`)."""

    process: str
    queue: str
    drains: Sequence[Callable[[Event], int]]
    """Each applies what one feed has that was not applied yet."""
    has_news: Callable[[], bool] = lambda: True
    """Whether any of the feeds has something: what it costs to find out nothing is paid once for all."""
    beside: Sequence[Callable[[Event], int]] = ()
    """Other work, found by polling alone."""

    def run(self, queue_url: str, stop: Event) -> None:
        queues.listen(queue_url, self.queue, partial(self.drain, stop), stop, follow_up=FOLLOW_UP_S)

    def drain(self, stop: Event) -> bool:
        """Feeds take turns until none has anything left: one that is filled all the time holds up no other.

        Whether to poll again soon: something was there, or the database was not.
        """
        is_busy = False
        while not stop.is_set():
            drains = self.drains if unless_unavailable(self.process, self.has_news, True) else ()
            turns = [self._take_turn(drain, stop) for drain in (*drains, *self.beside)]
            is_busy = is_busy or turns != [0] * len(turns)
            if not any(turns):
                break
        return is_busy

    def _take_turn(self, drain: Callable[[Event], int], stop: Event) -> int | None:
        return unless_unavailable(self.process, partial(drain, _Turn(stop)), None)
