"""The facts of a decision as JSON of bounded size, for the record of what was decided.

It names no field of the facts: whatever a rule will be given one day is recorded with the rest.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from functools import cache
from typing import Any

from control_rules.facts import Facts

LONGEST_LIST = 20
"""A longer one is recorded by its length and hash: enough to prove later which one it was."""
_AS_THEY_ARE = frozenset((bool, int, str, type(None)))


def _moment(value: datetime) -> str:
    return value.astimezone(UTC).isoformat(timespec="microseconds")[:-6] + "Z"


_MADE: tuple[tuple[type[Any], Callable[[Any], str]], ...] = (
    (Decimal, lambda value: format(value, "f")),
    (str, str),
    (datetime, _moment),
    (time, time.isoformat),
    (timedelta, lambda value: f"PT{value.total_seconds():g}S"),
)


def recorded(facts: Facts, now: datetime) -> dict[str, Any]:
    """The values of every control that is set, and every fact that is known; what is absent was not set or known."""
    return {"now": _moment(now), **_plain(facts)}


def _known(values: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    found = {}
    for name, value in values:
        if value is not None:
            plain = value if type(value) in _AS_THEY_ARE else _plain(value)
            if plain != {}:
                found[name] = plain
    return found


def _plain(value: Any) -> Any:
    of: Any = type(value)
    if is_dataclass(value):
        return _known([(name, getattr(value, name)) for name in _names(of)])
    make = next((make for kind, make in _MADE if isinstance(value, kind)), _collected)
    return make(value)


@cache
def _names(kind: type[Any]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def _collected(value: Any) -> Any:
    if hasattr(value, "_asdict"):
        return _known(value._asdict().items())
    if isinstance(value, Mapping):
        return _known((str(name), item) for name, item in value.items())
    if isinstance(value, set | frozenset):
        return _bounded(sorted(value))
    return _bounded(value) if isinstance(value, list | tuple) else str(value)


def _bounded(values: Iterable[Any]) -> Any:
    items = [value if type(value) in _AS_THEY_ARE else _plain(value) for value in values]
    if len(items) <= LONGEST_LIST:
        return items
    return {"count": len(items), "sha256": hashlib.sha256(json.dumps(items).encode()).hexdigest()}
