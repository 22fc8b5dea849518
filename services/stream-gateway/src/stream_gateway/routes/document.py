"""What the OpenAPI document says of the Server-Sent Events; their data comes from the schema of the gRPC messages."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor  # type: ignore[import-untyped]

from chassis.openapi import Description, Route
from stream_gateway.callers import READERS
from stream_gateway.model import MAX_SEQUENCE
from stream_gateway.routes.refusals import STATUSES
from stream_gateway.schemas import TYPES
from stream_gateway.stream_counts import KEPT_S, TRANSPORTS
from stream_gateway.tickets import KEPT_SECONDS
from trading_proto import trading_comments, trading_pb2

PATH = "/v1/accounts/{account_id}/events"
NAMES: Mapping[str, int] = {f"EVENT_TYPE_{name}": number for name, number in TYPES.items()}
WORDS = ("heartbeat", "replay_complete", "end")

_EVENT: Descriptor = trading_pb2.TradingEvent.DESCRIPTOR
_TIMESTAMP = "google.protobuf.Timestamp"
_PLAIN = {
    FieldDescriptor.TYPE_STRING: {"type": "string"},
    FieldDescriptor.TYPE_BOOL: {"type": "boolean"},
    FieldDescriptor.TYPE_UINT64: {"type": "string", "pattern": "^[0-9]+$"},  # JSON numbers would lose digits
}


_HEARTBEAT = {
    "event_id": "",
    "sequence": "0",
    "trading_account_id": "4261fb4e-e564-5a23-bc97-88db50c7ae11",
    "type": "EVENT_TYPE_UNSPECIFIED",
    "occurred_at": "2026-01-30T14:30:00.000000Z",
    "epoch": "5f1c",
    "heartbeat": {"latest_sequence": "0"},
}
"""An example: what a stream that replays nothing begins with."""


def _schemas() -> dict[str, dict[str, Any]]:
    return {
        "ServerSentEvent": {
            "type": "object",
            "required": ["event", "data"],
            "properties": {
                "id": {
                    "type": "string",
                    "pattern": "^[0-9]+@[0-9a-f-]+$",
                    "description": "The sequence to resume after, and the epoch of the log that it counts in.",
                },
                "event": {
                    "type": "string",
                    "enum": [*NAMES, *WORDS],
                    "description": "The type of the event, or a word about the stream itself.",
                },
                "data": {
                    "type": "string",
                    "description": "The event as JSON; of `end` why the stream ends.",
                    "contentMediaType": "application/json",
                    "contentSchema": {"anyOf": [_reference(_EVENT), {"$ref": "#/components/schemas/StreamEnd"}]},
                },
            },
        },
        "StreamEnd": {
            "type": "object",
            "required": ["code", "detail"],
            "properties": {
                "code": {"type": "string", "description": "Why the stream ends, for programs."},
                "detail": {"type": "string", "description": "Why the stream ends, for people."},
            },
        },
        **{_name(message): _schema(message) for message in _messages(_EVENT)},
    }


def _messages(message: Descriptor) -> Iterator[Descriptor]:
    """The message and all that it holds, each before what is inside it; some come more than once."""
    yield message
    for field in message.fields:
        if field.message_type is not None and field.message_type.full_name != _TIMESTAMP:
            yield from _messages(field.message_type)


def _schema(message: Descriptor) -> dict[str, Any]:
    """As protobuf writes it in JSON: what has no presence is always there, the rest when it is set."""
    return {
        "type": "object",
        "required": [field.name for field in message.fields if not field.has_presence],
        "properties": {field.name: _of_field(field) for field in message.fields},
    }


def _of_field(field: FieldDescriptor) -> dict[str, Any]:
    shape = {"type": "array", "items": _of_value(field)} if field.is_repeated else _of_value(field)
    return {**shape, "description": trading_comments.FIELDS[f"{field.containing_type.name}.{field.name}"]}


def _of_value(field: FieldDescriptor) -> dict[str, Any]:
    if field.message_type is not None:
        is_time = field.message_type.full_name == _TIMESTAMP
        return {"type": "string", "format": "date-time"} if is_time else _reference(field.message_type)
    if field.enum_type is not None:
        return {"type": "string", "enum": [value.name for value in field.enum_type.values]}
    return _PLAIN[field.type]


def _reference(message: Descriptor) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{_name(message)}"}


def _name(message: Descriptor) -> str:
    """`Stream` in front: the document of the whole API has an Account and an Action of its own."""
    return message.name if message is _EVENT else f"Stream{message.name}"


ROUTE = Route(
    path=PATH,
    name="stream_events",
    tag="stream",
    description=Description(
        "The account's events as they come, as Server-Sent Events",
        answers={200: None},
        errors=tuple({status for _, status, _ in STATUSES.values()}),
        codes=("bad_subscription", "bad_position", "out_of_range", "too_many_streams"),
        query={
            "subscriptions": {
                "type": "array",
                "items": {"type": "string", "enum": list(NAMES)},
                "description": "The types wanted, also with commas between them; all by default.",
            },
            "resume_after_sequence": {
                "type": "integer",
                "minimum": 0,
                "maximum": MAX_SEQUENCE,
                "description": "Everything after it, then what is new; without it from now on.",
            },
            "resume_epoch": {
                "type": "string",
                "description": "The epoch received with that sequence. The log was restored since: 400 `out_of_range`.",
            },
            "ticket": {
                "type": "string",
                "description": "In place of a credential, for browsers: from `POST …/events/ticket`, once.",
            },
        },
        headers={"Last-Event-ID": "The id of the last event received: it counts before both parameters."},
    ),
    alternatives=READERS,
    content={
        "text/event-stream": {
            "schema": {
                "type": "string",
                "contentMediaType": "text/event-stream",
                "contentSchema": {"type": "array", "items": {"$ref": "#/components/schemas/ServerSentEvent"}},
            },
            "example": f"id: 0@5f1c\nevent: heartbeat\ndata: {json.dumps(_HEARTBEAT)}\n\n",
        }
    },
    schemas=_schemas(),
)
TICKET_ROUTE = Route(
    path=f"{PATH}/ticket",
    name="issue_ticket",
    tag="stream",
    description=Description(
        "A ticket that opens one stream of the account",
        answers={201: None},
        errors=(404,),
        reads_only=True,
        note=f"For a browser's EventSource, which sends no headers: valid once, for {KEPT_SECONDS} seconds.",
    ),
    alternatives=READERS,
    content={"application/json": {"schema": {"$ref": "#/components/schemas/EventsTicket"}}},
    schemas={
        "EventsTicket": {
            "type": "object",
            "required": ["ticket", "expires_at"],
            "properties": {
                "ticket": {
                    "type": "string",
                    "description": "Opens one stream, as `?ticket=`. Valid once.",
                    "examples": ["…"],
                },
                "expires_at": {
                    "type": "string",
                    "format": "date-time",
                    "description": "When it can no longer be used.",
                    "examples": ["2026-01-30T14:30:30.000000Z"],
                },
            },
        }
    },
    method="post",
)
_COUNT = {"type": "integer", "minimum": 0}
STREAMS_ROUTE = Route(
    path=f"{PATH}/streams",
    name="count_streams",
    tag="stream",
    description=Description(
        "How many streams of the account are open",
        answers={200: None},
        errors=(404,),
        note=f"At all gateways together; those of a gateway that was killed count for up to {KEPT_S} seconds more.",
    ),
    alternatives=READERS,
    content={"application/json": {"schema": {"$ref": "#/components/schemas/OpenStreams"}}},
    schemas={
        "OpenStreams": {
            "type": "object",
            "required": ["account_id", "open", "by_transport"],
            "properties": {
                "account_id": {"type": "string", "format": "uuid"},
                "open": {**_COUNT, "description": "How many streams are open, of all callers.", "examples": [3]},
                "by_transport": {
                    "$ref": "#/components/schemas/StreamsByTransport",
                    "description": "The same by transport.",
                },
            },
        },
        "StreamsByTransport": {
            "type": "object",
            "required": list(TRANSPORTS),
            "properties": {
                "grpc": {**_COUNT, "description": "Those over gRPC.", "examples": [1]},
                "sse": {**_COUNT, "description": "Those of Server-Sent Events.", "examples": [2]},
            },
        },
    },
    python_call="client.open_streams()",
)
ROUTES = (ROUTE, TICKET_ROUTE, STREAMS_ROUTE)
