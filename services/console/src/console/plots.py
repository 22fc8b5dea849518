"""Plots of the last hour, one bar a minute: all on the same time axis and all from zero."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

MINUTES = 60
HEIGHT = 100


@dataclass(frozen=True)
class Axis:
    """The minutes that a page is about; the last one is still going on."""

    start: datetime

    @classmethod
    def until(cls, now: datetime) -> "Axis":
        return cls(now.replace(second=0, microsecond=0) - timedelta(minutes=MINUTES - 1))

    def place(self, at: datetime) -> int | None:
        """Which minute of the axis that is."""
        minute = int((at - self.start).total_seconds() // 60)
        return minute if 0 <= minute < MINUTES else None

    @property
    def labels(self) -> list[datetime]:
        return [self.start + timedelta(minutes=minute) for minute in (0, 20, 40)]

    def at(self, minute: int) -> datetime:
        return self.start + timedelta(minutes=minute)


@dataclass(frozen=True)
class Bar:
    minute: int
    at: datetime
    value: float
    height: float
    lower: float | None = None
    """A second value within the bar, and how high that is."""
    lower_height: float = 0

    @property
    def top(self) -> float:
        return HEIGHT - self.height


@dataclass(frozen=True)
class Plot:
    """Bars, and the value that the top of the plot stands for."""

    bars: tuple[Bar, ...]
    top: float

    @property
    def greatest(self) -> float:
        return max((bar.value for bar in self.bars), default=0)


def counts(axis: Axis, moments: Iterable[datetime]) -> Plot:
    """How many a minute."""
    totals: dict[int, int] = {}
    for at in moments:
        if (minute := axis.place(at)) is not None:
            totals[minute] = totals.get(minute, 0) + 1
    top = nice(max(totals.values(), default=0), whole=True)
    return Plot(tuple(_bar(axis, minute, total, top) for minute, total in sorted(totals.items())), top)


def latencies(axis: Axis, samples: Iterable[tuple[datetime, float]]) -> Plot:
    """Each minute's p99, and its p50 within."""
    by_minute: dict[int, list[float]] = {}
    for at, value in samples:
        if (minute := axis.place(at)) is not None:
            by_minute.setdefault(minute, []).append(value)
    slow = {minute: percentile(values, 99) or 0 for minute, values in by_minute.items()}
    top = nice(max(slow.values(), default=0))
    found = ((minute, slow[minute], percentile(by_minute[minute], 50)) for minute in sorted(by_minute))
    return Plot(tuple(_bar(axis, minute, high, top, low) for minute, high, low in found), top)


def _bar(axis: Axis, minute: int, value: float, top: float, lower: float | None = None) -> Bar:
    low = 0.0 if lower is None else _height(lower, top)
    return Bar(minute, axis.at(minute), value, _height(value, top), lower, low)


def _height(value: float, top: float) -> float:
    """What is not zero can be seen."""
    return round(max(2.0 if value else 0.0, HEIGHT * value / top), 2)


def percentile(values: Iterable[float], percent: int) -> float | None:
    """The smallest value that so many of all do not exceed."""
    ranked = sorted(values)
    return ranked[max(1, math.ceil(len(ranked) * percent / 100)) - 1] if ranked else None


def nice(value: float, *, whole: bool = False) -> float:
    """1, 2 or 5 times a power of ten, not below the value."""
    if value <= (1 if whole else 0):
        return 1
    power = 10.0 ** math.floor(math.log10(value))
    found = next(step * power for step in (1, 2, 5, 10) if step * power >= value)
    return int(found) if whole else found
