"""A service's consumer: applies what other services' feeds hold."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Event

from chassis import queues
from chassis.worker.outage import unless_unavailable

# A row enters its feed when the relay completes it, a moment after the relay has published the message that wakes us.
FOLLOW_UP_S = (0.01, 0.05, 0.2)


@dataclass(frozen=True)
class FeedConsumer:
    """Woken by its queue; without a message it polls every second."""

    process: str
    queue: str
    drains: Sequence[Callable[[Event], int]]
    """Each applies what one feed has that was not applied yet."""

    def run(self, queue_url: str, stop: Event) -> None:
        queues.listen(queue_url, self.queue, partial(self.drain, stop), stop, follow_up=FOLLOW_UP_S)

    def drain(self, stop: Event) -> None:
        for drain in self.drains:
            unless_unavailable(self.process, partial(drain, stop), 0)
