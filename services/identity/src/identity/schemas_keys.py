"""What the JSON of API keys is made of, above all their bounds."""

from datetime import UTC, datetime
from typing import Any

from marshmallow import Schema, fields, post_load, validates_schema

from chassis.fields import Choice, DecimalText, Identifier, Instant, Text, refuse
from control_rules import SYMBOL_PATTERN, normalized_symbol
from identity import model

MOST_ACCOUNTS = 100
MOST_SYMBOLS = 500


class Words(fields.List[str]):
    """A set of these words, written as a list: at least one, none twice."""

    def __init__(self, words: tuple[str, ...], **options: Any) -> None:
        super().__init__(Choice(words), **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[Any]:
        words = super()._deserialize(value, attr, data, **kwargs)
        if not words or len(set(words)) != len(words):
            raise refuse("words", "must name at least one, and none twice")
        return words


class Future(Instant):
    """A moment that has not passed."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> datetime:
        moment = super()._deserialize(value, attr, data, **kwargs)
        if moment <= datetime.now(UTC):
            raise refuse("past", "must be in the future")
        return moment


class Symbol(Text):
    """Trimmed and upper-cased, as orders name it."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        symbol = normalized_symbol(super()._deserialize(value, attr, data, **kwargs))
        if symbol is None:
            raise refuse("pattern", f"must match {SYMBOL_PATTERN}")
        return symbol


class Distinct(fields.List[Any]):
    """A list of at least one, in order, each once however often it is given."""

    def __init__(self, item: fields.Field[Any], most: int, **options: Any) -> None:
        super().__init__(item, **options)
        self.most = most

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[Any]:
        given: list[Any] = sorted(set(super()._deserialize(value, attr, data, **kwargs)), key=str)
        if not 1 <= len(given) <= self.most:
            raise refuse("length", f"must have 1 to {self.most}")
        return given


class KeyBoundsRequest(Schema):
    """What the key is restricted to; what is absent or null is not restricted, but something must be."""

    accounts = Distinct(Identifier(), MOST_ACCOUNTS, allow_none=True, load_default=None)
    symbols = Distinct(Symbol(longest=64), MOST_SYMBOLS, allow_none=True, load_default=None)
    max_notional_per_day = DecimalText(allow_none=True, load_default=None)

    @validates_schema
    def _not_empty(self, data: dict[str, Any], **_: Any) -> None:
        if not any(value is not None for value in data.values()):
            raise refuse("empty", "must restrict something")

    @post_load
    def _to_model(self, data: dict[str, Any], **_: Any) -> model.Bounds:
        lists = {name: tuple(value) for name, value in data.items() if isinstance(value, list)}
        return model.Bounds(**data | lists)


class KeyBounds(Schema):
    accounts = fields.List(Identifier(), required=True, allow_none=True)
    symbols = fields.List(Text(longest=32), required=True, allow_none=True)
    max_notional_per_day = DecimalText(required=True, allow_none=True)
