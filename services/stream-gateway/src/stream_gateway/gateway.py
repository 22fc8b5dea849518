"""What both transports stand on: opening a stream and running it to its end."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import NamedTuple
from uuid import UUID

from chassis import authentication, db
from chassis.authentication import PresentedCredentials
from stream_gateway import meters, usecases
from stream_gateway.admission import Admission
from stream_gateway.config import Config
from stream_gateway.delivery import Write, deliver
from stream_gateway.hub import Stream
from stream_gateway.log import Log
from stream_gateway.model import Draining, Ending
from stream_gateway.pump import Pump
from stream_gateway.quota import Limits, StreamQuota
from stream_gateway.recheck import Rechecks
from stream_gateway.schemas import Entry
from stream_gateway.stream_counts import StreamCounts
from stream_gateway.streams import Streams
from stream_gateway.tickets import Ticket, Tickets
from stream_gateway.watch import Watch

Read = Callable[[], Awaitable[usecases.Request]]
Start = Callable[[], Awaitable[object]]
Form = Callable[[Entry], bytes]
Broken = tuple[type[Exception], ...]

GONE = "gone"
_STALE_S = 5.0


class OpenStreams(NamedTuple):
    account_id: UUID
    by_transport: dict[str, int]


class Gateway:
    """One per process, used by the event loop; what queries the database runs in threads."""

    def __init__(self, config: Config) -> None:
        self.config = config
        engine = db.engine(config.database_url, pool_size=config.database_pool_size, name="stream-gateway")
        self.deps = usecases.Deps(engine, authentication.for_service(config, engine), config.retention_days)
        self.rechecks = Rechecks(self.deps, config.recheck_seconds)
        limits = Limits(config.streams_per_principal, config.streams_per_organization, config.streams_per_process)
        quota = StreamQuota(limits)
        self.counts = StreamCounts(config.redis_url)
        self.streams = Streams(quota, self.rechecks, self.counts, buffer_events=config.buffer_events)
        self.log = Log(engine)
        self.pump = Pump(self.streams, self.log, config.poll_seconds)
        self.watch = Watch(self.streams, config)
        self._admission = Admission(quota, config.rate_limit_per_minute)
        self._tickets = Tickets(config.redis_url, config.cursor_key)

    async def issue_ticket(self, presented: PresentedCredentials, request: usecases.Request) -> Ticket:
        """For whoever could open a stream of the account with the same credential."""
        return await self._tickets.issue(presented, await self._readable_account(presented, request))

    async def open_streams(self, presented: PresentedCredentials, request: usecases.Request) -> OpenStreams:
        """How many streams of the account are open, for whoever could open one."""
        account_id = await self._readable_account(presented, request)
        return OpenStreams(account_id, await self.counts.of_account(account_id))

    async def _readable_account(self, presented: PresentedCredentials, request: usecases.Request) -> UUID:
        with self._admission.pending(presented):
            _, account, _ = await self._admission.admit(
                presented, partial(usecases.admit, self.deps, presented, request)
            )
        return account.id

    async def redeem_ticket(self, text: str, account_id: UUID | None, address: str | None) -> PresentedCredentials:
        """The credential that the ticket stands for; guesses are counted like any other by their address."""
        self.streams.check_room()  # else the ticket would be spent for nothing
        return await self._admission.redeem(address, partial(self._tickets.redeem, text, account_id, address))

    async def subscribe(self, presented: PresentedCredentials, read: Read, transport: str) -> Stream:
        """Open a stream, or raise the reason why not. `read` awaits the request, which may be slow to arrive."""
        self.streams.check_room()
        with self._admission.pending(presented), meters.PENDING.labels(transport).track_inprogress():
            request = await read()
            began = asyncio.get_running_loop().time()
            caller, account, subscription = await self._admission.admit(
                presented, partial(usecases.admit, self.deps, presented, request)
            )
        return self.streams.open(caller, account, subscription, transport, began)

    async def run(self, stream: Stream, start: Start, write: Write, form: Form, broken: Broken) -> Ending:
        """Deliver until the stream ends, and say why. A subscriber that has gone is a CancelledError, as always.

        `broken` is what the transport raises when it writes to one that has gone.
        """
        stream.task = asyncio.current_task()
        try:
            await start()
            await deliver(stream, self.log, write, form, self.config.heartbeat_seconds)
        except Ending as ending:
            return ending
        except asyncio.CancelledError:
            if not stream.cut or stream.ending is None or stream.task is None:
                count_ending(stream.transport, GONE)
                raise
            stream.task.uncancel()  # we interrupted a write: the reason must still be sent
            return stream.ending
        except broken:
            count_ending(stream.transport, GONE)
            raise asyncio.CancelledError from None
        finally:
            self.streams.close(stream)
        raise AssertionError("deliver never returns")

    @property
    def ready(self) -> bool:
        """Whether the database has answered recently and new streams are accepted."""
        now = asyncio.get_running_loop().time()
        fresh = self.pump.polled_at >= 0 and now - self.pump.polled_at < _STALE_S + self.config.poll_seconds
        return fresh and not self.streams.draining

    async def drain(self) -> None:
        """Let every stream finish what is buffered and end it; after the time given, in the middle of it."""
        self.streams.draining = True
        for stream in self.streams:
            stream.end(Draining(), at_once=False)
        deadline = asyncio.get_running_loop().time() + self.config.drain_seconds
        while len(self.streams) and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.02)
        for stream in self.streams:
            stream.end(Draining())

    def close(self) -> None:
        self.log.close()
        self.rechecks.close()
        self._admission.close()
        self.deps.engine.dispose()


def count_ending(transport: str, reason: str) -> None:
    meters.ENDED.labels(transport, reason).inc()
