"""One clock for all streams: heartbeats that are due, subscribers that do not read, callers that may no longer."""

import asyncio
import time

from stream_gateway import meters
from stream_gateway.config import Config
from stream_gateway.model import CredentialEnded, Stuck, Unverified
from stream_gateway.streams import Streams

TICK_S = 0.5
_AT_ONCE = 125  # with the heartbeats that are due some milliseconds: whoever opens a stream waits no longer than that
_TIDY_S = 60.0


class Watch:
    """Timers are here and not at the streams: ten thousand of them would cost more than the streams."""

    def __init__(self, streams: Streams, config: Config) -> None:
        self._streams, self._config = streams, config

    async def tick_for_ever(self) -> None:
        loop = asyncio.get_running_loop()
        tidy_at = loop.time() + _TIDY_S
        while True:
            await asyncio.sleep(TICK_S)
            await self.tick(loop.time(), time.time())
            if loop.time() >= tidy_at:
                tidy_at = loop.time() + _TIDY_S
                for hub in self._streams.hubs.values():
                    hub.tidy()

    async def tick(self, now: float, wall_clock: float) -> None:
        """`now` is the loop's clock, which deadlines are on; tokens expire by the wall clock."""
        lag, oldest = 0, now
        for number, stream in enumerate(list(self._streams), 1):
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)
            lag = max(lag, stream.lag)
            expires_at = stream.credential.expires_at
            # Noticed here and not where verifying fails: a database that is silent does not even fail.
            verified_at = min(stream.credential.verified_at, stream.hub.verified_at)
            oldest = min(oldest, verified_at)
            if expires_at is not None and wall_clock >= expires_at:
                stream.end(CredentialEnded())
            elif now - verified_at > self._config.unverified_seconds:
                stream.end(Unverified())
            elif stream.is_stuck(now, self._config.stuck_seconds):
                stream.end(Stuck())
            elif now >= stream.heartbeat_at:
                stream.wake()
        meters.LAG.set(lag)
        meters.VERIFIED_AGE.set(now - oldest)
        meters.ACCOUNTS.set(len(self._streams.hubs))
        meters.BUFFERED.set(sum(hub.kept for hub in self._streams.hubs.values()))
