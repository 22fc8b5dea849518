"""Days of an account: from midnight to midnight on the wall clocks of its zone."""

from datetime import UTC, date, datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError


def wall_day(at: datetime, time_zone: str) -> date:
    """Which day it is there; in UTC if nobody knows the zone."""
    return at.astimezone(_zone(time_zone)).date()


def end_of_day(at: datetime, time_zone: str) -> datetime:
    """The midnight there that comes next."""
    return _midnight(wall_day(at, time_zone) + timedelta(days=1), time_zone)


def has_begun_after(ended_at: datetime, at: datetime, time_zone: str) -> bool:
    """Whether the day there has begun since another one ended.

    The one rule for when an account's next day begins. While it stays in its zone, that is the moment at which the
    last one ended. Moved to another zone, it keeps the last one until a midnight there that is not before that
    moment: it begins no second day on a day.
    """
    return _midnight(wall_day(at, time_zone), time_zone) >= ended_at


def _midnight(day: date, time_zone: str) -> datetime:
    return datetime.combine(day, time(0), _zone(time_zone)).astimezone(UTC)


def _zone(time_zone: str) -> tzinfo:
    try:
        return ZoneInfo(time_zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return UTC
