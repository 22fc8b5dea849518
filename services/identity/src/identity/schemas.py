"""identity's JSON, in and out."""

from typing import Any

from marshmallow import Schema, fields, post_load, validates_schema

from chassis.fields import Choice, Flag, Identifier, Instant, Text, Whole, refuse
from chassis.principals import ANY_ROLE, Kind
from chassis.tokens import is_name
from identity import model
from identity.schemas_keys import Future, KeyBounds, KeyBoundsRequest, Words

ROLES = tuple(role.value for role in ANY_ROLE)
NAME_LENGTH = 200
EXTERNAL_ID = {
    "description": "The identity provider's id of the organization: `provider_id` in the path that looks one up by it."
}


class ValidateApiKeyRequest(Schema):
    api_key = Text(longest=255, required=True)


class ApiKeyValidation(Schema):
    id = Identifier(required=True)
    organization_id = Identifier(required=True)
    environment = Choice(model.ENVIRONMENTS, required=True)
    disabled = Flag(required=True)
    created_at = Instant(required=True)
    expires_at = Instant(required=True, allow_none=True)
    bounds = fields.Nested(KeyBounds, required=True, allow_none=True)


class Changes(Schema):
    """A PATCH: what is there is changed, and something must be."""

    @validates_schema
    def _not_empty(self, data: dict[str, Any], **_: Any) -> None:
        if not data:
            raise refuse("empty", "names nothing to change")


