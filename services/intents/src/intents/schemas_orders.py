"""The JSON of orders, and the query that chooses among them."""

from collections.abc import Mapping
from typing import Any, TypeVar
from uuid import UUID

from marshmallow import Schema, ValidationError, fields

import control_rules
from chassis.fields import Choice, Flag, Identifier, Instant, Text, rfc3339
from chassis.problems import Problem
from chassis.query import instant
from intents import model
from intents.schemas import Action
from intents.schemas_commands import SPEC
from intents.schemas_submits import CLIENT_ID, TAG

Chosen = TypeVar("Chosen")
_STATE: Any = Action().fields["state"]


class Order(Schema):
    """What `order_record` makes, for the document."""

    intent_id = Identifier(required=True)
    client_id = Text(longest=model.CLIENT_ID_LONGEST, required=True, allow_none=True)
    tags = fields.List(Text(longest=model.TAG_LONGEST), required=True)
    symbol = Text(longest=32, required=True)
    order_side = Choice(model.ORDER_SIDES, required=True)
    route_strategy = Choice(model.ROUTE_STRATEGIES, required=True)
    extended_hours = Flag(required=True, metadata={"description": "Whether it may trade outside the regular hours."})
    spec = fields.Raw(required=True, metadata=SPEC)
    state = fields.Nested(_STATE.nested, required=True)
    created_at = Instant(required=True)
    last_action = fields.Nested(Action, required=True)


class OrderPage(Schema):
    data = fields.List(fields.Nested(Order), required=True)
    next_cursor = Text(longest=1024, required=True, allow_none=True)


def order_record(order: model.Order) -> dict[str, Any]:
    last_action = model.record(order.last_action)
    return {
        "intent_id": last_action["intent_id"],
        "client_id": order.client_id,
        "tags": list(order.tags),
        "symbol": last_action["symbol"],
        "order_side": last_action["order_side"],
        "route_strategy": last_action["route_strategy"],
        "extended_hours": order.extended_hours,
        "spec": order.spec,
        "state": last_action["state"],
        "created_at": rfc3339(order.created_at),
        "last_action": last_action,
    }


_DESCENDING = {"asc": False, "desc": True}
_MOMENT = {"type": "string", "format": "date-time"}
QUERY: Mapping[str, dict[str, Any]] = {
    "status": {
        "type": "string",
        "enum": list(model.STATUS_FILTERS),
        "description": "Orders that are `open`, `closed`, or of this status.",
    },
    "symbol": {"type": "string", "description": "Orders of this symbol."},
    "tag": {"type": "string", "description": "Orders with this tag."},
    "client_id": {"type": "string", "description": "The order with this id of yours."},
    "group_id": {"type": "string", "format": "uuid", "description": "The legs of this order group."},
    "from": {**_MOMENT, "description": "Created at this moment or later."},
    "to": {**_MOMENT, "description": "Created before this moment."},
    "order": {
        "type": "string",
        "enum": list(_DESCENDING),
        "default": "asc",
        "description": "Oldest first, or newest first.",
    },
}


def order_filter(query: Mapping[str, str]) -> model.OrderFilter:
    return model.OrderFilter(
        _choice(query, "status", model.STATUS_FILTERS) or tuple(model.Status),
        symbol(query),
        _text(query, "tag", TAG),
        _text(query, "client_id", CLIENT_ID),
        instant(query, "from"),
        instant(query, "to"),
        descending=_choice(query, "order", _DESCENDING) or False,
        group_id=_group_id(query),
    )


def symbol(query: Mapping[str, str]) -> str | None:
    given = query.get("symbol")
    normalized = None if given is None else control_rules.normalized_symbol(given)
    if given is not None and normalized is None:
        raise Problem(400, "bad_filter", f"symbol must match {control_rules.SYMBOL_PATTERN}.")
    return normalized


def _group_id(query: Mapping[str, str]) -> UUID | None:
    given = query.get("group_id")
    try:
        return None if given is None else UUID(given)
    except ValueError:
        raise Problem(400, "bad_filter", "group_id must be a UUID.") from None


def _choice(query: Mapping[str, str], name: str, words: Mapping[str, Chosen]) -> Chosen | None:
    """What the word stands for; None without one."""
    given = query.get(name)
    if given is not None and given not in words:
        raise Problem(400, "bad_filter", f"{name} must be one of {', '.join(words)}.")
    return None if given is None else words[given]


def _text(query: Mapping[str, str], name: str, field: Text) -> str | None:
    given = query.get(name)
    try:
        return None if given is None else field.deserialize(given)
    except ValidationError:
        raise Problem(400, "bad_filter", f"{name} must be 1 to {field.longest} printable ASCII characters.") from None
