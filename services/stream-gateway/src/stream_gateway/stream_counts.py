"""How many streams of each account are open, at all gateways together.

Every gateway keeps its own counts in a hash in Redis, which expires soon after the gateway no longer renews it; whoever
reads them adds up those of all gateways. Where no stream is open nothing is written.
"""

import asyncio
import time
from collections import Counter
from contextlib import suppress
from itertools import chain
from typing import Any
from uuid import UUID, uuid4

from redis.exceptions import RedisError

from chassis import logs, problems
from stream_gateway import redis_client

log = logs.get(__name__)

TRANSPORTS = ("grpc", "sse")
KEPT_S = 6
"""How long the counts of a gateway that was killed are still added."""
_RENEW_S = 2.0
_GATHER_S = 0.25
"""Between two writes at least, however many streams begin and end."""
_FORGOTTEN_S = 3_600
"""After so long a gateway that was killed is no longer listed. Clocks of machines differ by less."""
_GATEWAYS = "tip:streams:gateways"
_AWAY = (RedisError, OSError)


class StreamCounts:
    """Used by the event loop alone, so nothing is locked."""

    def __init__(self, redis_url: str) -> None:
        self._redis = redis_client.connect(redis_url)
        self._name = f"tip:streams:{uuid4()}"
        self._open: Counter[str] = Counter()
        self._changed: set[str] = set()
        self._wake = asyncio.Event()
        self._is_away = False

    def add(self, account_id: UUID, transport: str, number: int) -> None:
        field = _field(account_id, transport)
        self._open[field] += number
        if not self._open[field]:
            del self._open[field]
        self._changed.add(field)
        self._wake.set()

    async def publish_for_ever(self) -> None:
        """Write changes at once, and renew what was written while any stream is open."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(_RENEW_S if self._open else None):
                    await self._wake.wait()
            await self._publish_if_possible()
            await asyncio.sleep(_GATHER_S)

    async def of_account(self, account_id: UUID) -> dict[str, int]:
        """By transport, of all gateways that are alive."""
        fields = [_field(account_id, transport) for transport in TRANSPORTS]
        try:
            names: Any = await self._redis.zrange(_GATEWAYS, 0, -1)
            async with self._redis.pipeline(transaction=False) as pipeline:
                for name in names:
                    pipeline.hmget(name, fields)
                found = await pipeline.execute()
        except _AWAY:
            raise problems.unavailable("Open streams cannot be counted at the moment. Try again.") from None
        return {name: sum(int(counts[place] or 0) for counts in found) for place, name in enumerate(TRANSPORTS)}

    async def _publish_if_possible(self) -> None:
        try:
            await self._publish()
        except _AWAY as error:
            if not self._is_away:
                log.warning("stream_counts_not_published", error=type(error).__name__)
            self._is_away = True
        else:
            self._is_away = False

    async def _publish(self) -> None:
        self._wake.clear()
        fields, self._changed = self._changed, set()
        try:
            if not await self._redis.expire(self._name, KEPT_S):  # never written, or expired while nobody renewed it
                fields |= self._open.keys()
            await self._write({field: self._open[field] for field in fields})
        except _AWAY:
            self._changed |= fields
            raise

    async def _write(self, counts: dict[str, int]) -> None:
        """Renew the hash and change these counts in it. Redis drops a hash without fields by itself."""
        now = time.time()
        async with self._redis.pipeline() as pipeline:
            if begun := [(field, count) for field, count in counts.items() if count]:
                pipeline.hset(self._name, items=list(chain.from_iterable(begun)))
            if ended := [field for field, count in counts.items() if not count]:
                pipeline.hdel(self._name, *ended)
            pipeline.expire(self._name, KEPT_S)
            if self._open:
                pipeline.zadd(_GATEWAYS, {self._name: now})
            else:
                pipeline.zrem(_GATEWAYS, self._name)
            pipeline.zremrangebyscore(_GATEWAYS, 0, now - _FORGOTTEN_S)
            pipeline.expire(_GATEWAYS, _FORGOTTEN_S)
            await pipeline.execute()


def _field(account_id: UUID, transport: str) -> str:
    return f"{account_id}:{transport}"
