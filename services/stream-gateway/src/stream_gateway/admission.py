"""Letting callers in: whoever is known never waits for strangers, and no organization for another's crowd."""

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable

from chassis import problems
from chassis.access import Presented
from chassis.principals import Kind
from stream_gateway.callers import Caller
from stream_gateway.fairness import FairThreads, QueueFull
from stream_gateway.model import Account, Subscription, Unverified

Admitted = tuple[Caller, Account, Subscription]

_KNOWN_THREADS = 2
_STRANGERS_THREADS = 2
_STRANGERS_WAITING = 500
"""Of one address."""
_ADMITTING_S = 10.0
"""Longer means that the database is silent, or that too many ask at once: they had better ask elsewhere."""
_KNOWN_CREDENTIALS = 10_000
_ADDRESSES = 10_000
_WINDOW_S = 60.0


class Admission:
    """Runs what admits a caller in threads.

    A credential that was admitted before is known. All others have threads of their own, round-robin by address, so
    that invented ones delay only each other; and an address with too many of them is refused without a read.
    """

    def __init__(self, refusals_per_minute: int) -> None:
        self._known_threads = FairThreads(_KNOWN_THREADS, "admit")
        self._strangers = FairThreads(_STRANGERS_THREADS, "admit-unknown", most_waiting=_STRANGERS_WAITING)
        self._refusals = Refusals(refusals_per_minute)
        self._known: OrderedDict[bytes, Hashable] = OrderedDict()
        self._first: dict[bytes, asyncio.Future[None]] = {}

    async def admit(self, presented: Presented, admit: Callable[[], Admitted]) -> Admitted:
        digest = _digest(presented)
        try:
            async with asyncio.timeout(_ADMITTING_S):
                while digest not in self._known:
                    first = self._first.get(digest)
                    if first is None:
                        return await self._admit_first(digest, presented, admit)
                    await asyncio.shield(first)  # once it is let in, the others are known
                return await self._admit_known(digest, presented, admit)
        except TimeoutError:
            raise Unverified from None

    async def _admit_first(self, digest: bytes, presented: Presented, admit: Callable[[], Admitted]) -> Admitted:
        self._refusals.check(presented.address)
        self._first[digest] = asyncio.get_running_loop().create_future()
        try:
            admitted = await self._counting_refusals(digest, presented, self._strangers, presented.address, admit)
        except QueueFull:
            raise problems.Problem(429, detail="Too many requests.", headers={"Retry-After": "2"}) from None
        else:
            self._remember(digest, admitted[0])
            return admitted
        finally:
            self._first.pop(digest).set_result(None)

    async def _admit_known(self, digest: bytes, presented: Presented, admit: Callable[[], Admitted]) -> Admitted:
        lane = self._known[digest]
        self._known.move_to_end(digest)
        return await self._counting_refusals(digest, presented, self._known_threads, lane, admit)

    async def _counting_refusals(
        self, digest: bytes, presented: Presented, threads: FairThreads, lane: Hashable, admit: Callable[[], Admitted]
    ) -> Admitted:
        try:
            return await threads.run(lane, admit)
        except problems.Problem as problem:
            if problem.status == 401:
                self._known.pop(digest, None)
                self._refusals.count(presented.address)
            raise

    def _remember(self, digest: bytes, caller: Caller) -> None:
        principal = caller.principal
        self._known[digest] = principal.id if principal.kind is Kind.SERVICE_ACCOUNT else principal.organization_id
        if len(self._known) > _KNOWN_CREDENTIALS:
            self._known.popitem(last=False)

    def close(self) -> None:
        self._known_threads.close()
        self._strangers.close()


class Refusals:
    """Refused credentials of each address in this minute."""

    def __init__(self, per_minute: int) -> None:
        self._per_minute = per_minute
        self._counts: dict[str | None, int] = {}
        self._resets_at = 0.0

    def check(self, address: str | None) -> None:
        """Refuse an address that has been refused too often, before anything is read for it."""
        left = self._resets_at - time.monotonic()
        if left > 0 and self._counts.get(address, 0) >= self._per_minute:
            headers = {"Retry-After": str(max(1, round(left)))}
            raise problems.Problem(429, detail="Too many refused credentials.", headers=headers)

    def count(self, address: str | None) -> None:
        now = time.monotonic()
        if now >= self._resets_at or len(self._counts) >= _ADDRESSES:
            self._counts, self._resets_at = {}, now + _WINDOW_S
        self._counts[address] = self._counts.get(address, 0) + 1


def _digest(presented: Presented) -> bytes:
    return hashlib.sha256(repr(presented.credentials).encode()).digest()
