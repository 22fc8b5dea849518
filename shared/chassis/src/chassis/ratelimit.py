"""The rate limit: one count in Redis shared by all processes, taken in blocks to spare round trips.

A request costs one unit, and more when it is more work; what that is stands below and nowhere else. A process reserves
a block of units and spends it locally. What a process has reserved and not spent when the window ends is lost, so a
caller may be refused slightly early (by at most one block per process), never late.
"""

import threading
import time
from dataclasses import dataclass, field
from typing import cast

from flask import g, has_request_context
from limits import RateLimitItemPerMinute
from limits.storage import RedisStorage, storage_from_string
from limits.strategies import FixedWindowRateLimiter
from redis import Redis

from chassis import logs, metrics, problems
from chassis.lru_cache import LruCache

log = logs.get(__name__)

WINDOW_S = 60
_BLOCKS_PER_WINDOW = 100
_MAX_TRACKED = 10_000
_PATIENCE_S = 0.25
_RETRY_AFTER_S = 2.0  # while Redis is down, one request in two seconds pays for finding out, and no other

ROWS_PER_UNIT = 100
STATISTICS_UNITS = 4
"""What statistics cost beyond the unit of every request: they read about as much as some hundred rows."""

Counts = dict[str, tuple[int, int, int]]
"""Of each limit that a request was counted against: quota, what remains of it, seconds until the next window."""


def units_of_rows(count: int) -> int:
    """What reading so many rows costs beyond the unit of every request."""
    return count // ROWS_PER_UNIT


def units_of_commands(count: int) -> int:
    """What a batch of commands costs beyond the unit of every request: each is as much work as one sent alone."""
    return count - 1


@dataclass
class _Block:
    left: int = 0
    shared_left: int = 0
    resets_at: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)


class RateLimit:
    """Counts units per caller, and refuses with 429 once the window's quota is used up."""

    def __init__(self, redis_url: str, *, per_minute: int, name: str = "default") -> None:
        self._item = RateLimitItemPerMinute(per_minute, namespace=f"tip-rate-{name}")
        self._name, self._quota = name, per_minute
        self._block = max(1, per_minute // _BLOCKS_PER_WINDOW)
        # Connections are made on first use, so an unreachable Redis does not stop a service from starting.
        options = {"socket_timeout": _PATIENCE_S, "socket_connect_timeout": _PATIENCE_S}
        self._storage = cast(RedisStorage, storage_from_string(redis_url, **options))
        self._limiter = FixedWindowRateLimiter(self._storage)
        self._blocks: LruCache[str, _Block] = LruCache(_MAX_TRACKED)
        self._down_until = 0.0
        self._lock = threading.Lock()

    def count(self, caller: str, units: int = 1) -> "Counts":
        """Take units from the caller's quota, or raise 429. Redis down: pass, and say so in a metric."""
        units = min(units, self._quota)  # else a small quota would forbid a large request for ever
        block = self._tracked(caller)
        with block.lock:
            allowed = self._spend(caller, block, units)
            remaining, wait = block.left + block.shared_left, max(1, round(block.resets_at - time.time()))
        counted = {self._name: (self._quota, max(0, remaining), wait)}
        if has_request_context():
            g.setdefault("rate_limits", {}).update(counted)
        if not allowed:
            metrics.RATE_LIMITED.inc()
            answered = {"Retry-After": str(wait), **dict(headers(counted))}
            raise problems.Problem(429, detail="Too many requests.", headers=answered)
        return counted

    def _spend(self, caller: str, block: _Block, units: int) -> bool:
        if time.time() >= block.resets_at:
            block.left, block.shared_left = 0, self._quota
        # Within a window the shared rest only shrinks: once it is too small, Redis need not be queried again.
        if block.left < units <= block.left + block.shared_left:
            self._reserve(caller, block, units - block.left)
        if block.left < units:
            return False
        block.left -= units
        return True

    def _tracked(self, caller: str) -> _Block:
        with self._lock:
            block = self._blocks.get(caller) or _Block()
            self._blocks.put(caller, block)
            return block

    def _reserve(self, caller: str, block: _Block, missing: int) -> None:
        if time.monotonic() < self._down_until:
            self._pass_uncounted(block, missing)
            return
        try:
            taken = self._take(caller, missing)
            resets_at, shared_left = self._window(caller)
        except Exception as error:  # noqa: BLE001 - the storage raises whatever its driver does
            log.warning("rate_limit_unavailable", error=type(error).__name__)
            self._down_until = time.monotonic() + _RETRY_AFTER_S
            self._pass_uncounted(block, missing)
            return
        block.left, block.shared_left, block.resets_at = block.left + taken, max(0, shared_left), resets_at

    def _window(self, caller: str) -> tuple[float, int]:
        """When it ends, to the millisecond, and what is left. The library says it to the second: half a second before
        its end a window would count as over, and each request would take a block."""
        key = self._item.key_for(caller)
        redis = cast(Redis, self._storage.get_connection())
        remaining_ms = redis.pttl(self._storage.prefixed_key(key))
        return time.time() + max(0, remaining_ms) / 1000, self._quota - self._storage.get(key)

    def _pass_uncounted(self, block: _Block, missing: int) -> None:
        """A limit that is down must not become an outage."""
        metrics.RATE_LIMIT_UNAVAILABLE.inc()
        block.left += max(self._block, missing)
        block.shared_left, block.resets_at = self._quota, time.time() + 1

    def _take(self, caller: str, missing: int) -> int:
        """A whole block, or at the end of the quota what is missing. A refused hit counts, so it is tested first."""
        for wanted in dict.fromkeys((max(self._block, missing), missing)):
            if self._limiter.test(self._item, caller, cost=wanted) and self._limiter.hit(
                self._item, caller, cost=wanted
            ):
                return wanted
        return 0


def headers(counted: Counts) -> list[tuple[str, str]]:
    """The headers of the IETF draft, for an answer to a request that was counted."""
    if not counted:
        return []
    policies = [f'"{name}";q={quota};w={WINDOW_S}' for name, (quota, _, _) in counted.items()]
    states = [f'"{name}";r={remaining};t={wait}' for name, (_, remaining, wait) in counted.items()]
    return [("RateLimit-Policy", ", ".join(policies)), ("RateLimit", ", ".join(states))]
