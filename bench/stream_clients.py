"""Clients of the stream benchmarks: streams that are opened in groups, read, and timed."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from uuid import UUID

import grpc
from sqlalchemy import text

from bench.stream_stage import QUICK, Stage
from trading_proto import trading_pb2

PACED_S = 3.0 if QUICK else 15.0
STREAMS_A_CONNECTION = 100
SUBSCRIBE = "/trading.TradingService/SubscribeEvents"


def request(account_id: UUID) -> bytes:
    return trading_pb2.SubscribeEventsRequest(
        trading_account_id=str(account_id), subscriptions=["EVENT_TYPE_BROKER_ORDER"]
    ).SerializeToString()


@asynccontextmanager
async def streams(
    target: str, method: str, body: bytes, count: int, metadata: Sequence[tuple[str, str]] = ()
) -> AsyncIterator[list[Any]]:
    """Open and established streams that carry bytes, a hundred to a connection."""
    async with AsyncExitStack() as stack:
        calls: list[Any] = []
        for start in range(0, count, STREAMS_A_CONNECTION):
            options = (("grpc.use_local_subchannel_pool", 1),)
            channel = await stack.enter_async_context(grpc.aio.insecure_channel(target, options=options))
            opened = [
                channel.unary_stream(method)(body, metadata=metadata)
                for _ in range(min(STREAMS_A_CONNECTION, count - start))
            ]
            await asyncio.gather(*(call.initial_metadata() for call in opened))
            if method == SUBSCRIBE:
                await asyncio.gather(*(call.read() for call in opened))  # the word that says where it begins
            calls += opened
        yield calls


async def read_all(calls: Sequence[Any], events: int) -> float:
    """Deliveries a second, from the beginning to the last of `events` on every stream."""

    async def read(call: Any) -> None:
        for _ in range(events):
            await call.read()

    began = time.perf_counter()
    await asyncio.gather(*(read(call) for call in calls))
    return len(calls) * events / (time.perf_counter() - began)


async def paced(on: Stage, target: str, account_id: UUID, subscribers: int, a_second: int) -> list[float]:
    """Milliseconds from before the commit to each subscriber, at this many deliveries a second over all."""
    latencies: list[float] = []
    written: dict[int, float] = {}
    total = int(PACED_S * a_second / subscribers)

    async def read(call: Any) -> None:
        for _ in range(total):
            event = trading_pb2.TradingEvent.FromString(await call.read())
            latencies.append((time.perf_counter() - written[event.sequence]) * 1000)

    async with streams(target, SUBSCRIBE, request(account_id), subscribers, (("x-api-key", on.api_key),)) as calls:
        last = await asyncio.to_thread(_head, on, account_id)
        reading = asyncio.gather(*(read(call) for call in calls))
        next_at = time.perf_counter()
        for number in range(1, total + 1):
            next_at += subscribers / a_second
            await asyncio.sleep(max(0.0, next_at - time.perf_counter()))
            written[last + number] = time.perf_counter()
            await asyncio.to_thread(on.append, account_id)
        await reading
    return sorted(latencies)


def _head(on: Stage, account_id: UUID) -> int:
    with on.platform.admin() as admin:
        statement = text("SELECT last_sequence FROM intents.account_head WHERE account_id = :id")
        return int(admin.execute(statement, {"id": account_id}).scalar() or 0)


def p99(values: Sequence[float]) -> float:
    return sorted(values)[int(len(values) * 0.99)]
