"""accounts' JSON, in and out."""

import re
from functools import cache
from typing import Any
from zoneinfo import available_timezones

from marshmallow import Schema, ValidationError, fields, post_load, validates_schema

from accounts import model
from chassis.fields import Choice, Flag, Identifier, Instant, Text, Whole, refuse
from credential_vault import Secret
from tip_brokers import BrokerDescription, ClientIds, Replacement, find, installed

_NAME: dict[str, Any] = {"longest": 120}
_BROKER_ACCOUNT: dict[str, Any] = {"longest": 64, "pattern": r"[!-~]+"}
_REASON: dict[str, Any] = {"longest": 500}
_COUNT: dict[str, Any] = {"least": 0, "most": 2**63 - 1}
_INSTALLED = "must be the name of an installed broker: GET /v1/brokers lists them"
_FLATTEN = "A market order closes what an order group has filled beyond what it was for."
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
    broker = Choice(tuple(installed()), required=True, rule=_INSTALLED)
    environment = Choice(model.ENVIRONMENTS, required=True)
    broker_account_id = Text(allow_none=True, load_default=None, **_BROKER_ACCOUNT)
    time_zone = TimeZone(load_default="UTC")
    flatten_excess = Flag(load_default=False, metadata={"description": _FLATTEN})

    @validates_schema(skip_on_field_errors=True)
    def _at_the_broker(self, data: dict[str, Any], **_: Any) -> None:
        environments = find(data["broker"]).environments
        if data["environment"] not in environments:
            problem = refuse("choice", f"must be {' or '.join(environments)} at this broker")
            raise ValidationError({"environment": problem.messages})

    @post_load
    def _as_model(self, data: dict[str, Any], **_: Any) -> model.NewAccount:
        return model.NewAccount(**data)


class AccountChanges(Schema):
    name = Text(**_NAME)
    broker_account_id = Text(allow_none=True, **_BROKER_ACCOUNT)
    time_zone = TimeZone()
    flatten_excess = Flag(metadata={"description": _FLATTEN})

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
    broker = Text(required=True, longest=65)
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
    flatten_excess = Flag(required=True, metadata={"description": _FLATTEN})


class AccountList(Schema):
    data = fields.List(fields.Nested(Account), required=True)
    next_cursor = fields.String(required=True, allow_none=True)


def _secret_name(broker: BrokerDescription) -> str:
    """Brokers that want the same share a schema: `SecretOfKeyIdAndSecretKey`."""
    words = (re.findall(r"[A-Z]?[a-z]+", part.name) for part in broker.credential)
    return "SecretOf" + "And".join("".join(map(str.capitalize, part)) for part in words)


def _secret(broker: BrokerDescription) -> dict[str, Any]:
    """For the document: what a secret of such a broker is made of."""
    return {
        "type": "object",
        "properties": {
            part.name: {
                "type": "string",
                "title": part.title,
                "description": f"{part.title}.",
                "minLength": 1,
                "maxLength": part.longest,
                "pattern": f"^{part.pattern}$",
            }
            for part in broker.credential
        },
        "required": [part.name for part in broker.credential if part.required],
        "additionalProperties": False,
    }


SECRETS = {_secret_name(broker): _secret(broker) for broker in installed().values()}


class NewSecret(Schema):
    """A body with a secret; once loaded it is hidden. What it is made of depends on the broker: see `of_broker`."""

    secret = fields.Dict(
        required=True, metadata={"anyOf": [{"$ref": f"#/components/schemas/{name}"} for name in SECRETS]}
    )

    @post_load
    def _hidden(self, data: dict[str, Any], **_: Any) -> dict[str, Any]:
        return {**data, "secret": Secret(data["secret"])}


class NewCredential(NewSecret):
    label = Text(required=True, **_NAME)


@cache
def of_broker(body: type[NewSecret], broker: str) -> Schema:
    """The body with a secret as this broker describes it."""
    parts: dict[str, fields.Field[Any]] = {
        part.name: Text(required=part.required, longest=part.longest, pattern=part.pattern)
        for part in find(broker).credential
    }
    secret = fields.Nested(Schema.from_dict(parts, name="BrokerSecret"), required=True)
    made: type[Schema] = type(body.__name__, (body,), {"secret": secret})
    return made()


