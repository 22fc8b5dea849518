"""Admitting callers: a known credential never waits for strangers, and no organization for another's crowd."""

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from weakref import WeakValueDictionary

from chassis import problems
from chassis.authentication import PresentedCredentials
from chassis.principals import Kind
from stream_gateway.callers import Caller
from stream_gateway.fairness import ConcurrencyLimiter, FairThreads, QueueFull
from stream_gateway.model import Account, Ending, Subscription, Unverified
from stream_gateway.quota import Owners, StreamQuota

Admitted = tuple[Caller, Account, Subscription]

_KNOWN_THREADS = 2
_STRANGERS_THREADS = 2
_APART_S = 0.02
"""Between two openings of one organization while others are there: they take a quarter of a core at most."""
STRANGERS_PENDING = 500
"""Of one address."""
_ADMITTING_S = 10.0
"""Longer means that the database is silent or that too many callers wait: they had better try another gateway."""
_KNOWN_CREDENTIALS = 10_000
_ADDRESSES = 10_000
_WINDOW_S = 60.0


class Admission:
    """Runs what admits a caller in threads.

    A credential that was admitted before is known. All others have threads of their own, round-robin by address, so
    that invented ones delay only each other; and an address with too many of them is refused without a read.
    """

    def __init__(self, quota: StreamQuota, refusals_per_minute: int) -> None:
        self._quota = quota
        self._known_threads = FairThreads(
            _KNOWN_THREADS, "admit", most_waiting=quota.limits.per_organization, apart_s=_APART_S
        )
        self._strangers = FairThreads(_STRANGERS_THREADS, "admit-unknown", most_waiting=STRANGERS_PENDING)
        self._strangers_pending = ConcurrencyLimiter(STRANGERS_PENDING)
        self._refusals = Refusals(refusals_per_minute)
        self._known: OrderedDict[bytes, Owners] = OrderedDict()
        self._locks: WeakValueDictionary[bytes, asyncio.Lock] = WeakValueDictionary()

    @contextmanager
    def pending(self, presented: PresentedCredentials) -> Iterator[None]:
        """Count a call until it is let in: with the open streams of its owners, or by address if it is not known.

        Whoever has too many of them is refused here, at once.
        """
        owners = self._known.get(_digest(presented))
        counted = self._strangers_pending.slot(presented.address) if owners is None else self._quota.pending(owners)
        try:
            with counted:
                yield
        except QueueFull:
            raise problems.Problem(429, detail="Too many requests.", headers={"Retry-After": "2"}) from None

    async def admit(self, presented: PresentedCredentials, admit: Callable[[], Admitted]) -> Admitted:
        """Within `pending`."""
        digest = _digest(presented)
        try:
            async with asyncio.timeout(_ADMITTING_S):
                if digest not in self._known:
                    # One call of a credential at a time: as soon as it is let in, the others are known. A lock wakes
                    # only the next of them, so that a crowd with an invented key costs as much as its number.
                    async with self._lock(digest):
                        if digest not in self._known:
                            return await self._admit_stranger(digest, presented, admit)
                return await self._admit_known(digest, presented, admit)
        except TimeoutError:
            raise Unverified from None

    async def redeem(
        self, address: str | None, redeem: Callable[[], Awaitable[PresentedCredentials | None]]
    ) -> PresentedCredentials:
        """What stands behind a ticket; whoever shows one is a stranger until then."""
        with self.pending(PresentedCredentials((), None, address)):
            self._refusals.check(address)
            found = await redeem()
            if found is None:
                self._refusals.count(address)
                raise problems.unauthenticated()
            return found

    def _lock(self, digest: bytes) -> asyncio.Lock:
        lock = self._locks.get(digest)
        if lock is None:
            lock = self._locks[digest] = asyncio.Lock()
        return lock

    async def _admit_stranger(
        self, digest: bytes, presented: PresentedCredentials, admit: Callable[[], Admitted]
    ) -> Admitted:
        self._refusals.check(presented.address)
        try:
            admitted = await self._strangers.run(presented.address, admit)
        except (problems.Problem, Ending) as refusal:
            if not isinstance(refusal, problems.Problem) or refusal.status < 500:
                self._refusals.count(presented.address)
            raise
        self._remember(digest, admitted[0])
        return admitted

    async def _admit_known(
        self, digest: bytes, presented: PresentedCredentials, admit: Callable[[], Admitted]
    ) -> Admitted:
        owners = self._known[digest]
        self._known.move_to_end(digest)
        try:
            return await self._known_threads.run(owners[-1], admit)
        except problems.Problem as refusal:
            if refusal.status == 401:
                self._known.pop(digest, None)
                self._refusals.count(presented.address)
            raise

    def _remember(self, digest: bytes, caller: Caller) -> None:
        principal = caller.principal
        is_of_many = principal.kind is Kind.SERVICE_ACCOUNT  # each of its calls names an organization
        self._known[digest] = (caller.name,) if is_of_many else (caller.name, principal.organization_id)
        if len(self._known) > _KNOWN_CREDENTIALS:
            self._known.popitem(last=False)

    def close(self) -> None:
        self._known_threads.close()
        self._strangers.close()


class Refusals:
    """Callers refused from each address in this minute."""

    def __init__(self, per_minute: int) -> None:
        self._per_minute = per_minute
        self._counts: dict[str | None, int] = {}
        self._resets_at = 0.0

    def check(self, address: str | None) -> None:
        """Refuse an address that has been refused too often, before anything is read for it."""
        left = self._resets_at - time.monotonic()
        if left > 0 and self._counts.get(address, 0) >= self._per_minute:
            headers = {"Retry-After": str(max(1, round(left)))}
            raise problems.Problem(429, detail="Too many refused requests.", headers=headers)

    def count(self, address: str | None) -> None:
        now = time.monotonic()
        if now >= self._resets_at or len(self._counts) >= _ADDRESSES:
            self._counts, self._resets_at = {}, now + _WINDOW_S
        self._counts[address] = self._counts.get(address, 0) + 1


def _digest(presented: PresentedCredentials) -> bytes:
    return hashlib.sha256(repr(presented.credentials).encode()).digest()
