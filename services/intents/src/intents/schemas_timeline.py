"""The JSON of a timeline."""

from typing import Any

from marshmallow import Schema, fields

from chassis import tracing
from chassis.fields import Choice, Identifier, Instant, Text, Whole, rfc3339
from intents import model
from intents.model.timeline import CALL, COMMAND, KINDS, REPORT, GivenCommand, LoggedReport, MadeCall, TimelineEntry
from intents.schemas import Action

_ACTION = Action().fields
_ACTOR: Any = _ACTION["actor"]
_CONTROLS: Any = _ACTION["controls"]
_STATUS = Choice(tuple(model.Status), required=True, allow_none=True)


class TimelineCommand(Schema):
    type = Choice(tuple(map(str, model.CommandType)), required=True)
    payload = fields.Dict(required=True)
    actor = fields.Nested(_ACTOR.nested, required=True)
    reason = Text(longest=64, required=True, allow_none=True)
    controls = fields.Nested(_CONTROLS.nested, required=True)
    from_status = _STATUS
    to_status = Choice(tuple(model.Status), required=True)
    request_id = Text(longest=128, required=True, allow_none=True)


class TimelineCall(Schema):
    verb = Choice(("create", "replace", "cancel", "find", "read"), required=True)
    result = Choice(
        ("ANSWERED", "ABSENT", "REFUSED", "RATE_LIMITED", "CREDENTIAL_REFUSED", "NOT_SENT", "UNKNOWN"), required=True
    )
    reason = Text(longest=512, required=True, allow_none=True)
    duration_ms = fields.Float(required=True)
    times = Whole(least=1, most=2**31 - 1, required=True)
    last_at = Instant(required=True)


class TimelineReport(Schema):
    type = Choice(("BROKER_ORDER", "BROKER_TRADE", "BROKER_POSITION"), required=True)
    occurred_at = Instant(required=True)
    from_status = _STATUS
    to_status = _STATUS
    broker_order_id = Text(longest=255, required=True, allow_none=True)
    execution_id = Text(longest=255, required=True, allow_none=True)
    payload = fields.Dict(required=True)


class TimelineRecord(Schema):
    """What `timeline_record` makes, for the document. Of `command`, `call` and `report` it has the one of its kind."""

    at = Instant(required=True)
    kind = Choice(KINDS, required=True)
    sequence = Whole(least=1, most=2**63 - 1, required=True, allow_none=True)
    action_id = Identifier(required=True, allow_none=True)
    trace_id = Text(longest=32, required=True, allow_none=True)
    command = fields.Nested(TimelineCommand)
    call = fields.Nested(TimelineCall)
    report = fields.Nested(TimelineReport)


class TimelinePage(Schema):
    data = fields.List(fields.Nested(TimelineRecord), required=True)
    next_cursor = Text(longest=1024, required=True, allow_none=True)


def timeline_record(entry: TimelineEntry) -> dict[str, Any]:
    match entry:
        case GivenCommand():
            return _record(entry, COMMAND, entry.sequence, str(entry.action_id), entry.traceparent, _command(entry))
        case MadeCall():
            return _record(entry, CALL, None, str(entry.action_id), None, _call(entry))
        case LoggedReport():
            return _record(entry, REPORT, entry.sequence, None, entry.traceparent, _report(entry))


def _record(
    entry: TimelineEntry,
    kind: str,
    sequence: int | None,
    action_id: str | None,
    traceparent: str | None,
    detail: dict[str, Any],
) -> dict[str, Any]:
    return {
        "at": rfc3339(entry.key.at),
        "kind": kind,
        "sequence": sequence,
        "action_id": action_id,
        "trace_id": tracing.trace_id(traceparent),
        kind.lower(): detail,
    }


def _command(entry: GivenCommand) -> dict[str, Any]:
    return {
        "type": entry.type,
        "payload": entry.payload,
        "actor": entry.actor._asdict(),
        "reason": entry.reason,
        "controls": entry.controls,
        "from_status": entry.from_status,
        "to_status": entry.to_status,
        "request_id": entry.request_id,
    }


def _call(entry: MadeCall) -> dict[str, Any]:
    return {
        "verb": entry.verb,
        "result": entry.result,
        "reason": entry.reason,
        "duration_ms": entry.milliseconds,
        "times": entry.times,
        "last_at": rfc3339(entry.last_started_at),
    }


def _report(entry: LoggedReport) -> dict[str, Any]:
    return {
        "type": entry.type,
        "occurred_at": rfc3339(entry.occurred_at),
        "from_status": entry.from_status,
        "to_status": entry.to_status,
        "broker_order_id": entry.payload.get("broker_order_id"),
        "execution_id": entry.payload.get("execution_id"),
        "payload": entry.payload,
    }
