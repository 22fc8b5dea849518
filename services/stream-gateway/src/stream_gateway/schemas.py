"""Events as they are sent: encoded once, whoever and however many read them."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from google.protobuf.descriptor import FieldDescriptor  # type: ignore[import-untyped]
from google.protobuf.json_format import MessageToJson  # type: ignore[import-untyped]
from google.protobuf.message import Message  # type: ignore[import-untyped]

from chassis import logs
from stream_gateway.model import EVENT_TYPES, Event
from trading_proto import trading_pb2

log = logs.get(__name__)

TYPES: Mapping[str, trading_pb2.EventType] = {
    name: trading_pb2.EventType.Value(f"EVENT_TYPE_{name}") for name in EVENT_TYPES
}
_PAYLOADS = {name: name.lower() for name in EVENT_TYPES}
_NUMBERS = {FieldDescriptor.TYPE_UINT64: int, FieldDescriptor.TYPE_BOOL: bool}


class Entry:
    """One event, ready to be written. Many subscribers share it."""

    __slots__ = ("_text", "message", "sequence", "type")

    def __init__(self, sequence: int, event_type: int, message: bytes) -> None:
        self.sequence, self.type, self.message = sequence, event_type, message
        self._text: bytes | None = None

    @property
    def text(self) -> bytes:
        """The same as a Server-Sent Event; only made when somebody reads it that way."""
        if self._text is None:
            self._text = _server_sent(trading_pb2.TradingEvent.FromString(self.message))
        return self._text


def entry(event: Event, epoch: str) -> Entry:
    """The event encoded. A type that this version does not know stays in the order of things and is sent to nobody."""
    message = trading_pb2.TradingEvent(
        event_id=str(event.event_id),
        sequence=event.sequence,
        trading_account_id=str(event.account_id),
        type=TYPES.get(event.type),
        occurred_at=event.occurred_at,
        traceparent=event.traceparent,
        epoch=epoch,
        previous_hash=event.previous_hash,
        hash=event.hash,
    )
    if event.type in TYPES:
        inner = getattr(message, _PAYLOADS[event.type])
        inner.SetInParent()
        _fill(inner, _shaped(event))
    return Entry(event.sequence, message.type, message.SerializeToString())


def _shaped(event: Event) -> Mapping[str, Any]:
    """The payload with the names of the schema: an order's kind is a key in JSON and a field here."""
    spec = event.payload.get("spec")
    if event.type not in ("INTENT_ACTION", "REFUSAL") or not isinstance(spec, dict) or len(spec) != 1:
        return event.payload
    [(kind, terms)] = spec.items()
    return {**event.payload, "spec": {"order_kind": kind, **terms}}


def _fill(message: Message, values: Mapping[str, Any]) -> None:
    """Copy the fields that both sides have. One that does not fit is left out: the event must not be lost for it."""
    for field in message.DESCRIPTOR.fields:
        value = values.get(field.name)
        if value is None:
            continue
        try:
            _set(message, field, value)
        except (TypeError, ValueError, AttributeError):
            log.warning("event_field_left_out", message=message.DESCRIPTOR.name, field=field.name)


def _set(message: Message, field: FieldDescriptor, value: Any) -> None:
    if field.type == FieldDescriptor.TYPE_MESSAGE:
        inner = getattr(message, field.name)
        if field.is_repeated:
            for item in value:
                _fill(inner.add(), item)
        else:
            inner.SetInParent()
            _fill(inner, value)
    elif field.is_repeated:
        getattr(message, field.name).extend(map(str, value))
    else:
        setattr(message, field.name, _NUMBERS.get(field.type, str)(value))


def heartbeat(account_id: UUID, epoch: str, position: int, latest: int) -> Entry:
    """`position` is how far the stream has come, `latest` how far the log has."""
    message = trading_pb2.TradingEvent(sequence=position, trading_account_id=str(account_id), epoch=epoch)
    message.heartbeat.latest_sequence = latest
    message.occurred_at.GetCurrentTime()
    return Entry(position, 0, message.SerializeToString())


def replay_complete(account_id: UUID, epoch: str, position: int) -> Entry:
    message = trading_pb2.TradingEvent(sequence=position, trading_account_id=str(account_id), epoch=epoch)
    message.replay_complete.SetInParent()
    message.occurred_at.GetCurrentTime()
    return Entry(position, 0, message.SerializeToString())


def _server_sent(message: trading_pb2.TradingEvent) -> bytes:
    """The id is what a browser sends back as Last-Event-ID. JSON escapes line breaks, so one line holds the data."""
    name = trading_pb2.EventType.Name(message.type) if message.type else str(message.WhichOneof("payload"))
    data = MessageToJson(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True, indent=None
    )
    return f"id: {message.sequence}@{message.epoch}\nevent: {name}\ndata: {data}\n\n".encode()
