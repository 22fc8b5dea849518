"""Reading the durable log off the event loop: the end of it for everybody, pages of it for whoever is behind."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar
from uuid import UUID

from sqlalchemy import Connection, Engine

from chassis import db, logs
from stream_gateway import meters, schemas, store
from stream_gateway.fairness import FairThreads
from stream_gateway.hub import BATCH, Hub
from stream_gateway.model import EpochEnded, Event
from stream_gateway.schemas import Entry

log = logs.get(__name__)

Found = TypeVar("Found")

PAGES_KEPT = 4
_BEHIND_THREADS = 2
_RETRY_S = 0.5


class Log:
    """The logs of all accounts. Whoever is behind has threads of its own, so that it cannot hold up what is new.

    Pages are read round-robin by organization: a thousand streams of one that begin far behind delay nobody else.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._live = ThreadPoolExecutor(1, "live")
        self._behind = FairThreads(_BEHIND_THREADS, "behind")

    async def heads(self, ids: Iterable[UUID]) -> tuple[str, dict[UUID, int]]:
        """The epoch, and how far each account's log has come in it."""
        wanted = list(ids)
        return await self._in_live_thread(lambda: self._read(lambda tx: store.heads(tx, wanted)))

    async def after(self, positions: Mapping[UUID, int]) -> tuple[str, dict[UUID, list[Entry]]]:
        """The epoch, and what is new in it on each of the accounts; one read for all of them."""
        found = await self._in_live_thread(lambda: self._entries_after(positions))
        meters.READS.labels("live").inc()
        return found

    async def page(self, hub: Hub, position: int) -> tuple[int, list[Entry]]:
        """How far the page reaches, and those of its entries that come after the position."""
        start, until = hub.page(position)
        found = hub.pages.get((start, until))
        if found is None:
            found = asyncio.ensure_future(self._read_page(hub, start, until))
            _keep(hub, (start, until), found)
        # Shielded: one subscriber that goes away must not take the page from the others.
        return until, [entry for entry in await asyncio.shield(found) if entry.sequence > position]

    async def _read_page(self, hub: Hub, start: int, until: int) -> list[Entry]:
        while hub.streams:
            try:
                epoch, entries = await self._behind.run(
                    hub.organization_id, partial(self._entries_between, hub.account_id, start, until)
                )
            except Exception as error:  # noqa: BLE001 - the subscriber waits, as it would for an event
                meters.UNREACHABLE.labels("behind").inc()
                log.warning("page_not_read", error=type(error).__name__)
                await asyncio.sleep(_RETRY_S)
                continue
            meters.READS.labels("behind").inc()
            meters.READ.labels("behind").inc(len(entries))
            if epoch != hub.epoch:
                hub.end(EpochEnded())
                return []  # nobody reads it: their streams have just been cut
            return entries
        return []  # nobody waits for it any more

    async def _in_live_thread(self, read: Callable[[], Found]) -> Found:
        return await asyncio.get_running_loop().run_in_executor(self._live, read)

    def _entries_after(self, positions: Mapping[UUID, int]) -> tuple[str, dict[UUID, list[Entry]]]:
        """Encoded here, in the reading thread: once for all subscribers."""
        with db.reading(self._engine) as tx:  # one statement, which also commits an epoch that it begins
            epoch, events = store.after(tx, positions, BATCH)
        return epoch, _by_account(events, epoch)

    def _entries_between(self, account_id: UUID, start: int, until: int) -> tuple[str, list[Entry]]:
        epoch, events = self._read(lambda tx: store.between(tx, account_id, start, until))
        return epoch, [schemas.entry(event, epoch) for event in events]

    def _read(self, read: Callable[[Connection], Found]) -> tuple[str, Found]:
        """What was read and the epoch it is of. In one transaction: between two, the database may be restored.

        Nothing is encoded in it: Postgres ends a transaction that is idle for long.
        """
        with self._engine.begin() as connection:
            return store.current_epoch(connection), read(connection)

    def close(self) -> None:
        self._live.shutdown(wait=False, cancel_futures=True)
        self._behind.close()


def _keep(hub: Hub, page: tuple[int, int], found: asyncio.Future[list[Entry]]) -> None:
    hub.pages[page] = found
    while len(hub.pages) > PAGES_KEPT:
        del hub.pages[next(iter(hub.pages))]


def _by_account(events: Iterable[Event], epoch: str) -> dict[UUID, list[Entry]]:
    found: dict[UUID, list[Entry]] = {}
    now = datetime.now(UTC)
    for event in events:
        found.setdefault(event.account_id, []).append(schemas.entry(event, epoch))
        meters.AGE.observe(max(0.0, (now - event.occurred_at).total_seconds()))
    meters.READ.labels("live").inc(sum(map(len, found.values())))
    return found
