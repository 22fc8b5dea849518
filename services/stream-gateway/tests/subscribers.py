"""Subscribers over gRPC."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc

from trading_proto import trading_pb2, trading_pb2_grpc

from .gateway_process import Gateway

ALL_TYPES = [number for name, number in trading_pb2.EventType.items() if number]
BROKER_ORDER = trading_pb2.EVENT_TYPE_BROKER_ORDER


@dataclass
class Subscriber:
    """What one subscriber has received: its events, and separately the messages about the stream itself."""

    call: Any
    events: list[trading_pb2.TradingEvent] = field(default_factory=list)
    words: list[trading_pb2.TradingEvent] = field(default_factory=list)

    @property
    def sequences(self) -> list[int]:
        return [event.sequence for event in self.events]

    async def until(self, enough: Callable[["Subscriber"], bool], seconds: float = 60.0) -> "Subscriber":
        async with asyncio.timeout(seconds):
            while not enough(self):
                await self.next()
        return self

    async def next(self) -> trading_pb2.TradingEvent:
        event = await self.call.read()
        if event is grpc.aio.EOF:
            raise EOFError(await self.call.code())
        (self.events if event.type else self.words).append(event)
        return event

    async def received(self, count: int, seconds: float = 60.0) -> list[trading_pb2.TradingEvent]:
        await self.until(lambda subscriber: len(subscriber.events) >= count, seconds)
        return self.events

    async def wait_for(self, word: str, seconds: float = 60.0) -> trading_pb2.TradingEvent:
        def has(subscriber: Subscriber) -> bool:
            return any(message.WhichOneof("payload") == word for message in subscriber.words)

        await self.until(has, seconds)
        return next(message for message in self.words if message.WhichOneof("payload") == word)

    async def ending(self, seconds: float = 60.0) -> tuple[grpc.StatusCode, str]:
        """Read to the end: its status and details."""
        try:
            async with asyncio.timeout(seconds):
                while True:
                    await self.next()
        except (EOFError, grpc.aio.AioRpcError):
            return await self.call.code(), await self.call.details()


Metadata = Sequence[tuple[str, str]]


def key(value: str) -> Metadata:
    return (("x-api-key", value),)


def bearer(token: str, organization_id: object = None) -> Metadata:
    named = (("x-organization-id", str(organization_id)),) if organization_id else ()
    return (("authorization", f"Bearer {token}"), *named)


@asynccontextmanager
async def connected(target: str, *options: tuple[str, int]) -> AsyncIterator[grpc.aio.Channel]:
    # Subchannels are otherwise shared by all channels to one target, and so would be their failures.
    own = (("grpc.use_local_subchannel_pool", 1), *options)
    async with grpc.aio.insecure_channel(target, options=own) as channel:
        yield channel


async def subscribe(
    channel: grpc.aio.Channel,
    metadata: Metadata,
    account_id: object,
    *,
    types: Sequence[int] = tuple(ALL_TYPES),
    after: int | None = None,
    epoch: str | None = None,
    established: bool = True,
) -> Subscriber:
    """A stream; when `established`, everything that is written from now on comes over it."""
    request = trading_pb2.SubscribeEventsRequest(
        trading_account_id=str(account_id), subscriptions=types, resume_after_sequence=after, resume_epoch=epoch
    )
    call = trading_pb2_grpc.TradingServiceStub(channel).SubscribeEvents(request, metadata=metadata)
    if established:
        async with asyncio.timeout(20):
            await call.initial_metadata()
    return Subscriber(call)


async def outcome(gateway: Gateway, metadata: Metadata, account_id: object, **request: Any) -> grpc.StatusCode | str:
    """`streaming`, or the status that refuses it."""
    async with connected(gateway.target) as channel:
        subscriber = await subscribe(channel, metadata, account_id, established=False, **request)
        reading = asyncio.ensure_future(subscriber.call.initial_metadata())
        ended = asyncio.ensure_future(subscriber.call.code())
        async with asyncio.timeout(20):
            await asyncio.wait([reading, ended], return_when=asyncio.FIRST_COMPLETED)
            await asyncio.sleep(0)
        if ended.done():
            return ended.result()
        # Initial metadata also comes with a refusal: check whether it is one.
        done, _ = await asyncio.wait([ended], timeout=0.3)
        subscriber.call.cancel()
        return ended.result() if done else "streaming"


def run(scenario: Coroutine[Any, Any, Any] | Awaitable[Any]) -> Any:
    return asyncio.run(scenario)  # type: ignore[arg-type]
