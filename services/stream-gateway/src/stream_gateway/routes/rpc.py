"""trading.TradingService over gRPC."""

import asyncio
from operator import attrgetter
from typing import Any, NoReturn
from uuid import UUID

import grpc
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from chassis import logs, problems
from chassis.authentication import PresentedCredentials
from stream_gateway import gateway as gateways
from stream_gateway.gateway import Gateway
from stream_gateway.model import BadSubscription
from stream_gateway.routes.callers import is_account_id, presented
from stream_gateway.routes.calls import Context, address, message
from stream_gateway.routes.refusals import refusal
from stream_gateway.schemas import TYPES
from stream_gateway.usecases import Request
from trading_proto import trading_pb2

log = logs.get(__name__)

TRANSPORT = "grpc"
SERVICE = "trading.TradingService"
_MESSAGE = attrgetter("message")
_BROKEN = (grpc.aio.InternalError, grpc.aio.UsageError)
_KNOWN = frozenset(TYPES.values())


def handlers(gateway: Gateway) -> grpc.GenericRpcHandler:
    """Bytes in, bytes out: an event is encoded once, before it is known who reads it."""

    async def subscribe_events(_messages: object, context: Context) -> None:
        async def read() -> Request:
            return _request(await message(context))

        try:
            stream = await gateway.subscribe(_presented(context, gateway), read, TRANSPORT)
        except Exception as error:  # noqa: BLE001 - one place reports every refusal
            await _end(context, error)
        try:
            ending = await gateway.run(
                stream, lambda: context.send_initial_metadata(()), context.write, _MESSAGE, _BROKEN
            )
            await _end(context, ending)  # waits until the subscriber has read everything before it
        finally:
            gateway.streams.release(stream)

    method: Any = grpc.stream_stream_rpc_method_handler(subscribe_events)
    return grpc.method_handlers_generic_handler(SERVICE, {"SubscribeEvents": method})


async def _end(context: Context, error: Exception) -> NoReturn:
    refused = refusal(error)
    gateways.count_ending(TRANSPORT, refused.reason)
    try:
        await context.abort(refused.rpc_code, refused.detail)
    except _BROKEN:
        raise asyncio.CancelledError from None  # the subscriber has gone in the same moment


def _request(data: bytes) -> Request:
    try:
        request = trading_pb2.SubscribeEventsRequest.FromString(data)
    except DecodeError:
        raise problems.Problem(400, detail="The request is not a SubscribeEventsRequest.") from None
    types = frozenset(request.subscriptions)
    return Request(
        UUID(request.trading_account_id) if is_account_id(request.trading_account_id) else None,
        types,
        request.resume_after_sequence if request.HasField("resume_after_sequence") else None,
        request.resume_epoch or None,
        None if types and types <= _KNOWN else BadSubscription(),
    )


def _presented(context: Context, gateway: Gateway) -> PresentedCredentials:
    return presented(context.invocation_metadata() or (), address(context), gateway.config.trusted_proxies)
