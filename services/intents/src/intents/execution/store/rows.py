"""Columns of our rows, and rows as text that Postgres reads as a table."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from intents.execution.model.locked_intent import Progress

PROGRESS_COLUMNS = tuple(column.name for column in fields(Progress))


def as_json(rows: Iterable[Mapping[str, Any]]) -> str:
    return json.dumps(list(rows), default=_text, separators=(",", ":"), check_circular=False)


def _text(value: object) -> str:
    return _TEXT[type(value)](value)


_TEXT: Mapping[type, Callable[[Any], str]] = {UUID: str, datetime: datetime.isoformat, Decimal: "{:f}".format}