class ProviderId(Text):
    """An id of the provider's that a path and a token can name; an organization of any other could not be reached."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        text = super()._deserialize(value, attr, data, **kwargs)
        if not is_name(text) or text.startswith("/"):
            raise refuse("characters", "must be printable, and not begin with a slash")
        return text


class OrganizationRequest(Schema):
    external_id = ProviderId(longest=255, required=True, metadata=EXTERNAL_ID)
    name = Text(longest=NAME_LENGTH, required=True)


class OrganizationChanges(Changes):
    name = Text(longest=NAME_LENGTH)
    disabled = Flag()
    totp_required = Flag()


class Organization(Schema):
    id = Identifier(required=True)
    external_id = Text(longest=255, required=True, metadata=EXTERNAL_ID)
    name = Text(longest=NAME_LENGTH, required=True)
    provider = Text(longest=255, required=True)
    disabled = Flag(required=True)
    created_at = Instant(required=True)
    totp_required = Flag(required=True)


class MemberRequest(Schema):
    role = Choice(ROLES, required=True)


class Member(Schema):
    subject = Text(longest=255, required=True)
    user_id = Identifier(required=True)
    role = Choice(ROLES, required=True)
    created_at = Instant(required=True)


class Membership(Schema):
    organization_id = Identifier(required=True)
    external_id = Text(longest=255, required=True, metadata=EXTERNAL_ID)
    name = Text(longest=NAME_LENGTH, required=True)
    role = Choice(ROLES, required=True)


class CurrentUser(Schema):
    id = Identifier(required=True, allow_none=True)
    provider = Text(longest=255, required=True)
    subject = Text(longest=255, required=True)
    organization_id = Identifier(required=True, allow_none=True)
    role = Choice(ROLES, required=True, allow_none=True)
    memberships = fields.List(fields.Nested(Membership), required=True)


class Self(Schema):
    principal_type = Choice(tuple(kind.value for kind in Kind), required=True)
    id = Text(longest=255, required=True)
    organization_id = Identifier(required=True, allow_none=True)
    role = Choice(ROLES, required=True, allow_none=True)
    environment = Choice(model.ENVIRONMENTS, required=True, allow_none=True)
    scopes = fields.List(Choice(model.SCOPES), required=True)
    permissions = fields.List(Choice(model.PERMISSIONS), required=True)
    entitlements = fields.List(Choice(model.ENTITLEMENTS), required=True)
    bounds = fields.Nested(KeyBounds, required=True, allow_none=True)


class ApiKeyRequest(Schema):
    name = Text(longest=NAME_LENGTH, required=True)
    environment = Choice(model.ENVIRONMENTS, required=True)
    permissions = Words(model.PERMISSIONS, required=True)
    expires_at = Future(allow_none=True, load_default=None)
    bounds = fields.Nested(KeyBoundsRequest, allow_none=True, load_default=None)

    @post_load
    def _to_model(self, data: dict[str, Any], **_: Any) -> model.NewApiKey:
        return model.NewApiKey(**data | {"permissions": tuple(data["permissions"])})


class ApiKeyChanges(Changes):
    name = Text(longest=NAME_LENGTH)
    permissions = Words(model.PERMISSIONS)
    disabled = Flag()
    expires_at = Future(allow_none=True)
    bounds = fields.Nested(KeyBoundsRequest, allow_none=True)


class ApiKey(Schema):
    id = Identifier(required=True)
    name = Text(longest=NAME_LENGTH, required=True)
    environment = Choice(model.ENVIRONMENTS, required=True)
    permissions = fields.List(Choice(model.PERMISSIONS), required=True)
    prefix = Text(longest=64, required=True)
    disabled = Flag(required=True)
    expires_at = Instant(required=True, allow_none=True)
    last_used_at = Instant(required=True, allow_none=True)
    created_at = Instant(required=True)
    bounds = fields.Nested(KeyBounds, required=True, allow_none=True)


class CreatedApiKey(ApiKey):
    """The one answer that holds the key itself."""

    key = Text(longest=64, required=True)


class ServiceAccountRequest(Schema):
    name = Text(longest=NAME_LENGTH, required=True)
    scopes = Words(model.SCOPES, required=True)


class ServiceAccountChanges(Changes):
    name = Text(longest=NAME_LENGTH)
    scopes = Words(model.SCOPES)
    disabled = Flag()


class ServiceAccount(Schema):
    client_id = Text(longest=64, required=True)
    name = Text(longest=NAME_LENGTH, required=True)
    scopes = fields.List(Choice(model.SCOPES), required=True)
    disabled = Flag(required=True)
    created_at = Instant(required=True)


class CreatedServiceAccount(ServiceAccount):
    """The one answer that holds the secret itself."""

    client_secret = Text(longest=64, required=True)


class EntitlementRequest(Schema):
    expires_at = Future(allow_none=True, load_default=None)


class Entitlement(Schema):
    organization_id = Identifier(required=True)
    name = Choice(model.ENTITLEMENTS, required=True)
    expires_at = Instant(required=True, allow_none=True)
    created_at = Instant(required=True)


class OrganizationPage(Schema):
    data = fields.List(fields.Nested(Organization), required=True)
    next_cursor = Text(longest=500, required=True, allow_none=True)


class MemberPage(Schema):
    data = fields.List(fields.Nested(Member), required=True)
    next_cursor = Text(longest=500, required=True, allow_none=True)


class EntitlementPage(Schema):
    data = fields.List(fields.Nested(Entitlement), required=True)
    next_cursor = Text(longest=500, required=True, allow_none=True)


class ApiKeyPage(Schema):
    data = fields.List(fields.Nested(ApiKey), required=True)
    next_cursor = Text(longest=500, required=True, allow_none=True)


class ServiceAccountPage(Schema):
    data = fields.List(fields.Nested(ServiceAccount), required=True)
    next_cursor = Text(longest=500, required=True, allow_none=True)


class TokenRequest(Schema):
    """Described and not loaded: RFC 6749 has errors of its own for what is wrong with it."""

    grant_type = Choice(
        (
            "client_credentials",
            "authorization_code",
            "refresh_token",
            "urn:ietf:params:oauth:grant-type:device_code",
        ),
        required=True,
    )
    scope = Text(longest=255)
    client_id = Text(longest=255)
    client_secret = Text(longest=255)
    code = Text(longest=255)
    code_verifier = Text(longest=128)
    redirect_uri = Text(longest=2048)
    refresh_token = Text(longest=255)
    device_code = Text(longest=255)


class DeviceRequest(Schema):
    client_id = Text(longest=255, required=True)


class RevocationRequest(Schema):
    token = Text(longest=2048, required=True)
    token_type_hint = Choice(("refresh_token",))
    client_id = Text(longest=255, required=True)


class ConsentRequest(Schema):
    csrf = Text(longest=255, required=True)
    decision = Choice(("allow", "deny"), required=True)
    organization = Identifier()


class TokenRefusal(Schema):
    error = Choice(
        (
            "invalid_request",
            "invalid_client",
            "invalid_scope",
            "unsupported_grant_type",
            "invalid_grant",
            "unauthorized_client",
            "unsupported_token_type",
            "access_denied",
            "authorization_pending",
            "slow_down",
            "expired_token",
            "insecure_transport",
        ),
        required=True,
    )
    error_description = Text(longest=255, required=True)


class TokenAnswer(Schema):
    """A service account's token has scopes; with a person's comes a refresh token."""

    access_token = Text(longest=8192, required=True)
    token_type = Choice(("Bearer",), required=True)
    expires_in = Whole(least=1, most=2**31 - 1, required=True)
    scope = Text(longest=1000)
    refresh_token = Text(longest=255)
