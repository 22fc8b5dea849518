"""Records as JSON and as text, without a terminal."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, time
from decimal import Decimal
from enum import Enum
from itertools import zip_longest
from typing import Any
from uuid import UUID

GAP = "  "
SHORT = 8


def json_text(value: Any, indent: int | None = None) -> str:
    """In ASCII, so that it holds nothing that a terminal obeys."""
    return json.dumps(json_of(value), indent=indent)


def json_of(value: Any) -> Any:
    """The value as the API has it: decimals are strings, moments end with Z, a spec is named by its kind."""
    if hasattr(value, "to_json"):
        return value.to_json()
    if is_dataclass(value) and not isinstance(value, type):
        return _record(value)
    if isinstance(value, Mapping):
        return {str(name): json_of(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_of(item) for item in value]
    return _scalar(value)


def _record(value: Any) -> dict[str, Any]:
    """Without what belongs to the client, such as the connection."""
    shown = [column for column in fields(value) if not column.name.startswith("_")]
    return {column.metadata.get("key", column.name): json_of(getattr(value, column.name)) for column in shown}


def _scalar(value: Any) -> Any:
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, time):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    return value.value if isinstance(value, Enum) else value


def printable(text: str) -> str:
    """Nothing that a terminal obeys: names and reasons are other people's words."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)


def plain_table(titles: Sequence[str], rows: Sequence[Sequence[str]], right: Iterable[str] = ()) -> list[str]:
    """Aligned columns, nothing cut off."""
    numbers = set(right)
    widths = [max(map(len, column)) for column in zip_longest(titles, *rows, fillvalue="")]
    aligned = [str.rjust if title in numbers else str.ljust for title in titles]
    lines = [titles, *rows]
    return [
        GAP.join(align(cell, width) for align, cell, width in zip(aligned, line, widths, strict=True)).rstrip()
        for line in lines
    ]


def short(identifier: str | None) -> str:
    """The beginning of an id, which commands take for the whole."""
    return identifier[:SHORT] if identifier else "-"


def amount(value: Decimal | None) -> str:
    return "-" if value is None else format(value, "f")


def money(value: Decimal | None) -> str:
    return "-" if value is None else format(value, ",.2f")


def text_of(value: object) -> str:
    """A cell: a dash for nothing."""
    if value is None or value == "":
        return "-"
    return amount(value) if isinstance(value, Decimal) else str(value)
