"""A preview, in and out: the command as in a submit, and the decision with its reasons."""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from marshmallow import Schema, ValidationError, fields, post_load, validates_schema

from chassis.fields import Choice, DecimalText, Flag, Identifier, Instant, Text, Whole, refuse
from control_rules import (
    Command,
    CommandType,
    Decision,
    OrderSide,
    Outcome,
    RefusalCode,
    Verdict,
)
from controls import model
from controls.schemas.controls import MOST_ORDERS, Symbol, words

MOST_PERCENT = 100
"""Of a trail: a stop that stays all of the price behind it is none."""


class FreeDecimalText(DecimalText):
    """A decimal as a string that may be zero, and negative where a position is meant."""

    def __init__(self, *, negative: bool = False, **options: Any) -> None:
        super().__init__(**options)
        self.negative = negative

    @property
    def documented_pattern(self) -> str:
        return f"^{'-?' if self.negative else ''}{self.PATTERN.pattern}$"

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Decimal:
        below_zero = self.negative and type(value) is str and value.startswith("-")
        digits = value[1:] if below_zero else value
        if type(digits) is str and self.PATTERN.fullmatch(digits) and Decimal(digits) == 0:
            return Decimal(0)
        number = super()._deserialize(digits, attr, data, **kwargs)
        return -number if below_zero else number


class _Order(Schema):
    quantity = DecimalText(required=True)
    time_in_force = Choice(("DAY", "GTC", "IOC", "FOK"))


class PreviewMarket(_Order):
    """By its quantity or by its notional."""

    quantity = DecimalText()
    notional = DecimalText()

    @validates_schema
    def check(self, data: Mapping[str, Any], **_: Any) -> None:
        if ("quantity" in data) == ("notional" in data):
            raise refuse("one_of", "must have exactly one of quantity, notional")


class PreviewLimit(_Order):
    limit_price = DecimalText(required=True)


class PreviewStop(_Order):
    stop_price = DecimalText(required=True)


class PreviewStopLimit(_Order):
    limit_price = DecimalText(required=True)
    stop_price = DecimalText(required=True)


class PreviewTrailingStop(_Order):
    """With one of the two trails."""

    trail_amount = DecimalText()
    trail_percent = DecimalText()

    @validates_schema
    def check(self, data: Mapping[str, Any], **_: Any) -> None:
        if ("trail_amount" in data) == ("trail_percent" in data):
            raise refuse("one_of", "must have exactly one of trail_amount, trail_percent")
        if data.get("trail_percent", 0) >= MOST_PERCENT:
            raise ValidationError({"trail_percent": refuse("range", f"must be below {MOST_PERCENT}").messages})


class PreviewSpec(Schema):
    """Exactly one kind of order."""

    Market = fields.Nested(PreviewMarket)
    Limit = fields.Nested(PreviewLimit)
    Stop = fields.Nested(PreviewStop)
    StopLimit = fields.Nested(PreviewStopLimit)
    TrailingStop = fields.Nested(PreviewTrailingStop)

    @validates_schema
    def check(self, data: Mapping[str, Any], **_: Any) -> None:
        if len(data) != 1:
            raise refuse("one_kind", "must have exactly one of Market, Limit, Stop, StopLimit, TrailingStop")


class PreviewPayload(Schema):
    """As in a submit; a REPLACE also says which symbol and side, and is judged without an intent if it names none."""

    symbol = Symbol(longest=64)
    order_side = Choice(words(OrderSide))
    route_strategy = Choice(("AUTO", "DIRECT"))
    extended_hours = Flag()
    ref_intent_id = Identifier()
    spec = fields.Nested(PreviewSpec)


NEEDED = {
    CommandType.CREATE: ("symbol", "order_side", "spec"),
    CommandType.REPLACE: ("symbol", "order_side", "spec"),
    CommandType.CANCEL: (),
}


class PreviewCommand(Schema):
    type = Choice(words(CommandType), required=True)
    payload = fields.Nested(PreviewPayload, required=True)

    @validates_schema
    def check(self, data: Mapping[str, Any], **_: Any) -> None:
        missing = [name for name in NEEDED[CommandType(data["type"])] if name not in data["payload"]]
        if missing:
            errors = refuse("required", "Missing data for required field.").messages
            raise ValidationError({"payload": dict.fromkeys(missing, errors)})


