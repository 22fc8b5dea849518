"""Thousands of open event streams over both transports, in one event loop of a thread of its own."""

import asyncio
import os
import resource
import threading
import time
from dataclasses import dataclass, field
from itertools import count
from multiprocessing.managers import BaseManager
from typing import Any

import grpc
from attack_cells import ALL_TYPES, STATUSES
from attack_http import written
from attack_tenants import Headers

from trading_proto import trading_pb2, trading_pb2_grpc

AT_ONCE = 40
OPENING_S = 60.0
CHANNELS = 20
HTTP, GRPC = "http", "grpc"
# Else channels to the same address would share one connection.
_OPTIONS = (("grpc.use_local_subchannel_pool", 1),)


@dataclass(frozen=True)
class Subscriber:
    account_id: str
    headers: Headers = field(repr=False)
    transport: str = HTTP


@dataclass
class Stream:
    opened: bool = False
    status: int = 0
    ended_at: float | None = None
    """On the monotonic clock."""


@dataclass
class Crowd:
    """What comes on the streams is read and forgotten."""

    events: tuple[str, int]
    stream_target: str
    apart: int = 0
    """By how much lower the priority of its process is: that of readers on machines of their own."""
    streams: list[Stream] = field(default_factory=list)
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)
    _tasks: set["asyncio.Task[None]"] = field(default_factory=set)
    _channels: list[Any] = field(default_factory=list)
    _turns: Any = field(default_factory=count)

    def __post_init__(self) -> None:
        os.nice(self.apart)
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def open(self, subscribers: list[Subscriber]) -> list[Stream]:
        """One stream for each; returns when each is open or refused."""
        return asyncio.run_coroutine_threadsafe(self._open(subscribers), self._loop).result()

    async def _open(self, subscribers: list[Subscriber]) -> list[Stream]:
        if not self._channels:
            self._channels = [grpc.aio.insecure_channel(self.stream_target, options=_OPTIONS) for _ in range(CHANNELS)]
        gate, made, begun = asyncio.Semaphore(AT_ONCE), [], []
        for subscriber in subscribers:
            stream, answered = Stream(), asyncio.Event()
            self._tasks.add(self._loop.create_task(self._hold(stream, answered, subscriber, gate)))
            made.append(stream)
            begun.append(answered)
        for answered in begun:
            await answered.wait()
        self.streams += made
        return made

    async def _hold(
        self, stream: Stream, answered: asyncio.Event, subscriber: Subscriber, gate: asyncio.Semaphore
    ) -> None:
        hold = self._over_grpc if subscriber.transport == GRPC else self._over_http
        try:
            await hold(stream, answered, subscriber, gate)
        except grpc.RpcError as error:
            stream.status = STATUSES.get(error.code(), 500)
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            pass
        finally:
            stream.ended_at = time.monotonic()
            answered.set()

    async def _over_http(
        self, stream: Stream, answered: asyncio.Event, subscriber: Subscriber, gate: asyncio.Semaphore
    ) -> None:
        writer = None
        try:
            async with gate, asyncio.timeout(OPENING_S):
                reader, writer = await asyncio.open_connection(*self.events)
                writer.write(written("GET", f"/v1/accounts/{subscriber.account_id}/events", subscriber.headers))
                head = await reader.readuntil(b"\r\n\r\n")
                stream.status = int(head[9:12])
                stream.opened = stream.status == 200
            answered.set()
            while stream.opened and b"event: end" not in (data := await reader.read(65536)):
                if not data:
                    break
        finally:
            if writer is not None:
                writer.close()

    async def _over_grpc(
        self, stream: Stream, answered: asyncio.Event, subscriber: Subscriber, gate: asyncio.Semaphore
    ) -> None:
        stub = trading_pb2_grpc.TradingServiceStub(self._channels[next(self._turns) % CHANNELS])
        message = trading_pb2.SubscribeEventsRequest(
            trading_account_id=subscriber.account_id, subscriptions=ALL_TYPES, resume_after_sequence=0
        )
        metadata = [(name.lower(), value) for name, value in subscriber.headers]
        call = None
        try:
            async with gate, asyncio.timeout(OPENING_S):
                call = stub.SubscribeEvents(message, metadata=metadata)
                stream.opened = await call.read() is not grpc.aio.EOF  # of an empty log, that it is read to its end
                stream.status = 200
            answered.set()
            while await call.read() is not grpc.aio.EOF:
                pass
        finally:
            if call is not None:
                call.cancel()

    def close(self) -> None:
        async def cancel() -> None:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            for channel in self._channels:
                await channel.close()

        asyncio.run_coroutine_threadsafe(cancel(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)


class CrowdApart(BaseManager):
    """A crowd in a process of its own: what it reads takes no time from whoever measures beside it."""

    Crowd: type[Crowd]


CrowdApart.register("Crowd", Crowd)
