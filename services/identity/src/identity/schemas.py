"""identity's JSON, in and out."""

from marshmallow import Schema

from chassis.fields import Choice, Flag, Identifier, Instant, Text
from identity import model


class ValidateApiKeyRequest(Schema):
    api_key = Text(longest=255, required=True)


class ApiKeyValidation(Schema):
    id = Identifier(required=True)
    organization_id = Identifier(required=True)
    environment = Choice(model.ENVIRONMENTS, required=True)
    disabled = Flag(required=True)
    created_at = Instant(required=True)
