"""How far a reader of events has come, and when it connects again. Pure: time and chance are given."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tip_client.errors import PositionOutOfRange, TipError
from tip_client.events import Event, LogPosition, event_of
from tip_client.records import parse
from tip_client.retries import backoff


@dataclass
class Cursor:
    """Yields every event once and in order, over any number of connections."""

    position: LogPosition | None
    give_up_after: float | None = None
    """Seconds without a connection after which the failure is raised; None: never."""
    failures: int = 0
    failing_since: float = 0.0

    def accept(self, message: Mapping[str, Any]) -> Event | None:
        """The event of a message if it is new; heartbeats only move the position on."""
        place = parse(LogPosition, message)
        if self.position and self.position.epoch not in ("", place.epoch):
            raise PositionOutOfRange(400, "out_of_range", "The log was restored and goes on in another epoch.")
        event = event_of(message)
        self.failures = 0
        last = self.position.sequence if self.position else -1
        if place.sequence < last or (event is not None and place.sequence == last):
            return None
        self.position = place
        return event

    def delay_after(self, failure: TipError, now: float, chance: float) -> float:
        """Seconds to wait before connecting again; raises the failure if that would be in vain."""
        if not failure.is_transient:
            raise failure
        self.failing_since = self.failing_since if self.failures else now
        self.failures += 1
        delay = backoff(self.failures, failure.retry_after, chance)
        if self.give_up_after is not None and now + delay > self.failing_since + self.give_up_after:
            raise failure
        return delay
