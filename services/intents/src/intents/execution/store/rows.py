"""Rows as text that Postgres reads as a table."""

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID


def as_json(rows: Iterable[Mapping[str, Any]]) -> str:
    return json.dumps(list(rows), default=_text, separators=(",", ":"), check_circular=False)


def _text(value: object) -> str:
    return _TEXT[type(value)](value)


_TEXT: Mapping[type, Callable[[Any], str]] = {UUID: str, datetime: datetime.isoformat, Decimal: "{:f}".format}
