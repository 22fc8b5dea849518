"""The JSON of what an account holds."""

from typing import Any

from marshmallow import Schema, fields

from chassis.fields import Identifier, Instant


class Amount(fields.String):
    """A decimal as text, with a sign where it is negative."""

    def _serialize(self, value: Any, attr: str | None, obj: Any, **kwargs: Any) -> str | None:  # noqa: ARG002
        return None if value is None else format(value, "f")


class Position(Schema):
    symbol = fields.String()
    quantity = Amount(metadata={"description": "Negative when short."})
    average_entry_price = Amount(allow_none=True)
    last_price = Amount(allow_none=True)
    market_value = Amount(allow_none=True)
    unrealized_profit = Amount(allow_none=True)
    updated_at = Instant()
    reconciled_at = Instant(allow_none=True)


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
