"""The JSON of what an account holds."""

from typing import Any

from marshmallow import Schema, ValidationError, fields

import control_rules
from chassis.fields import Coded, Identifier, Instant


def parse_symbol(text: str) -> str:
    """The symbol in a path."""
    symbol = control_rules.normalized_symbol(text)
    if symbol is None:
        raise ValidationError({"symbol": [Coded("pattern", f"must match {control_rules.SYMBOL_PATTERN}")]})
    return symbol


class Amount(fields.String):
    """A decimal as text, with a sign where it is negative."""

    def _serialize(self, value: Any, attr: str | None, obj: Any, **kwargs: Any) -> str | None:  # noqa: ARG002
        return None if value is None else format(value, "f")


class Position(Schema):
    symbol = fields.String()
    quantity = Amount(metadata={"description": "Negative when short."})
    average_entry_price = Amount(allow_none=True)
    last_price = Amount(allow_none=True)
    market_value = Amount(allow_none=True, metadata={"description": "`quantity` times `last_price`."})
    unrealized_profit = Amount(
        allow_none=True, metadata={"description": "Null from a fill until the broker has said the new entry price."}
    )
    updated_at = Instant()
    reconciled_at = Instant(allow_none=True)
    as_of = Instant(metadata={"description": "Of the quantity."})
    source = fields.String(metadata={"description": "Of the quantity: `broker`, or `fill` if one came since."})
    price_as_of = Instant(allow_none=True, metadata={"description": "Of `last_price`, and so of what follows from it."})
    price_source = fields.String(allow_none=True, metadata={"description": "`quote`, `broker` or `fill`."})


class Positions(Schema):
    account_id = Identifier()
    data = fields.List(fields.Nested(Position))


class Balances(Schema):
    account_id = Identifier()
    currency = fields.String(allow_none=True)
    cash = Amount(allow_none=True)
    equity = Amount(allow_none=True)
    buying_power = Amount(allow_none=True)
    updated_at = Instant(allow_none=True, metadata={"description": "Null: the broker was not queried yet."})
    as_of = Instant(allow_none=True)
    source = fields.String(allow_none=True, metadata={"description": "`broker`."})


class Quote(Schema):
    account_id = Identifier()
    symbol = fields.String()
    bid = Amount(allow_none=True, metadata={"description": "Null: there is none, or it was not read yet."})
    ask = Amount(allow_none=True)
    last = Amount(allow_none=True, metadata={"description": "The price of the last trade."})
    source = fields.String(allow_none=True, metadata={"description": "The broker whose price it is."})
    quoted_at = Instant(allow_none=True, metadata={"description": "Of `bid` and `ask`."})
    traded_at = Instant(allow_none=True, metadata={"description": "Of `last`."})
    read_at = Instant(allow_none=True, metadata={"description": "When the broker was queried."})
    age_seconds = fields.Float(allow_none=True, metadata={"description": "Of the newest of the prices."})


class Refresh(Schema):
    account_id = Identifier()
