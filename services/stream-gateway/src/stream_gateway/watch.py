"""One clock for all streams: heartbeats that are due, subscribers that do not read, callers that may no longer."""

import asyncio
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar
from uuid import UUID

from chassis import logs
from chassis.access import Presented
from stream_gateway import callers, meters, store
from stream_gateway.callers import Caller
from stream_gateway.config import Config
from stream_gateway.model import AccountNotFound, CredentialEnded, Ending, Stuck, Unverified
from stream_gateway.streams import Streams
from stream_gateway.usecases import Deps

log = logs.get(__name__)

Found = TypeVar("Found")

TICK_S = 0.25
_TIDY_S = 60.0


class Watch:
    """Timers are here and not at the streams: ten thousand of them would cost more than the streams."""

    def __init__(self, streams: Streams, deps: Deps, config: Config) -> None:
        self._streams, self._deps, self._config = streams, deps, config
        self._thread = ThreadPoolExecutor(1, "recheck")
        self._verified_at = asyncio.get_running_loop().time()

    async def tick_for_ever(self) -> None:
        loop = asyncio.get_running_loop()
        tidy_at = loop.time() + _TIDY_S
        while True:
            await asyncio.sleep(TICK_S)
            self.tick(loop.time(), time.time())
            if loop.time() >= tidy_at:
                tidy_at = loop.time() + _TIDY_S
                for hub in self._streams.hubs.values():
                    hub.tidy()

    def tick(self, now: float, wall_clock: float) -> None:
        """`now` is the loop's clock, which deadlines are on; tokens expire by the wall clock."""
        lag = 0
        # Asked here and not where looking fails: a database that is silent does not even fail.
        unverified = self.is_blind(now)
        for stream in self._streams:
            lag = max(lag, stream.lag)
            if stream.caller.expires_at is not None and wall_clock >= stream.caller.expires_at:
                stream.end(CredentialEnded())
            elif unverified:
                stream.end(Unverified())
            elif stream.is_stuck(now, self._config.stuck_seconds):
                stream.end(Stuck())
            elif now >= stream.heartbeat_at:
                stream.wake()
        meters.LAG.set(lag)
        meters.ACCOUNTS.set(len(self._streams.hubs))
        meters.BUFFERED.set(sum(hub.kept for hub in self._streams.hubs.values()))

    def is_blind(self, now: float) -> bool:
        """Whether callers could not be looked at for longer than streams may go on without."""
        return now - self._verified_at > self._config.unverified_seconds

    async def recheck_for_ever(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            try:
                await self.recheck()
                self._verified_at = began
            except Exception as error:  # noqa: BLE001 - whatever it was, it is tried again
                meters.UNREACHABLE.labels("recheck").inc()
                log.warning("callers_not_rechecked", error=type(error).__name__)
            meters.RECHECK_SECONDS.set(loop.time() - began)
            await asyncio.sleep(max(0.05, self._config.recheck_seconds - (loop.time() - began)))

    async def recheck(self) -> None:
        """End the streams whose caller would be refused now, or whose account is gone."""
        asked = {stream.caller.presented: stream.caller for stream in self._streams}
        endings, gone = await asyncio.get_running_loop().run_in_executor(
            self._thread, self._look, list(asked.values()), list(self._streams.hubs)
        )
        for stream in self._streams:
            ending = endings.get(stream.caller.presented)
            if ending is not None:
                stream.end(ending)
            elif stream.hub.account_id in gone:
                stream.end(AccountNotFound())

    def _look(self, asked: Iterable[Caller], accounts: Iterable[UUID]) -> tuple[dict[Presented, Ending], set[UUID]]:
        with self._deps.engine.connect() as connection:
            existing = store.existing(connection, accounts)
        return callers.recheck(self._deps.access, asked), set(accounts) - existing

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)
