"""Group commit: commands change memory at once; answers and events wait until their batch is on disk."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from paper_broker.model import Changes, Event
from paper_broker.store import Batch, Store

T = TypeVar("T")


class Journal:
    """While one batch is being written the next one gathers, so that all commands of a batch share one fsync."""

    def __init__(self, store: Store, publish: Callable[[list[Event]], None]) -> None:
        self._store = store
        self._publish = publish
        self._batch = Batch()
        self._loop = asyncio.get_running_loop()
        self._gathering: asyncio.Future[None] = self._loop.create_future()
        self._writing: asyncio.Future[None] | None = None
        self._wake = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, "store")

    def add(self, changes: Changes) -> None:
        if changes:
            self._batch.changes.append(changes)
            self._wake.set()

    def add_post(self, account_id: str, client_order_id: str, *, refused: bool) -> None:
        self._batch.posts.append((account_id, client_order_id, refused))
        self._wake.set()

    async def committed(self) -> None:
        """Wait until everything added so far is on disk. Reads wait too: what was shown must not vanish in a crash."""
        waiting = self._gathering if self._batch else self._writing
        if waiting is not None:
            await asyncio.shield(waiting)

    async def read(self, query: Callable[[], T]) -> T:
        """Query the store, after everything added so far."""
        await self.committed()
        return await self._call(query)

    async def run(self) -> None:
        """Write until cancelled. An error ends the process: memory is then ahead of the disk and cannot be trusted."""
        while True:
            await self._wake.wait()
            await self.write_once()

    async def write_once(self) -> None:
        self._wake.clear()
        batch, self._batch = self._batch, Batch()
        self._writing, self._gathering = self._gathering, self._loop.create_future()
        try:
            await self._call(lambda: self._store.write(batch))
        except Exception as error:
            self._writing.set_exception(error)
            raise
        self._writing.set_result(None)
        self._writing = None
        self._publish([event for changes in batch.changes for event in changes.events])

    async def close(self) -> None:
        if self._batch:
            await self.write_once()
        self._thread.shutdown()

    async def _call(self, work: Callable[[], T]) -> T:
        if self._store.in_memory:  # no disk to wait for: a thread would only cost
            return work()
        return await self._loop.run_in_executor(self._thread, work)
