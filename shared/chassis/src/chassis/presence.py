"""Whether a tenant is alone: then it need not leave room for others."""

import hashlib
import mmap
import time
from collections.abc import Callable, Hashable
from typing import Generic, Protocol, TypeVar

from chassis.lru_cache import LruCache

_PRESENT_S = 1.0
_SLOTS = 256

Key = TypeVar("Key", bound=Hashable)
Tenant_contra = TypeVar("Tenant_contra", contravariant=True)


class Presence(Protocol[Tenant_contra]):
    def note(self, tenant: Tenant_contra) -> None:
        """It has just sent something."""

    def is_alone(self, tenant: Tenant_contra) -> bool:
        """Whether no other was seen within the last second."""


class OwnPresence(Generic[Key]):
    """Of what this process has seen. The two seen last are enough to know."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last_seen: LruCache[Key, float] = LruCache(2)

    def note(self, tenant: Key) -> None:
        self._last_seen.put(tenant, self._clock())

    def is_alone(self, tenant: Key) -> bool:
        since = self._clock() - _PRESENT_S
        return not any(at > since for other, at in self._last_seen.items() if other != tenant)


class SharedPresence:
    """Of what any process has seen that was forked from this one: a tenant's connections may all lead to another.

    Each tenant has two of the slots, so that two tenants hardly ever have both in common. A slot is two numbers that
    are written without a lock: at worst a tenant counts as present, or not, for a request more.
    """

    def __init__(self) -> None:
        self._slots = memoryview(mmap.mmap(-1, 16 * _SLOTS)).cast("Q")

    def note(self, tenant: str) -> None:
        name, places = _name_and_places(tenant)
        now = time.monotonic_ns()
        for place in places:
            self._slots[2 * place], self._slots[2 * place + 1] = name, now

    def is_alone(self, tenant: str) -> bool:
        name, _ = _name_and_places(tenant)
        since = time.monotonic_ns() - int(_PRESENT_S * 1e9)
        seen = self._slots.tolist()
        return not any(at > since and other != name for other, at in zip(seen[::2], seen[1::2], strict=True))


def _name_and_places(tenant: str) -> tuple[int, set[int]]:
    digest = hashlib.sha256(tenant.encode()).digest()
    return int.from_bytes(digest[:8]), {digest[8] % _SLOTS, digest[9] % _SLOTS}


OF_WORKERS = SharedPresence()
"""Of the web workers of one gunicorn, whose arbiter imports this before it forks them, or of all that a process has
forked which imported it: `tip_local.nursery`."""
