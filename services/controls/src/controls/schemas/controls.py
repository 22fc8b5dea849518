"""The controls themselves, in and out."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from marshmallow import Schema, ValidationError, fields, post_dump, post_load, validates_schema

from chassis.fields import Choice, DecimalText, Flag, Identifier, Instant, Text, TimeOfDay, Whole, refuse
from control_rules import SYMBOL_PATTERN, TradingState, normalized_symbol
from controls import model

REASON_LONGEST = 500
MOST_ORDERS = 1_000_000_000
MOST_SYMBOLS = 500


def words(choices: Iterable[StrEnum]) -> tuple[str, ...]:
    return tuple(choice.value for choice in choices)


def symbol(text: str) -> str:
    """The symbol in a path, normalized; refused like a field when it is none."""
    found = normalized_symbol(text)
    if found is None:
        raise ValidationError({"symbol": refuse("symbol", f"must match {SYMBOL_PATTERN}").messages})
    return found


class Symbol(Text):
    """A symbol in a body, normalized as in a path."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        found = normalized_symbol(super()._deserialize(value, attr, data, **kwargs))
        if found is None:
            raise refuse("symbol", f"must match {SYMBOL_PATTERN}")
        return found


class Symbols(fields.List[str]):
    """A list of symbols, each once."""

    def __init__(self, **options: Any) -> None:
        super().__init__(Symbol(longest=64), **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[str | None]:
        symbols = sorted(set(super()._deserialize(value, attr, data, **kwargs)), key=str)
        if not 1 <= len(symbols) <= MOST_SYMBOLS:
            raise refuse("length", f"must have 1 to {MOST_SYMBOLS} symbols")
        return symbols


class _About(Schema):
    """What every control answers beside what it says."""

    account_id = Identifier(required=True)
    organization_id = Identifier(required=True)
    created_at = Instant(required=True)
    updated_at = Instant(required=True)
    version = Whole(least=1, most=2**63 - 1, required=True)


class SymbolManualControlRequest(Schema):
    manually_disabled = Flag(required=True)
    manual_reason = Text(longest=REASON_LONGEST, allow_none=True, load_default=None)


class SymbolManualControl(_About):
    symbol = Text(longest=32, required=True)
    manually_disabled = Flag(required=True)
    manual_reason = Text(longest=REASON_LONGEST)

    @post_dump
    def leave_out_what_is_not_set(self, data: dict[str, Any], **_: Any) -> dict[str, Any]:
        return {name: value for name, value in data.items() if not (name == "manual_reason" and value is None)}


class SymbolTimeControlRequest(Schema):
    trading_start = TimeOfDay(allow_none=True)
    trading_end = TimeOfDay(allow_none=True)
    stale_order_millis = Whole(least=1_000, most=86_400_000, allow_none=True)
    clear = fields.List(Choice(model.TIME_FIELDS), allow_none=True)

    @validates_schema
    def check(self, data: Mapping[str, Any], **_: Any) -> None:
        names = data.get("clear") or []
        twice = {
            index: refuse("set_and_cleared", "is set and cleared at once").messages
            for index, name in enumerate(names)
            if data.get(name) is not None
        }
        if twice:
            raise ValidationError({"clear": twice})

    @post_load
    def patch(self, data: dict[str, Any], **_: Any) -> model.TimePatch:
        changes = {name: data[name] for name in model.TIME_FIELDS if data.get(name) is not None}
        return model.TimePatch(changes, frozenset(data.get("clear") or []))


class SymbolTimeControl(_About):
    symbol = Text(longest=32, required=True)
    trading_start = TimeOfDay()
    trading_end = TimeOfDay()
    stale_order_millis = Whole(least=1_000, most=86_400_000, required=True, allow_none=True)
    time_zone = Text(longest=64, metadata={"description": "The account's zone, which the hours are in."})

    @post_dump
    def leave_out_what_is_not_set(self, data: dict[str, Any], **_: Any) -> dict[str, Any]:
        return {name: value for name, value in data.items() if value is not None or name == "stale_order_millis"}


class SwitchRequest(Schema):
    trading_state = Choice(words(TradingState), required=True)
    reason = Text(longest=REASON_LONGEST, allow_none=True, load_default=None)
    cancel_open = Flag(load_default=False)

    @validates_schema
    def check(self, data: Mapping[str, Any], **_: Any) -> None:
        if data["cancel_open"] and data["trading_state"] != TradingState.HALTED:
            raise ValidationError({"cancel_open": refuse("only_halted", "goes with HALTED only").messages})


class AccountSwitch(_About):
    trading_state = Choice(words(TradingState), required=True)
    reason = Text(longest=REASON_LONGEST, required=True, allow_none=True)
    bulk_operation_id = Identifier(
        metadata={"description": "Only in the answer to cancel_open; see /v1/accounts/{account_id}/bulk-operations."}
    )


class OrganizationSwitch(AccountSwitch):
    class Meta:
        exclude = ("account_id",)


class SymbolLimitsRequest(Schema):
    max_quantity = DecimalText(allow_none=True, load_default=None)
    max_notional = DecimalText(allow_none=True, load_default=None)
    price_collar_bps = Whole(least=1, most=10_000, allow_none=True, load_default=None)
    max_orders_per_minute = Whole(least=1, most=1_000_000, allow_none=True, load_default=None)
    max_orders_per_day = Whole(least=1, most=MOST_ORDERS, allow_none=True, load_default=None)
    max_position_quantity = DecimalText(allow_none=True, load_default=None)
    max_position_notional = DecimalText(allow_none=True, load_default=None)
    max_open_orders = Whole(least=1, most=MOST_ORDERS, allow_none=True, load_default=None)
    allow_short = Flag(allow_none=True, load_default=None)

    @validates_schema
    def check(self, data: Mapping[str, Any], **_: Any) -> None:
        if all(value is None for value in data.values()):
            raise refuse("nothing_to_do", "must set at least one limit")


class AccountLimitsRequest(SymbolLimitsRequest):
    max_gross_exposure = DecimalText(allow_none=True, load_default=None)
    max_daily_loss = DecimalText(allow_none=True, load_default=None)
    allowed_symbols = Symbols(allow_none=True, load_default=None)
    denied_symbols = Symbols(allow_none=True, load_default=None)


class _Limits(_About):
    max_quantity = DecimalText(required=True, allow_none=True)
    max_notional = DecimalText(required=True, allow_none=True)
    price_collar_bps = Whole(least=1, most=10_000, required=True, allow_none=True)
    max_orders_per_minute = Whole(least=1, most=1_000_000, required=True, allow_none=True)
    max_orders_per_day = Whole(least=1, most=MOST_ORDERS, required=True, allow_none=True)
    max_position_quantity = DecimalText(required=True, allow_none=True)
    max_position_notional = DecimalText(required=True, allow_none=True)
    max_open_orders = Whole(least=1, most=MOST_ORDERS, required=True, allow_none=True)
    allow_short = Flag(required=True, allow_none=True)


class AccountLimits(_Limits):
    max_gross_exposure = DecimalText(required=True, allow_none=True)
    max_daily_loss = DecimalText(required=True, allow_none=True)
    allowed_symbols = Symbols(required=True, allow_none=True)
    denied_symbols = Symbols(required=True, allow_none=True)


class SymbolLimits(_Limits):
    symbol = Text(longest=32, required=True)


class SymbolControls(Schema):
    account_id = Identifier(required=True)
    organization_id = Identifier(required=True)
    symbol = Text(longest=32, required=True)
    manual = fields.Nested(SymbolManualControl, required=True, allow_none=True)
    time = fields.Nested(SymbolTimeControl, required=True, allow_none=True)
    limits = fields.Nested(SymbolLimits, required=True, allow_none=True)


class SymbolControlsList(Schema):
    data = fields.List(fields.Nested(SymbolControls), required=True)
    next_cursor = Text(longest=1_000, required=True, allow_none=True)
