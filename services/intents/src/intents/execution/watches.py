"""The accounts that a reconciler watches, and how their organizations share its streams and threads."""

import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from intents.execution.fair_share import may_take_another, who_gives_way
from intents.execution.model.known_orders import WatchedAccount
from intents.execution.reconciliation import MissingOrders

LINGER_SECONDS = 600.0  # how long an account is listened to after its last order has ended


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
    missing: MissingOrders = field(default_factory=MissingOrders)
    paused_until: float = 0.0
    """Until when the broker wishes not to be queried."""
    adopted_until: dict[UUID, datetime] = field(default_factory=dict)
    """By epoch: until when orders made since a restore are recorded, while they are too many for one listing."""
    claimed_at: float | None = None
    """Since when it is due to be read, until it was."""

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

    def end_stream_of_other(self, credential: str) -> None:
        """End a stream that another credential has opened, perhaps of another account at the broker."""
        if self.credential not in (None, credential):
            self.end_stream()
            self.credential = None

    def end_stream(self) -> None:
        if self.stream:
            self.stream.set()
            self.stream = None


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
