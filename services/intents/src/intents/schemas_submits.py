"""The JSON of commands. The order kinds come from `model.KINDS`, for loading and for the document alike."""

import hashlib
import json
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from flask import Request
from marshmallow import Schema, ValidationError, fields, missing
from werkzeug.exceptions import HTTPException

import control_rules
from chassis.fields import Choice, DecimalText, Flag, Identifier, Text, refuse
from chassis.problems import Problem
from intents import model
from intents.schemas_commands import COMMAND

BATCH_LIMIT = 100
_PRINTABLE = r"[ -~]+"
_IDEMPOTENCY_KEY = re.compile(r"[\x20-\x7e]{1,255}", re.ASCII)


class Symbol(Text):
    """Trimmed and upper-cased, as controls keep it."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        symbol = control_rules.normalized_symbol(super()._deserialize(value, attr, data, **kwargs))
        if symbol is None:
            raise refuse("pattern", f"must match {control_rules.SYMBOL_PATTERN}")
        return symbol


CLIENT_ID = Text(longest=model.CLIENT_ID_LONGEST, pattern=_PRINTABLE)
TAG = Text(longest=model.TAG_LONGEST, pattern=_PRINTABLE)


class _Tags(fields.Field[list[str]]):
    """A few short strings, each once."""

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> list[str]:
        if type(value) is not list or len(value) > model.MOST_TAGS:
            raise refuse("length", f"must be a list of up to {model.MOST_TAGS} strings")
        errors = {place: fault for place, tag in enumerate(value) if (fault := self._fault(tag))}
        if errors:
            raise ValidationError(errors)
        if len(set(value)) < len(value):
            raise refuse("repeated", "must not name a tag twice")
        return value

    def _fault(self, tag: Any) -> Any:
        try:
            TAG.deserialize(tag)
        except ValidationError as error:
            return error.messages
        return None


Fields = Mapping[str, fields.Field[Any]]


def _load(schema: Fields, given: Any) -> dict[str, Any]:
    """What `Schema.load` does with flat fields, messages included, at a third of its price: this is the hot path."""
    if type(given) is not dict:
        raise ValidationError({"_schema": ["Invalid input type."]})
    loaded: dict[str, Any] = {}
    errors: dict[str, Any] = {}
    for name, field in schema.items():
        try:
            if name in given:
                loaded[name] = field.deserialize(given[name])
            elif field.required:
                errors[name] = ["Missing data for required field."]
            elif field.load_default is not missing:
                loaded[name] = field.load_default
        except ValidationError as error:
            errors[name] = error.messages
    errors |= {name: ["Unknown field."] for name in given if name not in schema}
    if errors:
        raise ValidationError(errors)
    return loaded


def _terms(kind: str) -> Fields:
    rules = model.KINDS[kind]
    decimals = {name: DecimalText(required=True) for name in rules.required}
    either = {name: DecimalText() for name in rules.optional}
    return {**decimals, **either, "time_in_force": Choice(rules.times_in_force)}


_TERMS = {kind: _terms(kind) for kind in model.KINDS}


def _check_form(kind: str, loaded: Mapping[str, Any]) -> None:
    for names in model.KINDS[kind].one_of:
        if len(loaded.keys() & set(names)) != 1:
            raise refuse("one_of", f"must have exactly one of {', '.join(names)}")
    for name, bound in model.BELOW.items():
        if loaded.get(name, 0) >= bound:
            raise ValidationError({name: refuse("range", f"must be below {bound}").messages})


class _SpecField(fields.Field[model.Spec]):
    """An object whose single key names the order kind."""

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> model.Spec:
        if type(value) is not dict or len(value) != 1:
            raise refuse("one_kind", f"must be an object with one key of {', '.join(model.KINDS)}")
        [(kind, terms)] = value.items()
        if kind not in _TERMS:
            raise ValidationError({kind: refuse("choice", f"must be one of {', '.join(model.KINDS)}").messages})
        try:
            _check_form(kind, _load(_TERMS[kind], terms))
        except ValidationError as error:
            raise ValidationError({kind: error.messages}) from None
        return model.Spec(kind, terms)


class _CreateSpecField(fields.Field[model.Spec | model.OrderGroup]):
    """The spec of an order, or an object whose single key names a group of them and which holds theirs."""

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> model.Spec | model.OrderGroup:
        kind: str = next(iter(value)) if type(value) is dict and len(value) == 1 else ""
        if kind not in model.GROUPS:
            spec: model.Spec = _SPEC.deserialize(value)
            return spec
        try:
            legs = _load(dict.fromkeys(model.GROUPS[kind].legs, _SPEC), value[kind])
            self._refuse_other_quantities(legs)
        except ValidationError as error:
            raise ValidationError({kind: error.messages}) from None
        return model.OrderGroup(kind, legs)

    def _refuse_other_quantities(self, legs: Mapping[str, model.Spec]) -> None:
        """The legs of a group are about one quantity, which each names."""
        quantities = {role: spec.terms.get("quantity") for role, spec in legs.items()}
        first = next(iter(quantities.values()))
        for role, quantity in quantities.items():
            if first is None or quantity is None or Decimal(quantity) != Decimal(first):
                fault = refuse("quantity", "must be the quantity of the group's first leg").messages
                raise ValidationError({role: {legs[role].kind: {"quantity": fault}}})


def _created(payload: Any, spec: model.Spec | model.OrderGroup, **loaded: Any) -> model.Create:
    if isinstance(spec, model.Spec):
        return model.Create(payload=payload, spec=spec, **loaded)
    return model.Create(payload=payload, spec=next(iter(spec.legs.values())), group=spec, **loaded)


_REFERENCE = Identifier(required=True)
_SPEC = _SpecField(required=True)
_CREATE: Fields = {
    "symbol": Symbol(longest=64, required=True),
    "order_side": Choice(model.ORDER_SIDES, required=True),
    "route_strategy": Choice(model.ROUTE_STRATEGIES, load_default="AUTO"),
    "spec": _CreateSpecField(required=True),
    "client_id": CLIENT_ID,
    "tags": _Tags(),
    "extended_hours": Flag(load_default=False),
}
_PAYLOADS: Mapping[str, tuple[Fields, Any]] = {
    "CREATE": (_CREATE, _created),
    "REPLACE": ({"ref_intent_id": _REFERENCE, "spec": _SPEC}, model.Replace),
    "CANCEL": ({"ref_intent_id": _REFERENCE}, model.Cancel),
}
_ENVELOPE: Fields = {"type": Choice(tuple(_PAYLOADS), required=True), "payload": fields.Raw(required=True)}


class CommandField(fields.Field[model.Command]):
    """`{"type", "payload"}`, where the type says what the payload must be."""

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> model.Command:
        envelope = _load(_ENVELOPE, value)
        schema, command = _PAYLOADS[envelope["type"]]
        try:
            loaded = _load(schema, envelope["payload"])
        except ValidationError as error:
            raise ValidationError({"payload": error.messages}) from None
        made: model.Command = command(payload=envelope["payload"], **loaded)
        return made


class SubmitIntent(Schema):
    command = CommandField(required=True, metadata=COMMAND)


class SubmitBatch(Schema):
    commands = fields.Raw(
        required=True,
        metadata={"type": "array", "minItems": 1, "maxItems": BATCH_LIMIT, "items": COMMAND},
    )
    atomic = Flag(load_default=False)


_SUBMIT: Fields = {"command": CommandField(required=True)}
_BATCH = SubmitBatch()


class Attempt(NamedTuple):
    """A body as far as it could be read. What is wrong with it is reported after the caller was found to be allowed."""

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


def batch(incoming: Request) -> Batch:
    """The commands of a batch; one that cannot be read is refused by itself and not with the others."""
    body = _BATCH.load(incoming.get_json())
    given = body["commands"]
    if type(given) is not list or not 1 <= len(given) <= BATCH_LIMIT:
        raise ValidationError({"commands": refuse("length", f"must be a list of 1 to {BATCH_LIMIT}").messages})
    return Batch(tuple(_batch_entry(entry) for entry in given), body["atomic"])


class BatchAttempt(NamedTuple):
    """The body of a batch as far as it could be read, like `Attempt`."""

    batch: Batch | None
    error: Exception | None = None

    @property
    def first_cancel(self) -> model.Command | None:
        commands = [attempt.command for attempt in self.batch.commands] if self.batch else []
        return next((command for command in commands if isinstance(command, model.Cancel)), None)

    def loaded(self) -> Batch:
        if self.batch is None:
            raise self.error or Problem(400)
        return self.batch


def attempt_batch(incoming: Request) -> BatchAttempt:
    try:
        return BatchAttempt(batch(incoming))
    except (ValidationError, Problem, HTTPException) as error:
        return BatchAttempt(None, error)


def _batch_entry(given: Any) -> Attempt:
    try:
        return Attempt(command({"command": given}))
    except ValidationError as error:
        return Attempt(None, error)


def idempotency_key(header: str | None, command: model.Command) -> model.IdempotencyKey | None:
    """The value of Idempotency-Key, with what the command says."""
    return None if header is None else model.IdempotencyKey(checked_key(header), request_hash(command))


def checked_key(header: str) -> str:
    if not _IDEMPOTENCY_KEY.fullmatch(header):
        raise Problem(400, "bad_idempotency_key", "Idempotency-Key must be 1 to 255 printable ASCII characters.")
    return header


def batch_keys(given: str | None, count: int) -> list[str | None]:
    """A key for each place of a batch, made of the caller's; no caller can send one with a line feed."""
    if given is None:
        return [None] * count
    digest = hashlib.sha256(checked_key(given).encode()).hexdigest()
    return [f"batch\n{place}\n{digest}" for place in range(count)]


def request_hash(command: model.Command) -> bytes:
    """Equal for bodies that say the same, however they are spaced."""
    return hashlib.sha256(json.dumps([command.type, command.payload], sort_keys=True).encode()).digest()
