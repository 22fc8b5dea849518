"""Trading windows, against a model that walks the day minute by minute and knows the changes of the clock by heart."""

from datetime import UTC, datetime, time, timedelta

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from control_rules import Command, CommandType, Facts, OrderSide, TimeControl, Verdict, Window, evaluate

DAY = 24 * 60

# Minutes east of UTC, from each moment of 2026 on. Written down from the zones' own laws, not read from zoneinfo.
OFFSETS = {
    "UTC": [("2026-01-01T00:00", 0)],
    "Asia/Kathmandu": [("2026-01-01T00:00", 345)],
    "America/New_York": [("2026-01-01T00:00", -300), ("2026-03-08T07:00", -240), ("2026-11-01T06:00", -300)],
    "Europe/Berlin": [("2026-01-01T00:00", 60), ("2026-03-29T01:00", 120), ("2026-10-25T01:00", 60)],
    "Australia/Lord_Howe": [("2026-01-01T00:00", 660), ("2026-04-04T15:00", 630), ("2026-10-03T15:30", 660)],
    "Pacific/Kiritimati": [("2026-01-01T00:00", 840)],
}
CHANGES = [
    (zone, datetime.fromisoformat(moment).replace(tzinfo=UTC))
    for zone, steps in OFFSETS.items()
    for moment, _ in steps[1:]
]
BUY = Command(CommandType.CREATE, "AAPL", OrderSide.BUY)

minutes = st.integers(0, DAY - 1)
bounds = st.tuples(st.none() | minutes, st.none() | minutes).filter(
    lambda pair: pair != (None, None) and pair[1] != (pair[0] or 0)
)
anywhen = st.datetimes(datetime(2026, 1, 2), datetime(2026, 12, 30)).map(lambda moment: moment.replace(tzinfo=UTC))


def open_minutes(start: int | None, end: int | None) -> set[int]:
    """Walk from the start, a minute at a time, until the end (or midnight) comes."""
    at, stop, found = start or 0, DAY if end is None else end, set()
    while at != stop:
        found.add(at)
        at += 1
        if at == DAY and stop != DAY:
            at = 0
    return found


def minute_of_day(zone: str, moment: datetime) -> int:
    east = [east for since, east in OFFSETS[zone] if datetime.fromisoformat(since).replace(tzinfo=UTC) <= moment][-1]
    return (moment.hour * 60 + moment.minute + east) % DAY


def clock(minute: int | None) -> time | None:
    return None if minute is None else time(minute // 60, minute % 60)


def allowed(zone: str, start: int | None, end: int | None, moment: datetime) -> bool:
    facts = Facts(zone, False, 1, symbol_time=TimeControl(1, clock(start), clock(end)))
    return evaluate(facts, BUY, moment).decision is Verdict.ALLOWED


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(sorted(OFFSETS)), bounds, anywhen)
@example("America/New_York", (540, 540 + 390), datetime(2026, 3, 8, 13, tzinfo=UTC))
@example("America/New_York", (90, 120), datetime(2026, 11, 1, 6, 45, tzinfo=UTC))
def test_a_window_is_open_exactly_when_the_walked_day_says_so(
    zone: str, window: tuple[int | None, int | None], moment: datetime
) -> None:
    assert allowed(zone, *window, moment) is (minute_of_day(zone, moment) in open_minutes(*window))


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(CHANGES), bounds)
def test_every_minute_around_a_change_of_the_clock_agrees_with_the_walked_day(
    change: tuple[str, datetime], window: tuple[int | None, int | None]
) -> None:
    zone, moment = change
    expected = open_minutes(*window)
    around = [moment + timedelta(minutes=step) for step in range(-130, 131)]

    assert [allowed(zone, *window, at) for at in around] == [minute_of_day(zone, at) in expected for at in around]


seconds = st.integers(0, 86_399)


def second(value: int) -> time:
    return (datetime(2026, 1, 1) + timedelta(seconds=value)).time()


@given(seconds, seconds, seconds, st.integers(0, 999_999))
def test_to_the_second_a_moment_is_inside_when_less_time_has_passed_since_the_start_than_the_window_lasts(
    start: int, end: int, at: int, micros: int
) -> None:
    lasts, passed = (end - start) % 86_400, (at - start) % 86_400

    assert Window(second(start), second(end)).contains(second(at).replace(microsecond=micros)) is (passed < lasts)


@pytest.mark.parametrize(
    ("start", "end", "inside", "outside"),
    [
        ("09:30:00", "16:00:00", ["09:30:00", "15:59:59.999999"], ["09:29:59.999999", "16:00:00", "00:00:00"]),
        ("22:00:00", "06:00:00", ["22:00:00", "23:59:59", "00:00:00", "05:59:59"], ["06:00:00", "21:59:59"]),
        ("09:30:00", None, ["09:30:00", "23:59:59.999999"], ["00:00:00", "09:29:59"]),
        (None, "16:00:00", ["00:00:00", "15:59:59"], ["16:00:00", "23:59:59"]),
        ("09:30:00", "00:00:00", ["09:30:00", "23:59:59"], ["00:00:00", "09:29:59"]),
        ("00:00:00", None, ["00:00:00", "23:59:59"], []),
    ],
)
def test_windows_are_half_open_and_may_cross_midnight(
    start: str | None, end: str | None, inside: list[str], outside: list[str]
) -> None:
    window = Window(*(time.fromisoformat(bound) if bound else None for bound in (start, end)))

    assert all(window.contains(time.fromisoformat(at)) for at in inside)
    assert not any(window.contains(time.fromisoformat(at)) for at in outside)


@pytest.mark.parametrize(
    ("start", "end", "empty"),
    [
        (time(9), time(9), True),
        (None, time(0), True),
        (time(0), time(0), True),
        (time(9), time(0), False),
        (time(0), None, False),
        (None, None, False),
    ],
)
def test_a_window_without_a_moment_differs_from_one_that_ends_at_midnight(
    start: time | None, end: time | None, empty: bool
) -> None:
    assert Window(start, end).is_empty is empty


def test_the_hour_that_daylight_saving_skips_never_opens_and_the_repeated_one_opens_twice() -> None:
    window = (2 * 60, 3 * 60)
    skipped = [datetime(2026, 3, 8, tzinfo=UTC) + timedelta(minutes=step) for step in range(DAY)]
    repeated = [datetime(2026, 10, 25, tzinfo=UTC) + timedelta(minutes=step) for step in range(DAY)]

    assert sum(allowed("America/New_York", *window, at) for at in skipped) == 0
    assert sum(allowed("Europe/Berlin", *window, at) for at in repeated) == 120
