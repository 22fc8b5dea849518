"""gRPC calls before their request is read: counted by address from the start, and not awaited without end."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health, health_pb2

from chassis import http_rules
from stream_gateway.routes.health import CALLS_PER_ADDRESS, handlers

from .subscribers import connected, run

Code = grpc.StatusCode
CHECK, WATCH = "/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch"


@asynccontextmanager
async def serving_health() -> AsyncIterator[grpc.aio.Channel]:
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((handlers(health.aio.HealthServicer()),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with connected(f"127.0.0.1:{port}") as channel:
        yield channel
    await server.stop(None)


async def answer(channel: grpc.aio.Channel, method: str, message: bytes) -> object:
    """The status of the service, or the code of the refusal."""
    try:
        sent = await channel.unary_unary(method)(message, timeout=60)
    except grpc.aio.AioRpcError as refused:
        return refused.code()
    return health_pb2.HealthCheckResponse.FromString(sent).status


def test_a_call_whose_message_does_not_come_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_rules, "BODY_S", 0.1)

    async def scenario() -> object:
        async with serving_health() as channel, asyncio.timeout(20):
            return await channel.stream_stream(CHECK)().code()

    assert run(scenario()) == Code.DEADLINE_EXCEEDED


def test_a_health_check_is_answered_by_what_it_names() -> None:
    async def scenario() -> list[object]:
        named = health_pb2.HealthCheckRequest(service="nothing").SerializeToString()
        async with serving_health() as channel:
            return [await answer(channel, CHECK, message) for message in (b"", named, b"no message of protobuf")]

    assert run(scenario()) == [health_pb2.HealthCheckResponse.SERVING, Code.NOT_FOUND, Code.INVALID_ARGUMENT]


def test_an_address_has_only_so_many_health_calls_at_a_time() -> None:
    async def scenario() -> tuple[object, object]:
        async with serving_health() as channel, asyncio.timeout(20):
            watches: list[Any] = [channel.unary_stream(WATCH)(b"") for _ in range(CALLS_PER_ADDRESS)]
            for watch in watches:
                await watch.read()
            refused = await answer(channel, CHECK, b"")
            watches[0].cancel()
            while (again := await answer(channel, CHECK, b"")) == Code.RESOURCE_EXHAUSTED:
                await asyncio.sleep(0.01)
            return refused, again

    assert run(scenario()) == (Code.RESOURCE_EXHAUSTED, health_pb2.HealthCheckResponse.SERVING)
