"""Moves new events from the logs into the hubs: woken by hints, and polling all the same."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from uuid import UUID

from chassis import logs
from stream_gateway import meters
from stream_gateway.fairness import RoundRobin
from stream_gateway.hub import BATCH, Hub
from stream_gateway.log import Log
from stream_gateway.streams import Streams

log = logs.get(__name__)

_RETRY_S = 0.25
_LINGER_S = 0.004
"""How long hints gather before they are read: what became of an order comes in two or three steps, close together."""
_REST_S = 4.0  # between two polls without an open stream, which only show that the database answers
READ_EVENTS = 2_048
"""About as many events are read at once, so that an account with few never waits long for accounts with many."""


class Pump:
    """One for all accounts: reads for whichever of them have grown, in one read, while hints for the next gather.

    If they have grown by more than one read takes, organizations take turns.
    """

    def __init__(self, streams: Streams, log: Log, poll_s: float) -> None:
        self._streams, self._hubs = streams, streams.hubs
        self._log, self._poll_s = log, poll_s
        self._pending: dict[UUID, int] = {}
        """Accounts to read, and the newest sequence that their logs are known to have."""
        self._hinted = asyncio.Event()
        self._poll_at = 0.0
        self.polled_at = -1.0
        """When the database last answered, by the loop's clock."""

    def receive_hints(self, positions: Mapping[str, int]) -> None:
        """Take the heads that hints report; only news about accounts with open streams counts."""
        for text, sequence in positions.items():
            account_id = _account_id(text)
            hub = self._hubs.get(account_id) if account_id else None
            if hub is not None and sequence > hub.last:
                self._enqueue(hub.account_id, sequence)
                meters.HINTS.inc()
        if self._pending:
            self._hinted.set()

    def _enqueue(self, account_id: UUID, sequence: int) -> None:
        self._pending[account_id] = max(sequence, self._pending.get(account_id, 0))

    async def run(self) -> None:
        """Until cancelled. A database that is down means waiting; nothing is forgotten meanwhile."""
        while True:
            try:
                await self._wait()
                await self.turn()
            except Exception as error:  # noqa: BLE001 - whatever it was, the log is still there
                meters.UNREACHABLE.labels("live").inc()
                log.warning("log_not_read", error=type(error).__name__)
                await asyncio.sleep(_RETRY_S)

    async def _wait(self) -> None:
        if self._pending:
            return
        left = self._poll_at - asyncio.get_running_loop().time()
        if left > 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._hinted.wait(), left)
                await asyncio.sleep(_LINGER_S)

    async def turn(self) -> None:
        """Poll the heads if it is time to, then read once for the accounts that have grown."""
        self._hinted.clear()
        now = asyncio.get_running_loop().time()
        if now >= self._poll_at:
            if self._hubs or self.polled_at < 0 or now >= self.polled_at + _REST_S:
                await self._poll(now)
            self._poll_at = now + self._poll_s
        positions = self._next_read()
        if positions:
            await self._read(positions, {account_id: self._pending.pop(account_id) for account_id in positions})

    async def _poll(self, now: float) -> None:
        epoch, heads = await self._log.heads(self._hubs)
        self._streams.end_other_epochs(epoch)
        self._compare(heads)
        self.polled_at = now

    def _next_read(self) -> dict[UUID, int]:
        """The accounts to read now, and after which sequence. The others stay pending."""
        waiting: RoundRobin[Hub] = RoundRobin()
        for account_id, sequence in list(self._pending.items()):
            hub = self._hubs.get(account_id)
            if hub is not None and hub.last < sequence:
                waiting.add(hub.organization_id, hub)
            else:  # the hint came while the same events were being read
                del self._pending[account_id]
        positions: dict[UUID, int] = {}
        expected = 0
        while expected < READ_EVENTS and (hub := waiting.take()):
            positions[hub.account_id] = hub.last
            expected += min(BATCH, self._pending[hub.account_id] - hub.last)
        return positions

    def _compare(self, heads: Mapping[UUID, int]) -> None:
        for account_id, head in heads.items():
            hub = self._hubs.get(account_id)
            if hub is not None and head > hub.last:
                hub.head = max(hub.head, head)
                self._enqueue(account_id, head)

    async def _read(self, positions: Mapping[UUID, int], heads: Mapping[UUID, int]) -> None:
        try:
            epoch, found = await self._log.after(positions)
        except BaseException:
            for account_id in positions:
                self._enqueue(account_id, heads[account_id])
            raise
        self._streams.end_other_epochs(epoch)
        for account_id, entries in found.items():
            hub = self._hubs.get(account_id)
            # A hub that was closed and opened again in the meantime may already be further.
            if hub is not None and hub.last == positions[account_id]:
                hub.append(entries)
            if len(entries) == BATCH:
                self._enqueue(account_id, entries[-1].sequence + 1)


def _account_id(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
