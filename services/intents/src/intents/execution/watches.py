"""The accounts that a reconciler watches, and how their organizations share its streams and threads."""

import math
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from intents.execution.fair_share import may_take_another, who_gives_way
from intents.execution.model.known_orders import WatchedAccount
from intents.execution.order_queries import OrderQueries

NEVER = -math.inf
LINGER_SECONDS = 600.0  # how long an account is listened to after its last order has ended
ON_ITS_WAY_SECONDS = 5.0
MOST_TRUST = 12  # so many times rarer is an account compared whose stream has reported everything


@dataclass
class Watch:
    """One account: its stream, and when it is to be reconciled next."""

    account: WatchedAccount
    due_at: float = 0.0
    active_at: float = field(default_factory=time.monotonic)
    is_busy: bool = False
    stream: threading.Event | None = None
    """Ends its stream; None: it has none."""
    credential: str | None = None
    """With which its stream was opened last."""
    queries: OrderQueries = field(default_factory=OrderQueries)
    paused_until: float = 0.0
    """Until when the broker wishes not to be queried."""
    adopted_until: dict[UUID, datetime] = field(default_factory=dict)
    """By epoch: until when orders made since a restore are recorded, while they are too many for one listing."""
    claimed_at: float | None = None
    """Since when it is due to be read, until it was."""
    is_listening: bool = False
    """Whether its stream is open at the broker."""
    reported: dict[str, float] = field(default_factory=dict)
    """When its stream last reported something of an order, by the broker's id; the last seconds."""
    paused_elsewhere: dict[str, float] = field(default_factory=dict)
    """Until when no former account is queried with a credential."""
    refused_elsewhere: set[str] = field(default_factory=set)
    """Credentials of former accounts that the broker refuses, which is reported already."""
    compared_at: float = 0.0
    """When the last comparison began,"""
    _next_at: float = 0.0
    """and when the next was due then."""
    agreements: int = 0
    """How many comparisons in a row found nothing that its stream had not reported."""

    @property
    def is_claimed(self) -> bool:
        return self.claimed_at is not None

    def end_claim(self, began: float) -> bool:
        """End a claim that was made before a read that began then; whether there was one."""
        if self.claimed_at is None or self.claimed_at > began:
            return False
        self.claimed_at = None
        return True

    def is_followed(self, now: float) -> bool:
        """Whether it is reconciled again and again and listened to: while something is open, and a while longer."""
        return self.account.is_open or now - self.active_at < LINGER_SECONDS

    def follow(self, account: WatchedAccount, every: float, *, is_due: bool, now: float) -> None:
        """Take what is known of the account now, and compare it sooner if that gives reason to."""
        if account.is_open and (self.active_at == NEVER or not self.account.is_open):
            self.active_at = now
            soonest = now + every if self.due_at == math.inf else self.due_at
            self.due_at = soonest if self.is_listening else min(self.due_at, now)
        self.account = account
        if is_due:
            self.claimed_at = time.monotonic()
        if now < self.paused_until:
            return
        if account.is_unconfirmed and not account.is_restored:
            self.due_at = min(self.due_at, self.compared_at + every)
        if is_due or account.is_urgent:
            self.due_at = 0.0

    def begin_listening(self) -> None:
        """Compare at once: what happened before is not reported by the stream."""
        self.is_listening, self.agreements, self.due_at = True, 0, 0.0

    def end_listening(self, next_comparison: float) -> None:
        self.is_listening, self.agreements = False, 0
        self.due_at = min(self.due_at, max(next_comparison, self.paused_until))

    def note_update(self, broker_order_id: str) -> None:
        self.active_at = self.reported[broker_order_id] = time.monotonic()

    def begin_comparison(self, now: float, every: float) -> None:
        self.is_busy, self.compared_at = True, now
        self.due_at = self._next_at = now + every if self.is_followed(now) else math.inf
        recent = now - ON_ITS_WAY_SECONDS
        self.reported = {name: moment for name, moment in list(self.reported.items()) if moment >= recent}

    def end_comparison(self, every: float, differing: Iterable[str]) -> None:
        """With the broker's ids of orders that differed. What the stream has just reported is on its way here.

        The next comparison comes twice as late after each agreement, unless something is in doubt, or has made it due
        again meanwhile.
        """
        agrees = self.reported.keys() >= set(differing) and not self.queries.has_unread
        self.agreements = self.agreements + 1 if self.is_listening and agrees else 0
        is_certain = not (self.account.is_restored or self.account.is_unconfirmed)
        if is_certain and self.due_at == self._next_at < math.inf:
            self.due_at = self.compared_at + every * min(MOST_TRUST, 2**self.agreements)

    def end_stream_of_other(self, credential: str) -> None:
        """End a stream that another credential has opened, perhaps of another account at the broker."""
        if self.credential not in (None, credential):
            self.end_stream()
            self.credential = None

    def end_stream(self) -> None:
        if self.stream:
            self.stream.set()
            self.stream = None


def by_lane(watches: Iterable[Watch]) -> dict[str, Counter[UUID]]:
    """How many of the watches are of each organization, for each broker and environment."""
    found: defaultdict[str, Counter[UUID]] = defaultdict(Counter)
    for watch in watches:
        found[watch.account.lane][watch.account.organization_id] += 1
    return found


def by_organization(watches: Iterable[Watch]) -> Counter[UUID]:
    """How many of the watches are of each organization."""
    return Counter(watch.account.organization_id for watch in watches)


def may_take(watch: Watch, held: Counter[UUID], places: int) -> bool:
    return may_take_another(held[watch.account.organization_id], places - held.total())


def share_streams(watches: Sequence[Watch], places: int) -> Iterator[tuple[Watch, threading.Event]]:
    """Streams to open, with what ends them: as many as there are places, and of one organization its fair share.

    Also of what others had before it came: the quietest stream of whoever has most is ended for it.
    """
    held = by_organization(watch for watch in watches if watch.stream)
    full: set[UUID] = set()
    for watch in watches:
        organization_id = watch.account.organization_id
        if watch.stream or organization_id in full:
            continue
        if not may_take(watch, held, places):
            if (other := who_gives_way(organization_id, held)) is None:
                full.add(organization_id)
                continue
            _end_quietest_stream(watches, other)
            held[other] -= 1
        watch.stream = threading.Event()
        held[organization_id] += 1
        yield watch, watch.stream


def _end_quietest_stream(watches: Iterable[Watch], organization_id: UUID) -> None:
    theirs = (watch for watch in watches if watch.stream and watch.account.organization_id == organization_id)
    min(theirs, key=lambda watch: watch.active_at).end_stream()
