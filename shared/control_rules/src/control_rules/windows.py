"""Trading windows: wall-clock times of day, half-open, possibly across midnight."""

from dataclasses import dataclass
from datetime import datetime, time
from zoneinfo import ZoneInfo

MIDNIGHT = time(0)
_Span = tuple[time, time | None]


@dataclass(frozen=True)
class Window:
    """When trading is open: from `start` until just before `end`; a missing bound is midnight."""

    start: time | None = None
    end: time | None = None

    @property
    def is_set(self) -> bool:
        return self.start is not None or self.end is not None

    @property
    def is_empty(self) -> bool:
        """Whether the bounds leave no moment of the day: equal ones, or an end at midnight without a start."""
        return self.end is not None and (self.start or MIDNIGHT) == self.end

    def covers(self, other: "Window") -> bool:
        """Whether this window is open whenever the other is."""
        return all(any(_is_within(inner, outer) for outer in self._spans()) for inner in other._spans())

    def _spans(self) -> list[_Span]:
        """From when until when on one day: two spans if the window crosses midnight. None is the end of the day."""
        start = self.start or MIDNIGHT
        if self.end is None or start <= self.end:
            return [] if start == self.end else [(start, self.end)]
        return [(start, None), (MIDNIGHT, self.end)] if self.end > MIDNIGHT else [(start, None)]

    def contains(self, moment: time) -> bool:
        if self.end is None:
            return moment >= (self.start or MIDNIGHT)
        start = self.start or MIDNIGHT
        if start <= self.end:
            return start <= moment < self.end
        return moment >= start or moment < self.end

    def __str__(self) -> str:
        return f"{self.start or MIDNIGHT:%H:%M:%S} to {f'{self.end:%H:%M:%S}' if self.end else 'midnight'}"


def _is_within(inner: _Span, outer: _Span) -> bool:
    starts, ends = outer[0] <= inner[0], outer[1] is None or (inner[1] is not None and inner[1] <= outer[1])
    return starts and ends


def wall_clock(now: datetime, time_zone: str) -> time:
    """What a clock on the wall shows there. An hour repeated or skipped by daylight saving is repeated or skipped."""
    return now.astimezone(ZoneInfo(time_zone)).time()
