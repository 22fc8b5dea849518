"""The request rate limit: one count in Redis shared by all processes, taken in blocks to spare round trips.

A process reserves a block of requests and spends it locally. What a process has reserved and not spent when the
window ends is lost, so a caller may be refused slightly early (by at most one block per process), never late.
"""

import threading
import time
from dataclasses import dataclass, field

from flask import Response, g, has_request_context
from limits import RateLimitItemPerMinute
from limits.storage import storage_from_string
from limits.strategies import FixedWindowRateLimiter

from chassis import logs, metrics, problems

log = logs.get(__name__)

WINDOW_S = 60
_BLOCKS_PER_WINDOW = 100
_MAX_TRACKED = 10_000
_PATIENCE_S = 0.25
_ASK_AGAIN_AFTER_S = 2.0  # while Redis is down, one request in two seconds pays for finding out, and no other

Counts = dict[str, tuple[int, int, int]]
"""Of each limit that a request was counted against: quota, what remains of it, seconds until the next window."""


@dataclass
class _Block:
    left: int = 0
    shared_left: int = 0
    resets_at: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)


class RateLimit:
    """Counts requests per caller, and refuses with 429 once the window's quota is used up."""

    def __init__(self, redis_url: str, *, per_minute: int, name: str = "default") -> None:
        self._item = RateLimitItemPerMinute(per_minute, namespace=f"tip-rate-{name}")
        self._name, self._quota = name, per_minute
        self._block = max(1, per_minute // _BLOCKS_PER_WINDOW)
        # Connections are made on first use, so an unreachable Redis does not stop a service from starting.
        storage = storage_from_string(redis_url, socket_timeout=_PATIENCE_S, socket_connect_timeout=_PATIENCE_S)
        self._limiter = FixedWindowRateLimiter(storage)
        self._blocks: dict[str, _Block] = {}
        self._down_until = 0.0
        self._lock = threading.Lock()

    def count(self, caller: str) -> "Counts":
        """Take one request from the caller's quota, or raise 429. Redis down: pass, and say so in a metric."""
        block = self._tracked(caller)
        with block.lock:
            if block.left < 1 or time.time() >= block.resets_at:
                self._reserve(caller, block)
            allowed = block.left > 0
            block.left -= allowed
            remaining, wait = block.left + block.shared_left, max(1, round(block.resets_at - time.time()))
        counted = {self._name: (self._quota, max(0, remaining), wait)}
        if has_request_context():
            g.setdefault("rate_limits", {}).update(counted)
        if not allowed:
            metrics.RATE_LIMITED.inc()
            told = {"Retry-After": str(wait), **dict(headers(counted))}
            raise problems.Problem(429, detail="Too many requests.", headers=told)
        return counted

    def _tracked(self, caller: str) -> _Block:
        with self._lock:
            if len(self._blocks) > _MAX_TRACKED:
                self._blocks.clear()
            return self._blocks.setdefault(caller, _Block())

    def _reserve(self, caller: str, block: _Block) -> None:
        if time.monotonic() < self._down_until:
            self._pass_uncounted(block)
            return
        try:
            taken = self._take(caller)
            resets_at, shared_left = self._limiter.get_window_stats(self._item, caller)
        except Exception as error:  # noqa: BLE001 - the storage raises whatever its driver does
            log.warning("rate_limit_unavailable", error=type(error).__name__)
            self._down_until = time.monotonic() + _ASK_AGAIN_AFTER_S
            self._pass_uncounted(block)
            return
        block.left, block.shared_left, block.resets_at = taken, shared_left, resets_at

    def _pass_uncounted(self, block: _Block) -> None:
        """A limit that is down must not become an outage."""
        metrics.RATE_LIMIT_UNAVAILABLE.inc()
        block.left, block.shared_left, block.resets_at = self._block, 0, time.time() + 1

    def _take(self, caller: str) -> int:
        if self._block > 1 and self._limiter.hit(self._item, caller, cost=self._block):
            return self._block
        return int(self._limiter.hit(self._item, caller))


def add_headers(response: Response) -> Response:
    """The IETF draft headers, on every response that was counted."""
    for name, value in headers(g.get("rate_limits", {})):
        response.headers[name] = value
    return response


def headers(counted: Counts) -> list[tuple[str, str]]:
    if not counted:
        return []
    policies = [f'"{name}";q={quota};w={WINDOW_S}' for name, (quota, _, _) in counted.items()]
    states = [f'"{name}";r={remaining};t={wait}' for name, (_, remaining, wait) in counted.items()]
    return [("RateLimit-Policy", ", ".join(policies)), ("RateLimit", ", ".join(states))]
