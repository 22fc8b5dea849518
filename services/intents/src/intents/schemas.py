"""The JSON of intents, in and out. The order kinds come from `model.KINDS`, for loading and for the document alike."""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from uuid import UUID

from flask import Request
from marshmallow import Schema, ValidationError, fields, missing
from werkzeug.exceptions import HTTPException

import control_rules
from chassis.fields import Choice, DecimalText, Flag, Identifier, Instant, Text, Whole, refuse
from chassis.problems import Problem
from intents import model

BATCH_LIMIT = 100
_IDEMPOTENCY_KEY = re.compile(r"[\x20-\x7e]{1,255}", re.ASCII)


class _Symbol(Text):
    """Trimmed and upper-cased, as controls keep it."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        symbol = control_rules.normalized_symbol(super()._deserialize(value, attr, data, **kwargs))
        if symbol is None:
            raise refuse("pattern", f"must match {control_rules.SYMBOL_PATTERN}")
        return symbol


Fields = Mapping[str, fields.Field[Any]]


def _load(known: Fields, given: Any) -> dict[str, Any]:
    """What `Schema.load` does with flat fields, messages included, at a third of its price: this is the hot path."""
    if type(given) is not dict:
        raise ValidationError({"_schema": ["Invalid input type."]})
    loaded: dict[str, Any] = {}
    errors: dict[str, Any] = {}
    for name, field in known.items():
        try:
            if name in given:
                loaded[name] = field.deserialize(given[name])
            elif field.required:
                errors[name] = ["Missing data for required field."]
            elif field.load_default is not missing:
                loaded[name] = field.load_default
        except ValidationError as error:
            errors[name] = error.messages
    errors |= {name: ["Unknown field."] for name in given if name not in known}
    if errors:
        raise ValidationError(errors)
    return loaded


def _terms(kind: str) -> Fields:
    decimals = {name: DecimalText(required=True) for name in ("quantity", *model.KINDS[kind].prices)}
    return {**decimals, "time_in_force": Choice(model.KINDS[kind].times_in_force)}


_TERMS = {kind: _terms(kind) for kind in model.KINDS}


class _SpecField(fields.Field[model.Spec]):
    """An object whose single key names the order kind."""

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> model.Spec:
        if type(value) is not dict or len(value) != 1:
            raise refuse("one_kind", f"must be an object with one key of {', '.join(model.KINDS)}")
        [(kind, terms)] = value.items()
        if kind not in _TERMS:
            raise ValidationError({kind: refuse("choice", f"must be one of {', '.join(model.KINDS)}").messages})
        try:
            _load(_TERMS[kind], terms)
        except ValidationError as error:
            raise ValidationError({kind: error.messages}) from None
        return model.Spec(kind, terms)


_REFERENCE = Identifier(required=True)
_SPEC = _SpecField(required=True)
_CREATE: Fields = {
    "symbol": _Symbol(longest=64, required=True),
    "order_side": Choice(model.ORDER_SIDES, required=True),
    "route_strategy": Choice(model.ROUTE_STRATEGIES, load_default="AUTO"),
    "spec": _SPEC,
}
_PAYLOADS: Mapping[str, tuple[Fields, Any]] = {
    "CREATE": (_CREATE, model.Create),
    "REPLACE": ({"ref_intent_id": _REFERENCE, "spec": _SPEC}, model.Replace),
    "CANCEL": ({"ref_intent_id": _REFERENCE}, model.Cancel),
}
_ENVELOPE: Fields = {"type": Choice(tuple(_PAYLOADS), required=True), "payload": fields.Raw(required=True)}


class CommandField(fields.Field[model.Command]):
    """`{"type", "payload"}`, where the type says what the payload must be."""

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> model.Command:
        envelope = _load(_ENVELOPE, value)
        known, command = _PAYLOADS[envelope["type"]]
        try:
            loaded = _load(known, envelope["payload"])
        except ValidationError as error:
            raise ValidationError({"payload": error.messages}) from None
        made: model.Command = command(payload=envelope["payload"], **loaded)
        return made


def _object(required: Mapping[str, Any], optional: Mapping[str, Any] | None = None) -> dict[str, Any]:
    properties = {**required, **(optional or {})}
    return {"type": "object", "required": list(required), "properties": properties, "additionalProperties": False}


def _command_document() -> dict[str, Any]:
    """The three commands for the OpenAPI document; marshmallow has no word for "one of"."""
    decimal = {"type": "string", "pattern": f"^{DecimalText.PATTERN.pattern}$", "examples": ["10", "12.5"]}
    kinds = [
        _object(
            {
                kind: _object(
                    dict.fromkeys(("quantity", *model.KINDS[kind].prices), decimal),
                    {
                        "time_in_force": {
                            "type": "string",
                            "enum": list(model.KINDS[kind].times_in_force),
                            "default": "DAY",
                        }
                    },
                )
            }
        )
        for kind in model.KINDS
    ]
    spec = {"oneOf": kinds}
    reference = {"type": "string", "format": "uuid"}
    symbol = {"type": "string", "pattern": r"^[A-Za-z0-9][A-Za-z0-9._:/-]{0,31}$", "examples": ["AAPL"]}
    create = _object(
        {"symbol": symbol, "order_side": {"type": "string", "enum": list(model.ORDER_SIDES)}, "spec": spec},
        {"route_strategy": {"type": "string", "enum": list(model.ROUTE_STRATEGIES), "default": "AUTO"}},
    )
    payloads = {
        "CREATE": create,
        "REPLACE": _object({"ref_intent_id": reference, "spec": spec}),
        "CANCEL": _object({"ref_intent_id": reference}),
    }
    return {
        "oneOf": [
            _object({"type": {"type": "string", "enum": [name]}, "payload": payload})
            for name, payload in payloads.items()
        ]
    }


class SubmitIntent(Schema):
    command = CommandField(required=True, metadata=_command_document())


class SubmitBatch(Schema):
    commands = fields.Raw(
        required=True,
        metadata={"type": "array", "minItems": 1, "maxItems": BATCH_LIMIT, "items": _command_document()},
    )
    atomic = Flag(load_default=False)


_SUBMIT: Fields = {"command": CommandField(required=True)}
_BATCH = SubmitBatch()


class Attempt(NamedTuple):
    """A body as far as it could be read. What is wrong with it is told after the caller was found to be allowed."""

    command: model.Command | None
    error: Exception | None = None

    def loaded(self) -> model.Command:
        if self.command is None:
            raise self.error or Problem(400)
        return self.command


def command(body: Any) -> model.Command:
    """The command of a submit's body."""
    loaded: model.Command = _load(_SUBMIT, body)["command"]
    return loaded


