"""How values look on a page."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from console import administration, controls, orders

NOTHING = "\N{EN DASH}"
_MINUS = "\N{MINUS SIGN}"
_SPACE = "\N{THIN SPACE}"
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def number(value: Any, places: int | None = None) -> str:
    """A figure with its thousands apart; a dash where there is none."""
    if value is None:
        return NOTHING
    try:
        figure = Decimal(str(value))
    except InvalidOperation:
        return str(value)
    text = f"{abs(figure):,f}" if places is None else f"{abs(figure):,.{places}f}"
    return (_MINUS if figure < 0 else "") + text.replace(",", _SPACE)


def price(value: Any) -> str:
    """With at least two decimals, so that they stand below each other."""
    text = number(value)
    whole, _, decimals = text.partition(".")
    return text if value is None else f"{whole}.{decimals:0<2}"


def moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def clock(text: str | None) -> str:
    """The time of day, with the date where it is another day."""
    at = moment(text)
    if at is None:
        return NOTHING
    today = at.date() == datetime.now(UTC).date()
    return f"{at:%H:%M:%S}" if today else f"{at:%d %b %H:%M}"


def exact_clock(text: str | None) -> str:
    at = moment(text)
    return f"{at:%H:%M:%S}.{at.microsecond // 1000:03d}" if at else NOTHING


def age(text: str | None) -> str:
    """How long ago, in the largest unit that fits."""
    at = moment(text)
    if at is None:
        return "never"
    seconds = max(0, int((datetime.now(UTC) - at).total_seconds()))
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit} ago"
    return f"{seconds} s ago"


def short(text: str | None) -> str:
    """An id, so that it can be recognised."""
    return f"{text[:8]}…" if text and len(text) > 9 else text or NOTHING


def words(text: str | None) -> str:
    """A constant as words: PENDING_CANCEL is `pending cancel`."""
    return (text or NOTHING).replace("_", " ").lower()


def duration(millis: float | None) -> str:
    """In the unit that leaves one to three digits before the point."""
    if millis is None:
        return NOTHING
    for size, unit in ((3_600_000, "h"), (60_000, "min"), (1_000, "s")):
        if millis >= size:
            return f"{millis / size:.3g} {unit}"
    return f"{millis:.3g} ms"


def seconds(millis: int | None) -> str:
    """Milliseconds as seconds, as a form has them."""
    return f"{millis / 1000:g}" if millis else ""


def is_id(text: str) -> bool:
    """Whether it is one that is shortened; an e-mail address may be as long."""
    return bool(_ID.fullmatch(text))


def is_past(text: str | None) -> bool:
    at = moment(text)
    return at is not None and at <= datetime.now(UTC)


FILTERS: Mapping[str, Callable[..., Any]] = {
    "number": number,
    "price": price,
    "clock": clock,
    "exact_clock": exact_clock,
    "age": age,
    "short": short,
    "words": words,
    "duration": duration,
    "seconds": seconds,
    "is_id": is_id,
    "is_past": is_past,
    "counted": controls.counted,
    "has_lines": administration.has_lines,
    "priced": orders.priced,
    "refused": orders.refused_words,
    "meaning": orders.meaning,
}
