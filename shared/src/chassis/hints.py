"""Telling other processes that a log has grown, without waiting for anybody: Redis pub/sub, hints and nothing more.

A writer tells after its commit how far a log has come; a reader that hears of it reads the log. Hints may be lost,
doubled or late: readers also look by themselves. So a writer never waits for Redis and never fails because of it.
"""

import asyncio
import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import redis
from redis import asyncio as redis_asyncio

from chassis import logs

log = logs.get(__name__)

CHANNEL = "tip-hints"
_AT_MOST_EVERY_S = 0.004
_RETRY_S = 1.0
_TIMEOUT_S = 0.5
_MAX_WAITING = 10_000
_SILENCE_S = 5.0


class Hints:
    """The writers' side. One per process and safe in threads; the sending is a thread's own."""

    def __init__(self, redis_url: str) -> None:
        self._redis = redis.Redis.from_url(redis_url, socket_timeout=_TIMEOUT_S, socket_connect_timeout=_TIMEOUT_S)
        self._waiting: dict[str, int] = {}
        self._told = threading.Event()
        self._thread_of: int | None = None
        self._lock = threading.Lock()

    def tell(self, log_id: object, position: int) -> None:
        """Return at once; whoever listens knows of the position within a few milliseconds."""
        if self._thread_of != os.getpid():
            self._start()
        with self._lock:
            if len(self._waiting) < _MAX_WAITING:
                self._waiting[str(log_id)] = max(position, self._waiting.get(str(log_id), 0))
        self._told.set()

    def _start(self) -> None:
        # Started on first use, so that it runs in the worker process and not in the one that forked it.
        with self._lock:
            if self._thread_of != os.getpid():
                threading.Thread(target=self._run, name="hints", daemon=True).start()
                self._thread_of = os.getpid()

    def _run(self) -> None:
        while True:
            self._told.wait()
            self._told.clear()
            with self._lock:
                waiting, self._waiting = self._waiting, {}
            try:
                self._redis.publish(CHANNEL, json.dumps(waiting))
            except (redis.RedisError, OSError) as error:
                log.info("hints_unheard", error=type(error).__name__)
                time.sleep(_RETRY_S)  # Redis is down: the readers look by themselves
            time.sleep(_AT_MOST_EVERY_S)


async def listen(redis_url: str, heard: Callable[[Mapping[str, int]], None]) -> None:
    """Call `heard` with the newest position of every log that grew, until cancelled."""
    while True:
        try:
            await _listen(redis_url, heard)
        except (redis.RedisError, OSError) as error:
            log.info("hints_lost", error=type(error).__name__)
            await asyncio.sleep(_RETRY_S)


async def _listen(redis_url: str, heard: Callable[[Mapping[str, int]], None]) -> None:
    client = redis_asyncio.Redis.from_url(redis_url, socket_connect_timeout=2)
    async with client, client.pubsub() as channel:
        await channel.subscribe(CHANNEL)
        asked = False
        while True:
            message = await channel.get_message(timeout=_SILENCE_S)
            if message is None and asked:
                raise redis.ConnectionError("silent")
            asked = message is None
            if asked:
                await channel.ping()  # a connection that is dead at the other end only is silent, too
            elif message["type"] == "message":
                heard(_positions(message["data"]))


def _positions(data: Any) -> dict[str, int]:
    """What a message says; nothing, if it is not one of ours."""
    try:
        said = json.loads(data)
    except ValueError:
        return {}
    return {log_id: at for log_id, at in said.items() if isinstance(at, int)} if isinstance(said, dict) else {}
