"""When an API key was last used, noted at most once a minute per key and process, and never to the database.

Every service sees keys; only their owner may write to their table. So the moment is left in Redis, where the owner's
worker collects it. What Redis loses is a minute's precision.
"""

import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from uuid import UUID

import redis

from chassis import logs
from chassis.queues import Outage

log = logs.get(__name__)

EVERY_S = 60.0
_NAME = "tip-key-uses"
_MAX_TRACKED = 10_000
_PATIENCE_S = 0.25
_RETRY_AFTER_S = 5.0


class KeyUses:
    """Notes uses of keys, and gives all that was noted to the process that records it."""

    def __init__(self, redis_url: str) -> None:
        self._redis = redis.Redis.from_url(redis_url, socket_timeout=_PATIENCE_S, socket_connect_timeout=_PATIENCE_S)
        self._noted: dict[UUID, float] = {}
        self._lock = threading.Lock()
        self._down_until = 0.0

    def note(self, key_id: UUID) -> None:
        if time.monotonic() < self._down_until or not self._is_due(key_id):
            return
        try:
            self._redis.hset(_NAME, str(key_id), str(int(time.time())))
        except (redis.RedisError, OSError) as error:
            log.warning("key_use_not_noted", error=type(error).__name__)
            self._down_until = time.monotonic() + _RETRY_AFTER_S

    def _is_due(self, key_id: UUID) -> bool:
        with self._lock:
            now = time.monotonic()
            if now - self._noted.get(key_id, -EVERY_S) < EVERY_S:
                return False
            if len(self._noted) >= _MAX_TRACKED:
                self._noted.clear()
            self._noted[key_id] = now
            return True

    def collect(self) -> Mapping[UUID, datetime]:
        """All uses noted since the last time; taken away in one step, so that none is lost between two."""
        try:
            noted = self._take()
        except (redis.RedisError, OSError) as error:
            raise Outage(type(error).__name__) from error
        return {UUID(key.decode()): datetime.fromtimestamp(int(moment), UTC) for key, moment in noted.items()}

    def _take(self) -> Mapping[bytes, bytes]:
        with self._redis.pipeline(transaction=True) as both:
            both.hgetall(_NAME)
            both.delete(_NAME)
            noted: Mapping[bytes, bytes] = both.execute()[0]
        return noted
