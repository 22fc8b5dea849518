"""One account's newest events in memory, shared by all its streams, and each stream's place among them."""

import asyncio
import random
from collections.abc import Sequence
from uuid import UUID

from stream_gateway import schemas
from stream_gateway.credentials import Credential
from stream_gateway.fairness import WriteScheduler
from stream_gateway.model import Ending
from stream_gateway.schemas import Entry

BATCH = 256
"""Entries a stream takes at once, and entries of a page of the log: what a stream may hold on to."""
_HEARTBEAT_SHARED_S = 0.25
"""Streams of a quiet account all have the same one to be written, and half of its cost is to encode it."""


class Hub:
    """The end of one account's log. `last` is the newest sequence read; what is kept reaches up to it without gaps.

    `verified_at` is when the account was last found in the database, by the loop's clock.
    """

    CHECK = "account"
    __slots__ = (
        "_entries",
        "_first",
        "_heartbeat",
        "_limit",
        "_tidied",
        "account_id",
        "epoch",
        "head",
        "last",
        "organization_id",
        "pages",
        "streams",
        "verified_at",
        "write_scheduler",
    )

    def __init__(
        self,
        account_id: UUID,
        organization_id: UUID,
        epoch: str,
        head: int,
        limit: int,
        write_scheduler: WriteScheduler,
    ) -> None:
        self.account_id, self.organization_id, self.epoch = account_id, organization_id, epoch
        self.write_scheduler = write_scheduler
        self.verified_at = 0.0
        self.last = self.head = head
        self.streams: set[Stream] = set()
        self.pages: dict[tuple[int, int], asyncio.Future[list[Entry]]] = {}
        self._limit = limit
        self._first = head + 1
        self._entries: list[Entry] = []
        self._tidied = -1
        self._heartbeat: tuple[float, int, int, Entry] | None = None

    def append(self, entries: Sequence[Entry]) -> None:
        """Add what the log has after `last`, and wake every stream once."""
        if not entries:
            return
        if entries[0].sequence != self.last + 1:  # not a log of ours; but better a jump than an end
            self._entries, self._first = [], entries[0].sequence
        self._entries.extend(entries)
        self.last = entries[-1].sequence
        self.head = max(self.head, self.last)
        self._trim()
        for stream in self.streams:
            stream.wake()

    def _trim(self) -> None:
        # Not at every append: cutting the front of a list moves all of it.
        if len(self._entries) > 2 * self._limit:
            cut = len(self._entries) - self._limit
            del self._entries[:cut]
            self._first += cut

    def tidy(self) -> None:
        """Called periodically: an account without events since the last call keeps nothing in memory."""
        if self.last == self._tidied:
            self._entries, self._first = [], self.last + 1
            self.pages.clear()
        self._tidied = self.last

    def after(self, position: int) -> list[Entry] | None:
        """The next entries after the position, none if there are none yet; None if they are no longer in memory."""
        index = position + 1 - self._first
        return None if index < 0 else self._entries[index : index + BATCH]

    def heartbeat(self, position: int, now: float) -> Entry:
        """For a stream that has come this far: the one made last, if that was a moment ago and nothing has changed."""
        made = self._heartbeat
        if made is None or made[0] + _HEARTBEAT_SHARED_S < now or made[1:3] != (position, self.head):
            entry = schemas.heartbeat(self.account_id, self.epoch, position, self.head)
            made = self._heartbeat = (now, position, self.head, entry)
        return made[3]

    def page(self, position: int) -> tuple[int, int]:
        """The page of the log that holds what comes after the position: after the first number, up to the second.

        Pages begin at the same sequences for all streams, so that streams that are equally far behind share them.
        """
        start = position // BATCH * BATCH
        return start, min(start + BATCH, self._first - 1)

    def end(self, ending: Ending) -> None:
        for stream in list(self.streams):
            stream.end(ending)

    @property
    def check(self) -> str:
        """Which of the CHECKS verifies it again."""
        return self.CHECK

    @property
    def kept(self) -> int:
        return len(self._entries)


class Stream:
    """One subscriber's reading of a log: everything up to `position` was written, or is of another type."""

    __slots__ = (
        "_may_write",
        "_waiter",
        "_woken",
        "credential",
        "cut",
        "ending",
        "heartbeat_at",
        "hub",
        "moved_at",
        "position",
        "queued",
        "reading",
        "replay_until",
        "seen",
        "task",
        "transport",
        "types",
    )

    def __init__(
        self,
        hub: Hub,
        credential: Credential,
        types: frozenset[int],
        position: int,
        replay_until: int | None,
        transport: str,
    ) -> None:
        self.hub, self.credential, self.types, self.transport = hub, credential, types, transport
        self.position, self.replay_until = position, replay_until
        self.ending: Ending | None = None
        self.cut = False
        self.task: asyncio.Task[object] | None = None
        self.reading = self.queued = False
        self._may_write = self._woken = False
        self.heartbeat_at = self.moved_at = 0.0
        self.seen = -1
        self._waiter: asyncio.Future[None] | None = None

    def schedule_heartbeat(self, now: float, interval: float, *, first: bool = False) -> None:
        # Streams that begin at the same time must not all be written to in the same moment for ever.
        self.heartbeat_at = now + (interval * random.uniform(0.5, 1) if first else interval)  # noqa: S311 - spreads # nosec B311

    def wake(self) -> None:
        """Go on as soon as its organization may write."""
        if self._waiter is not None and not self._woken:
            self._woken = True
            self.hub.write_scheduler.wake(self.hub.organization_id, self._waiter)

    async def wait(self) -> None:
        """Until something happens: new entries, a heartbeat is due, or the stream is to end."""
        self._waiter, self._woken, self._may_write = asyncio.get_running_loop().create_future(), False, False
        try:
            await self._waiter
            self._may_write = True
        finally:
            self._waiter = None

    async def acquire_write(self) -> None:
        """Before every write: until this organization may write again. Who has just been woken may."""
        if self._may_write:
            self._may_write = False
            return
        self.queued = True
        try:
            await self.hub.write_scheduler.acquire(self.hub.organization_id)
        finally:
            self.queued = False

    def heartbeat(self, now: float) -> Entry:
        return self.hub.heartbeat(self.position, now)

    @property
    def waiting(self) -> bool:
        return self._waiter is not None

    def end(self, ending: Ending, *, at_once: bool = True) -> None:
        """Have the stream end with this, the first reason counting; `at_once` even in a write that blocks."""
        if self.cut or (self.ending is not None and not at_once):
            return
        self.ending, self.cut = ending, at_once
        if self.waiting:
            self.wake()
        elif at_once and self.task is not None:
            self.task.cancel()

    @property
    def lag(self) -> int:
        return self.hub.head - self.position

    def is_stuck(self, now: float, limit: float) -> bool:
        """Whether it has been in the same write for longer than the limit; to be called regularly."""
        if self.waiting or self.reading or self.queued or self.position != self.seen:
            self.seen, self.moved_at = self.position, now
        return now - self.moved_at > limit
