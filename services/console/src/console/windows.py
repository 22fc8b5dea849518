"""Trading windows on a bar of 24 hours, in the account's zone."""

from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

DAY = 24 * 60


@dataclass(frozen=True)
class Bar:
    """Parts of a day in which a symbol is traded, in minutes since midnight: (start, length)."""

    spans: tuple[tuple[int, int], ...]
    now: int | None
    start: str
    end: str

    @property
    def is_open(self) -> bool:
        return self.now is not None and any(start <= self.now < start + length for start, length in self.spans)


def bar(start: str | None, end: str | None, zone: str, now: datetime) -> Bar:
    """Half-open; a window whose start is after its end crosses midnight."""
    opens, closes = _minutes(start) if start else 0, _minutes(end) if end else DAY
    spans = ((opens, closes - opens),) if opens < closes else ((0, closes), (opens, DAY - opens))
    return Bar(spans, _now(zone, now), (start or "00:00")[:5], (end or "24:00")[:5])


def _now(zone: str, now: datetime) -> int | None:
    try:
        local = now.astimezone(ZoneInfo(zone))
    except (ZoneInfoNotFoundError, ValueError):
        return None
    return local.hour * 60 + local.minute


def _minutes(clock: str) -> int:
    hours, minutes = clock.split(":")[:2]
    return int(hours) * 60 + int(minutes)
