"""accounts' JSON, in and out."""

from collections.abc import Mapping
from functools import cache
from typing import Any
from zoneinfo import available_timezones

from marshmallow import Schema, fields, post_load, validates_schema

from accounts import model
from chassis.fields import Choice, Flag, Identifier, Instant, Text, Whole, refuse
from credential_vault import Secret

_NAME: dict[str, Any] = {"longest": 120}
_BROKER_ACCOUNT: dict[str, Any] = {"longest": 64, "pattern": r"[!-~]+"}
_REASON: dict[str, Any] = {"longest": 500}
_COUNT: dict[str, Any] = {"least": 0, "most": 2**63 - 1}
_NOT_ZONES = {"localtime", "Factory", "posixrules"}


@cache
def _time_zones() -> frozenset[str]:
    return frozenset(available_timezones() - _NOT_ZONES)


class TimeZone(Text):
    """The name of a zone in the IANA database."""

    def __init__(self, **options: Any) -> None:
        super().__init__(longest=64, **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        name = super()._deserialize(value, attr, data, **kwargs)
        if name not in _time_zones():
            raise refuse("time_zone", "must be a time zone of the IANA database, such as America/New_York")
        return name


class NewAccount(Schema):
    name = Text(required=True, **_NAME)
    broker = Choice(model.BROKERS, required=True)
    environment = Choice(model.ENVIRONMENTS, required=True)
    broker_account_id = Text(allow_none=True, load_default=None, **_BROKER_ACCOUNT)
    time_zone = TimeZone(load_default="UTC")

    @post_load
    def _as_model(self, data: dict[str, Any], **_: Any) -> model.NewAccount:
        return model.NewAccount(**data)


class AccountChanges(Schema):
    name = Text(**_NAME)
    broker_account_id = Text(allow_none=True, **_BROKER_ACCOUNT)
    time_zone = TimeZone()

    @validates_schema
    def _something(self, data: dict[str, Any], **_: Any) -> None:
        if not data:
            raise refuse("empty", "must change something")


class Disable(Schema):
    reason = Text(allow_none=True, load_default=None, **_REASON)


class Enable(Schema):
    """An empty body."""


class Account(Schema):
    id = Identifier(required=True)
    organization_id = Identifier(required=True)
    name = Text(required=True, **_NAME)
    broker = Choice(model.BROKERS, required=True)
    environment = Choice(model.ENVIRONMENTS, required=True)
    broker_account_id = Text(required=True, allow_none=True, **_BROKER_ACCOUNT)
    time_zone = TimeZone(required=True)
    disabled = Flag(required=True)
    disabled_reason = Text(required=True, allow_none=True, **_REASON)
    created_at = Instant(required=True)
    updated_at = Instant(required=True)
    version = Whole(required=True, least=1, most=2**31 - 1)
    closing = Flag(
        required=True, metadata={"description": "It is being deleted, and refuses intents like a disabled one."}
    )


class AccountList(Schema):
    data = fields.List(fields.Nested(Account), required=True)
    next_cursor = fields.String(required=True, allow_none=True)


class KeyPair(Schema):
    """What the `paper` and `alpaca` brokers need for a login."""

    key_id = Text(required=True, longest=255, pattern=r"[!-~]+")
    secret_key = Text(required=True, longest=255, pattern=r"[!-~]+")


class NewSecret(Schema):
    """A body with a secret; once loaded it is hidden."""

    secret = fields.Nested(KeyPair, required=True)

    @post_load
    def _hidden(self, data: dict[str, Any], **_: Any) -> dict[str, Any]:
        return {**data, "secret": Secret(data["secret"])}


class NewCredential(NewSecret):
    label = Text(required=True, **_NAME)


# The bodies by broker: one that needs something else gets schemas of its own here.
NEW_SECRETS: Mapping[str, type[Schema]] = {"paper": NewSecret, "alpaca": NewSecret}
NEW_CREDENTIALS: Mapping[str, type[Schema]] = {"paper": NewCredential, "alpaca": NewCredential}


class Credential(Schema):
    id = Identifier(required=True)
    account_id = Identifier(required=True)
    organization_id = Identifier(required=True)
    broker = Choice(model.BROKERS, required=True)
    label = Text(required=True, **_NAME)
    status = Choice(model.CREDENTIAL_STATUSES, required=True)
    fingerprint = Text(required=True, longest=64)
    created_at = Instant(required=True)
    updated_at = Instant(required=True)
    version = Whole(required=True, least=1, most=2**31 - 1)


class CredentialList(Schema):
    data = fields.List(fields.Nested(Credential), required=True)
    next_cursor = fields.String(required=True, allow_none=True)


class OutboxHealthEntry(Schema):
    status = Choice(model.OUTBOX_STATUSES, required=True)
    event_type = Choice(model.EVENT_TYPES, required=True)
    count = Whole(required=True, **_COUNT)
    oldest_created_at = Instant(required=True)
    max_attempts = Whole(required=True, least=0, most=2**31 - 1)
    oldest_claimed_at = Instant(allow_none=True)


class OutboxHealthResponse(Schema):
    entries = fields.List(fields.Nested(OutboxHealthEntry), required=True)
    pending = Whole(required=True, **_COUNT)
    processing = Whole(required=True, **_COUNT)
    failed = Whole(required=True, **_COUNT)
    completed = Whole(required=True, **_COUNT)
    oldest_claim_at = Instant(allow_none=True)
    oldest_failed_at = Instant(allow_none=True)
    oldest_pending_at = Instant(allow_none=True)
