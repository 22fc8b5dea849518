"""The JSON of refusals, and the query that chooses among them."""

from collections.abc import Mapping
from typing import Any

from marshmallow import Schema, fields

from chassis.fields import Choice, Identifier, Instant, Text, Whole, rfc3339
from chassis.problems import Problem
from chassis.query import instant
from control_rules import RefusalCode
from intents import model, schemas_orders
from intents.schemas import Action
from intents.schemas_commands import SPEC_OR_NULL

_CODES = [str(code) for code in RefusalCode]

_ACTOR: Any = Action().fields["actor"]


class RefusalReason(Schema):
    code = Text(longest=64, required=True)
    control = Text(longest=64, required=True)
    version = Whole(least=0, most=2**63 - 1, required=True)
    message = Text(longest=2048, required=True)


class Refusal(Schema):
    """What `refusal_record` makes, for the document."""

    id = Identifier(required=True)
    type = Choice(tuple(map(str, model.CommandType)), required=True)
    symbol = Text(longest=32, required=True)
    order_side = Choice(model.ORDER_SIDES, required=True, allow_none=True)
    spec = fields.Raw(required=True, allow_none=True, metadata=SPEC_OR_NULL)
    ref_intent_id = Identifier(required=True, allow_none=True)
    actor = fields.Nested(_ACTOR.nested, required=True)
    reasons = fields.List(fields.Nested(RefusalReason), required=True)
    request_id = Text(longest=128, required=True, allow_none=True)
    created_at = Instant(required=True)


class RefusalPage(Schema):
    data = fields.List(fields.Nested(Refusal), required=True)
    next_cursor = Text(longest=1024, required=True, allow_none=True)


QUERY: Mapping[str, dict[str, Any]] = {
    "from": {"type": "string", "format": "date-time", "description": "Refused at this moment or later."},
    "to": {"type": "string", "format": "date-time", "description": "Refused before this moment."},
    "symbol": {"type": "string", "description": "Refusals of this symbol."},
    "code": {"type": "string", "enum": _CODES, "description": "A code among the reasons."},
}


def refusal_record(refused: model.RefusedCommand) -> dict[str, Any]:
    return {**model.refusal_record(refused), "created_at": rfc3339(refused.created_at)}


def refusal_filter(query: Mapping[str, str]) -> model.RefusalFilter:
    code = query.get("code")
    if code is not None and code not in _CODES:
        raise Problem(400, "bad_filter", f"code must be one of {', '.join(_CODES)}.")
    since, until = instant(query, "from"), instant(query, "to")
    return model.RefusalFilter(since, until, schemas_orders.symbol(query), code)