class Credential(Schema):
    id = Identifier(required=True)
    account_id = Identifier(required=True)
    organization_id = Identifier(required=True)
    broker = Text(required=True, longest=65)
    label = Text(required=True, **_NAME)
    status = Choice(model.CREDENTIAL_STATUSES, required=True)
    fingerprint = Text(required=True, longest=64)
    created_at = Instant(required=True)
    updated_at = Instant(required=True)
    version = Whole(required=True, least=1, most=2**31 - 1)
    test_status = Choice(model.TEST_STATUSES, required=True, allow_none=True)
    tested_at = Instant(required=True, allow_none=True)


class CredentialList(Schema):
    data = fields.List(fields.Nested(Credential), required=True)
    next_cursor = fields.String(required=True, allow_none=True)


class BrokerSecretPart(Schema):
    name = Text(required=True, longest=64)
    title = Text(required=True, longest=64)
    required = Flag(required=True)
    secret = Flag(required=True, metadata={"description": "Hide it while it is typed."})
    longest = Whole(required=True, least=1, most=2**16)
    pattern = Text(required=True, longest=255)


class BrokerCapabilities(Schema):
    """What can be requested there; anything else is refused when it is submitted (422 `broker_cannot`)."""

    kinds = fields.Dict(
        keys=fields.String(),
        values=fields.List(fields.String()),
        required=True,
        metadata={"description": "The order kinds, each with its times in force."},
    )
    replacement = Choice(tuple(Replacement), required=True)
    client_ids = Choice(tuple(ClientIds), required=True)
    streams = Flag(required=True)
    quotes = Flag(required=True)
    executions = Flag(required=True, metadata={"description": "Whether it lists its fills, each under an id."})
    fractions = Flag(required=True, metadata={"description": "Whether a quantity may have decimals."})
    notional_orders = fields.List(
        fields.String(),
        required=True,
        metadata={"description": "The times in force of a Market order by its notional; empty if there are none."},
    )
    extended_hours = fields.Dict(
        keys=fields.String(),
        values=fields.List(fields.String()),
        required=True,
        metadata={"description": "The order kinds, each with its times in force, for outside the regular hours."},
    )
    routing = Flag(required=True, metadata={"description": "Whether an order may be routed DIRECT."})
    shared_exits = Flag(
        required=True,
        metadata={
            "description": "Whether two open orders may close the same position, as Bracket and OneCancelsOther need."
        },
    )
    exit_pairs = fields.List(
        fields.String(),
        required=True,
        metadata={
            "description": "The times in force of a Limit and a Stop or StopLimit that cancel each other, as which the "
            "exits of Bracket and OneCancelsOther are sent where shared_exits is false; empty if there are none."
        },
    )
    symbol_pattern = Text(required=True, longest=255, attribute="symbols.pattern")
    symbol_example = Text(required=True, longest=255, attribute="symbols.example")
    calls_per_minute = Whole(required=True, least=1, most=2**31 - 1, allow_none=True)


class Broker(Schema):
    name = Text(required=True, longest=65)
    title = Text(required=True, longest=120)
    environments = fields.List(Choice(model.ENVIRONMENTS), required=True)
    needs_credential = Flag(required=True)
    is_simulated = Flag(required=True, metadata={"description": "Nothing is traded there, in no environment."})
    credential = fields.List(fields.Nested(BrokerSecretPart), required=True)
    capabilities = fields.Nested(BrokerCapabilities, required=True)


class BrokerList(Schema):
    data = fields.List(fields.Nested(Broker), required=True)


class FailedOutboxRow(Schema):
    id = Whole(required=True, least=1, most=2**63 - 1)
    event_id = Identifier(required=True)
    event_type = Choice(model.EVENT_TYPES, required=True)
    organization_id = Identifier(required=True, allow_none=True)
    account_id = Identifier(required=True, allow_none=True)
    credential_id = Identifier(required=True, allow_none=True)
    attempts = Whole(required=True, least=0, most=2**31 - 1)
    last_error = Text(required=True, allow_none=True, longest=255)
    explanation = Text(required=True, allow_none=True, longest=500)
    created_at = Instant(required=True)
    failed_at = Instant(required=True, allow_none=True)
    redriven_as = Whole(required=True, allow_none=True, least=1, most=2**63 - 1)


class FailedOutboxRowList(Schema):
    data = fields.List(fields.Nested(FailedOutboxRow), required=True)
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
    redriven = Whole(required=True, **_COUNT)
    oldest_claim_at = Instant(allow_none=True)
    oldest_failed_at = Instant(allow_none=True)
    oldest_pending_at = Instant(allow_none=True)
