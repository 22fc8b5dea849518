"""The messages and errors of gRPC as everything else here has them: JSON, and our exceptions."""

from collections.abc import Mapping
from typing import Any

import grpc
from google.protobuf.descriptor import FieldDescriptor  # type: ignore[import-untyped]
from google.protobuf.timestamp_pb2 import Timestamp  # type: ignore[import-untyped]

from tip_client._proto.trading_pb2 import EventType, SubscribeEventsRequest
from tip_client.errors import ConnectionFailed, TipError
from tip_client.events import LogPosition
from tip_client.problems import error_of

METHOD = "/trading.TradingService/SubscribeEvents"
OPTIONS = (
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    (
        "grpc.http2.max_pings_without_data",
        0,
    ),  # a dead peer is noticed although we send nothing
    ("grpc.use_local_subchannel_pool", 1),  # so that a new channel is a new connection
)
_CODES: Mapping[grpc.StatusCode, tuple[int, str]] = {
    grpc.StatusCode.UNAUTHENTICATED: (401, "unauthenticated"),
    grpc.StatusCode.PERMISSION_DENIED: (403, "forbidden"),
    grpc.StatusCode.NOT_FOUND: (404, "not_found"),
    grpc.StatusCode.INVALID_ARGUMENT: (400, "bad_request"),
    grpc.StatusCode.OUT_OF_RANGE: (400, "out_of_range"),
    grpc.StatusCode.RESOURCE_EXHAUSTED: (429, "rate_limited"),
    grpc.StatusCode.UNIMPLEMENTED: (501, "not_implemented"),
}


def subscription(account_id: str, types: tuple[str, ...], after: LogPosition | None) -> SubscribeEventsRequest:
    request = SubscribeEventsRequest(trading_account_id=account_id, subscriptions=map(EventType.Value, types))
    if after is not None:
        request.resume_after_sequence = after.sequence
        request.resume_epoch = after.epoch
    return request


def message_of(message: Any) -> dict[str, Any]:
    """The message as Server-Sent Events have it: fields without presence are always there."""
    return {
        field.name: _value(field, getattr(message, field.name))
        for field in message.DESCRIPTOR.fields
        if not field.has_presence or message.HasField(field.name)
    }


def _value(field: FieldDescriptor, value: Any) -> Any:
    if field.is_repeated:
        return [_single(field, item) for item in value]
    return _single(field, value)


def _single(field: FieldDescriptor, value: Any) -> Any:
    if isinstance(value, Timestamp):
        return value.ToJsonString()
    if field.message_type is not None:
        return message_of(value)
    return EventType.Name(value) if field.enum_type is not None else value


def failure_of(error: grpc.RpcError) -> TipError:
    """Why a call ended. What is none of the caller's doing passes: the stream is resumed."""
    ended: Any = error  # a call, too, which its type does not say
    found = _CODES.get(ended.code())
    if found is None:
        return ConnectionFailed(f"The stream ended ({ended.code()}).", was_sent=True)
    return error_of(*found, str(ended.details() or ""))