class PreviewFacts(Schema):
    """Facts to judge by instead of those that a submit would use now; null: judge as if it were not known."""

    position_quantity = FreeDecimalText(negative=True, allow_none=True)
    open_quantity = FreeDecimalText()
    opposite_open_quantity = FreeDecimalText()
    filled_quantity = FreeDecimalText()
    reference_price = DecimalText(allow_none=True)
    other_exposure = FreeDecimalText(allow_none=True)
    equity = FreeDecimalText(negative=True, allow_none=True)
    day_start_equity = FreeDecimalText(negative=True, allow_none=True)
    account_orders_last_minute = Whole(least=0, most=MOST_ORDERS)
    account_orders_last_day = Whole(least=0, most=MOST_ORDERS)
    account_open_orders = Whole(least=0, most=MOST_ORDERS)
    symbol_orders_last_minute = Whole(least=0, most=MOST_ORDERS)
    symbol_orders_last_day = Whole(least=0, most=MOST_ORDERS)
    symbol_open_orders = Whole(least=0, most=MOST_ORDERS)


class _Moment(Instant):
    """A moment whose local time exists in every zone."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> datetime:
        moment = super()._deserialize(value, attr, data, **kwargs)
        if not 1970 < moment.year < 9999:
            raise refuse("range", "must be after 1970 and before 9999")
        return moment


class PreviewRequest(Schema):
    command = fields.Nested(PreviewCommand, required=True)
    at = _Moment(allow_none=True, load_default=None)
    facts = fields.Nested(PreviewFacts, load_default=dict)

    @post_load
    def preview(self, data: dict[str, Any], **_: Any) -> model.Preview:
        facts = dict(data["facts"])
        filled = facts.pop("filled_quantity", None)
        intent_id = data["command"]["payload"].get("ref_intent_id")
        return model.Preview(_command(data["command"]), data["at"], facts, intent_id, filled)


def _command(data: Mapping[str, Any]) -> Command:
    payload = data["payload"]
    order: Mapping[str, Any] = next(iter(payload.get("spec", {}).values()), {})
    return Command(
        CommandType(data["type"]),
        payload.get("symbol", ""),
        OrderSide(payload["order_side"]) if "order_side" in payload else None,
        order.get("quantity", Decimal(0)),
        order.get("limit_price"),
        order.get("stop_price"),
        trail_amount=order.get("trail_amount"),
        trail_percent=order.get("trail_percent"),
        notional=order.get("notional"),
    )


class PreviewCheck(Schema):
    control = Text(longest=64, required=True)
    version = Whole(least=1, most=2**63 - 1, required=True)
    outcome = Choice(words(Outcome), required=True)


class PreviewReason(Schema):
    code = Choice(words(RefusalCode), required=True)
    control = Text(longest=64, required=True)
    version = Whole(least=1, most=2**63 - 1, required=True)
    message = Text(longest=1_000, required=True)


class PreviewUsed(Schema):
    """The facts that decided; null is not known."""

    position_quantity = FreeDecimalText(negative=True, required=True, allow_none=True)
    open_quantity = FreeDecimalText(required=True)
    opposite_open_quantity = FreeDecimalText(required=True)
    reference_price = DecimalText(required=True, allow_none=True)
    reference_price_source = Text(longest=32, required=True, allow_none=True)
    reference_price_at = Instant(required=True, allow_none=True)
    other_exposure = FreeDecimalText(required=True, allow_none=True)
    equity = FreeDecimalText(negative=True, required=True, allow_none=True)
    day_start_equity = FreeDecimalText(negative=True, required=True, allow_none=True)
    account_orders_last_minute = Whole(least=0, most=MOST_ORDERS, required=True)
    account_orders_last_day = Whole(least=0, most=MOST_ORDERS, required=True)
    account_open_orders = Whole(least=0, most=MOST_ORDERS, required=True)
    symbol_orders_last_minute = Whole(least=0, most=MOST_ORDERS, required=True)
    symbol_orders_last_day = Whole(least=0, most=MOST_ORDERS, required=True)
    symbol_open_orders = Whole(least=0, most=MOST_ORDERS, required=True)


class PreviewAnswer(Schema):
    account_id = Identifier(required=True)
    at = Instant(required=True)
    decision = Choice(words(Verdict), required=True)
    checks = fields.List(fields.Nested(PreviewCheck), required=True)
    reasons = fields.List(fields.Nested(PreviewReason), required=True)
    facts = fields.Nested(PreviewUsed, required=True)


def preview_answer(account_id: UUID, decision: Decision, at: datetime, facts: Mapping[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = PreviewAnswer().dump(
        {
            "account_id": account_id,
            "at": at,
            "decision": decision.decision.value,
            "checks": decision.checks,
            "reasons": decision.refusals,
            "facts": facts,
        }
    )
    return answer
