"""Moments as people write and read them."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import click

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_DURATION = re.compile(r"(\d{1,6})([smhdw])", re.ASCII)


class Moment(click.ParamType[datetime]):
    """`1h`: so long ago; or a date and time with its zone, or UTC."""

    name = "moment"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        if isinstance(value, datetime):
            return value
        try:
            return moment_of(str(value), datetime.now(UTC))
        except (ValueError, OverflowError):
            self.fail(
                f"{value!r} is neither an age such as 90s, 15m, 1h, 2d nor a time such as 2026-01-05T12:00", param, ctx
            )


class Duration(click.ParamType[timedelta]):
    """`90s`, `15m`, `1h`, `2d`, `1w`."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        if isinstance(value, timedelta):
            return value
        found = duration_of(str(value))
        if not found:
            self.fail(f"{value!r} is no duration such as 90s, 15m, 1h, 2d", param, ctx)
        return found


def duration_of(text: str) -> timedelta | None:
    found = _DURATION.fullmatch(text)
    return timedelta(**{_UNITS[found[2]]: int(found[1])}) if found else None


def moment_of(text: str, now: datetime) -> datetime:
    if (ago := duration_of(text)) is not None:
        return now - ago
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def clock(moment: datetime | None, *, milliseconds: bool = False, now: datetime | None = None) -> str:
    """The local time, with its date unless that is today."""
    if moment is None:
        return "-"
    local, today = moment.astimezone(), (now or datetime.now(UTC)).astimezone().date()
    time = local.strftime("%H:%M:%S") + (f".{local.microsecond // 1000:03}" if milliseconds else "")
    return time if local.date() == today else f"{local:%Y-%m-%d} {time}"


def age(seconds: float | None) -> str:
    """`3 ms`, `12 s`, `5 min`, `2 h`, `4 d`."""
    if seconds is None:
        return "-"
    for limit, size, unit in ((1, 0.001, "ms"), (100, 1, "s"), (6000, 60, "min"), (172_800, 3600, "h")):
        if seconds < limit:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 86400:.0f} d"


def age_at(moment: datetime | None, now: datetime | None = None) -> str:
    return age(((now or datetime.now(UTC)) - moment).total_seconds()) if moment else "-"
