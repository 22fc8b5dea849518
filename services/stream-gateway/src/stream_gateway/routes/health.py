"""grpc.health.v1.Health, whose calls are counted by themselves: no subscriber can have a probe refused."""

from collections.abc import Awaitable, Callable
from typing import Any

import grpc
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from grpc_health.v1 import health, health_pb2

from chassis import problems
from stream_gateway.fairness import ConcurrencyLimiter, QueueFull
from stream_gateway.routes.calls import Context, address, message
from stream_gateway.routes.refusals import refusal

CALLS_PER_ADDRESS = 100

Answer = Callable[[health_pb2.HealthCheckRequest, Any], Awaitable[health_pb2.HealthCheckResponse | None]]


def handlers(servicer: health.aio.HealthServicer) -> grpc.GenericRpcHandler:
    limiter = ConcurrencyLimiter(CALLS_PER_ADDRESS)
    methods = {name: _method(getattr(servicer, name), limiter) for name in ("Check", "Watch")}
    return grpc.method_handlers_generic_handler(health.SERVICE_NAME, methods)


def _method(answer: Answer, limiter: ConcurrencyLimiter) -> Any:
    async def handle(_messages: object, context: Context) -> None:
        try:
            with limiter.slot(address(context)):
                response = await answer(await _request(context), context)
                if response is not None:
                    await context.write(response)
        except QueueFull:
            await _refuse(context, problems.Problem(429, detail="Too many health checks at a time."))
        except problems.Problem as problem:
            await _refuse(context, problem)

    return grpc.stream_stream_rpc_method_handler(
        handle, response_serializer=health_pb2.HealthCheckResponse.SerializeToString
    )


async def _request(context: Context) -> health_pb2.HealthCheckRequest:
    request = health_pb2.HealthCheckRequest()
    try:
        request.ParseFromString(await message(context))
    except DecodeError:
        raise problems.Problem(400, detail="The request is not a HealthCheckRequest.") from None
    return request


async def _refuse(context: Context, problem: problems.Problem) -> None:
    refused = refusal(problem)
    await context.abort(refused.rpc_code, refused.detail)
