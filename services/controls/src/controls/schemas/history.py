"""The history of controls, out."""

from marshmallow import Schema, fields

from chassis.fields import Choice, Identifier, Instant, Text, Whole

CONTROL_VALUE = {"ControlValue": {"type": "object", "additionalProperties": {}}}
_VALUE_OR_NULL = {"oneOf": [{"$ref": "#/components/schemas/ControlValue"}, {"type": "null"}]}


class ChangeActor(Schema):
    type = Choice(("api_key", "user", "service_account", "system"), required=True)
    id = Text(longest=255, required=True)


class ControlChange(Schema):
    """`from` and `to` are what the control said; null where there was none."""

    control = Text(longest=64, required=True)
    account_id = Identifier(required=True, allow_none=True)
    symbol = Text(longest=32, required=True, allow_none=True)
    version = Whole(least=1, most=2**63 - 1, required=True)
    from_ = fields.Raw(
        required=True, allow_none=True, data_key="from", attribute="value_before", metadata=_VALUE_OR_NULL
    )
    to = fields.Raw(required=True, allow_none=True, attribute="value_after", metadata=_VALUE_OR_NULL)
    actor = fields.Nested(ChangeActor, required=True)
    request_id = Text(longest=128, required=True, allow_none=True)
    created_at = Instant(required=True)


class ControlChanges(Schema):
    data = fields.List(fields.Nested(ControlChange), required=True)
    next_cursor = Text(longest=1_000, required=True, allow_none=True)
