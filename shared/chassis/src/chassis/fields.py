"""marshmallow fields that take exactly what the contract says and nothing that merely resembles it.

marshmallow's own take "yes" for true, 1.5 for an integer, `09:30` for a time, braces around a UUID and full-width
digits in a decimal.
"""

import re
from datetime import UTC, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

from marshmallow import ValidationError, fields


class Coded(str):
    """A message with a stable code for machines."""

    code: str

    def __new__(cls, code: str, message: str) -> "Coded":
        text = super().__new__(cls, message)
        text.code = code
        return text


def refuse(code: str, message: str) -> ValidationError:
    return ValidationError([Coded(code, message)])


class Text(fields.Field[str]):
    """A string of bounded length, without control characters, optionally of one pattern."""

    def __init__(self, *, longest: int, shortest: int = 1, pattern: str | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.longest, self.shortest = longest, shortest
        self.pattern = re.compile(pattern, re.ASCII) if pattern else None

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        if type(value) is not str:
            raise refuse("type", "must be a string")
        if not self.shortest <= len(value) <= self.longest:
            raise refuse("length", f"must have {self.shortest} to {self.longest} characters")
        if any(character < " " or character == "\x7f" for character in value):
            raise refuse("characters", "must not hold control characters")
        if self.pattern and not self.pattern.fullmatch(value):
            raise refuse("pattern", f"must match {self.pattern.pattern}")
        return value


class Choice(fields.Field[str]):
    """One of a few words. Where they are many, `rule` says what to send instead of them all."""

    def __init__(self, words: tuple[str, ...], *, rule: str | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.words = words
        self.rule = rule or f"must be one of {', '.join(words)}"

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        if type(value) is not str or value not in self.words:
            raise refuse("choice", self.rule)
        return value


class Flag(fields.Field[bool]):
    """true or false, the JSON literals."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> bool:
        if type(value) is not bool:
            raise refuse("type", "must be true or false")
        return value


class Whole(fields.Field[int]):
    """A whole number within bounds."""

    def __init__(self, *, least: int, most: int, **options: Any) -> None:
        super().__init__(**options)
        self.least, self.most = least, most

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> int:
        if type(value) is not int:
            raise refuse("type", "must be a whole number")
        if not self.least <= value <= self.most:
            raise refuse("range", f"must be from {self.least} to {self.most}")
        return value


class DecimalText(fields.Field[Decimal]):
    """A positive decimal as a string; kept to the last digit, so JSON numbers are refused."""

    PATTERN = re.compile(r"[0-9]{1,15}(\.[0-9]{1,9})?", re.ASCII)

    @property
    def documented_pattern(self) -> str:
        return f"^{self.PATTERN.pattern}$"

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Decimal:
        if type(value) is not str or not self.PATTERN.fullmatch(value):
            raise refuse("decimal", 'must be a string of digits, such as "12.5"')
        if (number := Decimal(value)) <= 0:
            raise refuse("range", "must be greater than zero")
        return number

    def _serialize(self, value: Decimal | None, attr: str | None, obj: Any, **kwargs: Any) -> str | None:
        return None if value is None else format(value, "f")


class Identifier(fields.Field[UUID]):
    """A UUID in its usual form."""

    PATTERN = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", re.ASCII)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> UUID:
        if type(value) is not str or not self.PATTERN.fullmatch(value):
            raise refuse("uuid", "must be a UUID")
        return UUID(value)

    def _serialize(self, value: UUID | None, attr: str | None, obj: Any, **kwargs: Any) -> str | None:
        return None if value is None else str(value)


class TimeOfDay(fields.Field[time]):
    """HH:MM:SS, exactly."""

    PATTERN = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]", re.ASCII)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> time:
        if type(value) is not str or not self.PATTERN.fullmatch(value):
            raise refuse("time", "must be a time of day, HH:MM:SS")
        return time.fromisoformat(value)

    def _serialize(self, value: time | None, attr: str | None, obj: Any, **kwargs: Any) -> str | None:
        return None if value is None else value.strftime("%H:%M:%S")


class Instant(fields.Field[datetime]):
    """An RFC 3339 date-time; always answered in UTC with `Z`."""

    PATTERN = re.compile(
        r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?([Zz]|[+-][0-9]{2}:[0-9]{2})", re.ASCII
    )

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> datetime:
        if type(value) is not str or not self.PATTERN.fullmatch(value):
            raise refuse("date_time", "must be an RFC 3339 date-time")
        try:
            return datetime.fromisoformat(value.upper()).astimezone(UTC)
        except (ValueError, OverflowError):
            raise refuse("date_time", "is not a date that exists") from None

    def _serialize(self, value: datetime | None, attr: str | None, obj: Any, **kwargs: Any) -> str | None:
        return None if value is None else rfc3339(value)


def rfc3339(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
