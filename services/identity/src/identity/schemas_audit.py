"""The audit log, out, and the filters of its list."""

from collections.abc import Mapping
from typing import Any

from marshmallow import Schema, fields

from chassis.fields import Choice, Identifier, Instant, Text, Whole
from chassis.problems import Problem
from chassis.query import instant
from chassis.tokens import is_name
from identity import audit, model

_CHANGES = (name for name in model.EVENT_TYPES if not name.startswith("service_account."))
TYPES = tuple(sorted((*_CHANGES, *audit.LOGIN_TYPES)))
ACTORS = ("user", "service_account", "system")

AUDIT_VALUE = {"AuditValue": {"type": "object", "additionalProperties": {}}}
_VALUE_OR_NULL = {"oneOf": [{"$ref": "#/components/schemas/AuditValue"}, {"type": "null"}]}
_MOMENT = {"type": "string", "format": "date-time"}
FILTERS: Mapping[str, Mapping[str, Any]] = {
    "type": {"type": "string", "enum": list(TYPES)},
    "target": {"type": "string", "description": "What was changed: a key's id, a member's subject, an entitlement."},
    "actor": {"type": "string", "description": "Who changed it: a user's subject, a service account's client id."},
    "from": {**_MOMENT, "description": "Made at this moment or later."},
    "to": {**_MOMENT, "description": "Made before this moment."},
}


class AuditActor(Schema):
    """Who made the change; `system` is the platform's operator, by hand."""

    type = Choice(ACTORS, required=True)
    id = Text(longest=255, required=True)


class AuditEntry(Schema):
    """`from` and `to` hold the fields that changed; null where there was nothing before, or is nothing after."""

    organization_id = Identifier(required=True)
    sequence = Whole(least=1, most=2**63 - 1, required=True)
    type = Choice(TYPES, required=True)
    target = Text(longest=255, required=True)
    from_ = fields.Raw(
        required=True, allow_none=True, data_key="from", attribute="value_before", metadata=_VALUE_OR_NULL
    )
    to = fields.Raw(required=True, allow_none=True, attribute="value_after", metadata=_VALUE_OR_NULL)
    actor = fields.Nested(AuditActor, required=True)
    request_id = Text(longest=128, required=True, allow_none=True)
    created_at = Instant(required=True)


class AuditEntryPage(Schema):
    data = fields.List(fields.Nested(AuditEntry), required=True)
    next_cursor = Text(longest=500, required=True, allow_none=True)


def entry_filter(query: Mapping[str, str]) -> audit.Filter:
    if query.get("type", TYPES[0]) not in TYPES:
        raise Problem(400, "bad_filter", f"type must be one of {', '.join(TYPES)}.")
    since, to = instant(query, "from"), instant(query, "to")
    if since and to and since >= to:
        raise Problem(400, "bad_time", "from must be before to.")
    return audit.Filter(query.get("type"), _name(query, "target"), _name(query, "actor"), since, to)


def _name(query: Mapping[str, str], name: str) -> str | None:
    given = query.get(name)
    if given is not None and not is_name(given):
        raise Problem(400, "bad_filter", f"{name} must be printable, of 1 to 255 characters.")
    return given