def attempt(incoming: Request) -> Attempt:
    try:
        return Attempt(command(incoming.get_json()))
    except (ValidationError, Problem, HTTPException) as error:
        return Attempt(None, error)


class Batch(NamedTuple):
    commands: tuple[Attempt, ...]
    atomic: bool

    @property
    def references(self) -> list[UUID]:
        """The intents that the commands are about."""
        found = {one.command.ref_intent_id for one in self.commands if one.command}
        return sorted(reference for reference in found if reference)


def batch(incoming: Request) -> Batch:
    """The commands of a batch; one that cannot be read is refused by itself and not with the others."""
    body = _BATCH.load(incoming.get_json())
    given = body["commands"]
    if type(given) is not list or not 1 <= len(given) <= BATCH_LIMIT:
        raise ValidationError({"commands": refuse("length", f"must be a list of 1 to {BATCH_LIMIT}").messages})
    return Batch(tuple(_one_of_batch(one) for one in given), body["atomic"])


def _one_of_batch(given: Any) -> Attempt:
    try:
        return Attempt(command({"command": given}))
    except ValidationError as error:
        return Attempt(None, error)


def idempotency_key(given: str) -> str:
    if not _IDEMPOTENCY_KEY.fullmatch(given):
        raise Problem(400, "bad_idempotency_key", "Idempotency-Key must be 1 to 255 printable ASCII characters.")
    return given


def batch_keys(given: str | None, count: int) -> list[str | None]:
    """A key for each place of a batch, made of the caller's; no caller can send one with a line feed."""
    if given is None:
        return [None] * count
    digest = hashlib.sha256(idempotency_key(given).encode()).hexdigest()
    return [f"batch\n{place}\n{digest}" for place in range(count)]


def request_hash(command: model.Command) -> bytes:
    """Equal for bodies that say the same, however they are spaced."""
    return hashlib.sha256(json.dumps([command.type, command.payload], sort_keys=True).encode()).digest()


class _CommandRecord(Schema):
    type = Choice(tuple(_PAYLOADS), required=True)
    payload = fields.Dict(required=True)


