"""Whoever moves an account to another time zone may lose no more than one who leaves it where it is."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from intents.model.daily_loss import DayEquity, NewBalance

ZONES = ("UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago", "Asia/Kolkata", "Asia/Tokyo", "America/Bogota")
LIMIT = Decimal(100)
FIRST = datetime(2026, 7, 1, tzinfo=UTC)


class Reading(NamedTuple):
    """A balance that the broker reports, and the account's zone at that moment."""

    at: datetime
    equity: Decimal
    time_zone: str


def judged(readings: Sequence[Reading]) -> list[DayEquity]:
    found: list[DayEquity] = []
    for at, equity, time_zone in readings:
        before = found[-1] if found else None
        found.append(NewBalance(UUID(int=1), UUID(int=2), time_zone, equity, at, LIMIT, before).judged())
    return found


def start_in(time_zone: str, readings: Sequence[Reading]) -> Decimal:
    """What an account that never leaves the zone was worth when the day of the last reading began."""
    today = _day(readings[-1].at, time_zone)
    return next(reading.equity for reading in readings if _day(reading.at, time_zone) == today)


def _day(at: datetime, time_zone: str) -> date:
    return at.astimezone(ZoneInfo(time_zone)).date()


@st.composite
def stories(draw: st.DrawFn) -> list[Reading]:
    minutes = draw(st.lists(st.integers(1, 900), min_size=1, max_size=40))
    moments = [FIRST + timedelta(minutes=sum(minutes[: place + 1])) for place in range(len(minutes))]
    equity = st.integers(500, 1_500).map(Decimal)
    return [Reading(at, draw(equity), draw(st.sampled_from(ZONES))) for at in moments]


@given(stories())
def test_no_order_of_zones_allows_a_loss_that_none_of_them_allows(readings: list[Reading]) -> None:
    for last, after in enumerate(judged(readings), 1):
        lived = readings[:last]
        assert after.equity >= min(start_in(reading.time_zone, lived) for reading in lived)


@given(stories())
def test_a_breach_stands_until_midnight_in_the_zone_of_that_moment(readings: list[Reading]) -> None:
    found_at = None
    for reading, after in zip(readings, judged(readings), strict=True):
        if after.breached:
            found_at = found_at or reading.at
        elif found_at:
            assert _day(found_at, reading.time_zone) < _day(reading.at, reading.time_zone)
            found_at = None


@given(stories(), st.sampled_from(ZONES))
def test_in_one_zone_a_day_begins_at_each_midnight(readings: list[Reading], time_zone: str) -> None:
    readings = [reading._replace(time_zone=time_zone) for reading in readings]

    starts = [after.equity for after in judged(readings)]

    assert starts == [start_in(time_zone, readings[:last]) for last in range(1, len(readings) + 1)]


def test_a_day_that_goes_on_in_another_zone_counts_from_its_first_equity_after_its_end_if_that_is_higher() -> None:
    midnight = FIRST + timedelta(days=1)
    before = Reading(midnight - timedelta(hours=1), Decimal(1_000), "UTC")
    for first, start in ((900, 1_000), (1_100, 1_100)):
        moved = [
            Reading(midnight + timedelta(hours=hour), Decimal(equity), "America/Bogota")
            for hour, equity in enumerate((first, 1_300, 1_250))
        ]

        assert [after.equity for after in judged([before, *moved])] == [1_000, start, start, start]