class _Actor(Schema):
    type = Choice(("api_key", "user", "service_account", "system"), required=True)
    id = Text(longest=255, required=True)


class _Check(Schema):
    control = Text(longest=64, required=True)
    version = Whole(least=0, most=2**63 - 1, required=True)
    outcome = Text(longest=32, required=True)


class _Controls(Schema):
    decision = Choice(("ALLOWED",), required=True)
    checks = fields.List(fields.Nested(_Check), required=True)


class _State(Schema):
    status = Choice(tuple(model.Status), required=True)
    filled_quantity = Text(longest=64, required=True)
    leaves_quantity = Text(longest=64, required=True)
    average_fill_price = Text(longest=64, required=True, allow_none=True)
    broker_order_id = Text(longest=255, required=True, allow_none=True)
    reason_code = Text(longest=64, required=True, allow_none=True)
    outcome = Choice(("unknown",), required=True, allow_none=True)
    updated_at = Instant(required=True)


class Action(Schema):
    """What `model.record` makes, for the document."""

    id = Identifier(required=True)
    sequence = Whole(least=0, most=2**63 - 1, required=True)
    intent_id = Identifier(required=True)
    account_id = Identifier(required=True)
    organization_id = Identifier(required=True)
    environment = Choice(("paper", "live"), required=True)
    command = fields.Nested(_CommandRecord, required=True)
    symbol = Text(longest=32, required=True)
    order_side = Choice(model.ORDER_SIDES, required=True)
    spec = fields.Dict(required=True, allow_none=True)
    route_strategy = Choice(model.ROUTE_STRATEGIES, required=True)
    ref_intent_id = Identifier(required=True, allow_none=True)
    actor = fields.Nested(_Actor, required=True)
    reason = Text(longest=64, required=True, allow_none=True)
    controls = fields.Nested(_Controls, required=True)
    created_at = Instant(required=True)
    state = fields.Nested(_State, required=True)
    previous_hash = Text(shortest=0, longest=64, required=True)
    hash = Text(shortest=0, longest=64, required=True)


class ActionPage(Schema):
    data = fields.List(fields.Nested(Action), required=True)
    next_cursor = Text(longest=1024, required=True, allow_none=True)


class _BatchResult(Schema):
    status = Whole(least=200, most=599, required=True)
    action = fields.Nested(Action)
    problem = fields.Dict()


class BatchResults(Schema):
    results = fields.List(fields.Nested(_BatchResult), required=True)


class _Broken(Schema):
    sequence = Whole(least=0, most=2**63 - 1, required=True)
    action_id = Text(longest=64, required=True, allow_none=True)
    reason = Text(longest=64, required=True)


class Verification(Schema):
    account_id = Identifier(required=True)
    valid = Flag(required=True)
    checked = Whole(least=0, most=2**63 - 1, required=True)
    last_sequence = Whole(least=0, most=2**63 - 1, required=True)
    signed_sequence = Whole(least=1, most=2**63 - 1, required=True, allow_none=True)
    log_epoch = Identifier(required=True)
    first_broken = fields.Nested(_Broken, required=True, allow_none=True)
    next_cursor = Text(longest=1024, required=True, allow_none=True)


class _SymbolCount(Schema):
    symbol = Text(longest=32, required=True)
    total_actions = Whole(least=0, most=2**63 - 1, required=True)


class _Latencies(Schema):
    submit_p50 = fields.Float(required=True, allow_none=True)
    submit_p95 = fields.Float(required=True, allow_none=True)
    fill_p50 = fields.Float(required=True, allow_none=True)
    fill_p95 = fields.Float(required=True, allow_none=True)


class Statistics(Schema):
    account_id = Identifier(required=True)
    time_window = Choice(tuple(model.WINDOWS), required=True)
    from_ = Instant(required=True, allow_none=True, data_key="from", attribute="since")
    to = Instant(required=True)
    total_actions = Whole(least=0, most=2**63 - 1, required=True)
    total_intents = Whole(least=0, most=2**63 - 1, required=True)
    by_type = fields.Dict(required=True)
    by_status = fields.Dict(required=True)
    by_symbol = fields.List(fields.Nested(_SymbolCount), required=True)
    fill_rate = fields.Float(required=True, allow_none=True)
    refusals = fields.Dict(required=True)
    latency_ms = fields.Nested(_Latencies, required=True)
