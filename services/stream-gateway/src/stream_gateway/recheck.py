"""Verifying again who reads: what is revoked ends its streams, in batches and fairly between organizations."""

import asyncio
import math
from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol
from uuid import UUID

from sqlalchemy import Connection

from chassis import db, logs
from chassis.authentication import Access
from chassis.principals import Kind
from stream_gateway import callers, meters, store
from stream_gateway.credentials import Credential
from stream_gateway.hub import Hub
from stream_gateway.model import AccountNotFound, Ending
from stream_gateway.usecases import Deps

log = logs.get(__name__)

FEWEST, MOST = 20, 500
"""Verified by one read: at most some milliseconds of the database, and of the threads that open streams meanwhile."""
_PAUSE_S = 0.05
_REST_S = 0.5  # while there is nothing to verify; what is new was verified when it was admitted
_RETRY_S = 0.25


class Verifiable(Protocol):
    """A credential or an account that streams depend on."""

    @property
    def check(self) -> Hashable: ...
    @property
    def organization_id(self) -> UUID: ...
    @property
    def streams(self) -> set[Any]: ...

    verified_at: float

    def end(self, ending: Ending) -> None: ...


class RecheckQueue:
    """What is to be verified again: round-robin by organization, within one in the order of the last attempt."""

    def __init__(self, interval_s: float) -> None:
        self._interval_s = interval_s
        self._of: dict[UUID, deque[tuple[float, Verifiable]]] = {}
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def share(self, turn_s: float) -> int:
        """How many to take in a turn of that length, so that all have had theirs after half of the interval."""
        return min(max(math.ceil(2 * self._length * turn_s / self._interval_s), FEWEST), MOST)

    def add(self, item: Verifiable, attempted_at: float) -> None:
        self._length += 1
        self._of.setdefault(item.organization_id, deque()).append((attempted_at, item))

    def take(self, now: float, limit: int) -> list[Verifiable]:
        """What is due. An organization that has been served goes behind all that have not."""
        batch: list[Verifiable] = []
        resting: dict[UUID, deque[tuple[float, Verifiable]]] = {}
        while self._of and len(batch) < limit:
            organization_id = next(iter(self._of))
            queue = self._of.pop(organization_id)
            item = self._due(queue, now)
            if item is not None:
                batch.append(item)
                self._of[organization_id] = queue
            elif queue:
                resting[organization_id] = queue
        self._of.update(resting)
        return batch

    def _due(self, queue: deque[tuple[float, Verifiable]], now: float) -> Verifiable | None:
        while queue:
            attempted_at, item = queue[0]
            if item.streams and attempted_at + self._interval_s > now:
                return None
            queue.popleft()
            self._length -= 1
            if item.streams:  # else they have gone
                return item
        return None


Check = Callable[[Access, Connection, Sequence[Any]], Sequence[Ending | None]]


def _credentials(
    recheck: Callable[[Access, Connection, Sequence[callers.Caller]], callers.Endings],
) -> Check:
    def check(auth: Access, tx: Connection, batch: Sequence[Credential]) -> Sequence[Ending | None]:
        return recheck(auth, tx, [credential.caller for credential in batch])

    return check


def _accounts(_auth: Access, tx: Connection, batch: Sequence[Hub]) -> Sequence[Ending | None]:
    existing = store.existing(tx, [hub.account_id for hub in batch])
    return [None if hub.account_id in existing else AccountNotFound() for hub in batch]


# API keys first: they are what is revoked in a hurry.
CHECKS: Mapping[Hashable, Check] = {
    Kind.API_KEY: _credentials(callers.recheck_keys),
    Hub.CHECK: _accounts,
    Kind.USER: _credentials(callers.recheck_users),
    Kind.SERVICE_ACCOUNT: _credentials(callers.recheck_service_accounts),
}


class Rechecks:
    """Each credential and each account is verified by itself: what cannot be verified in time ends nobody else's."""

    def __init__(self, deps: Deps, interval_s: float) -> None:
        self._deps = deps
        self._thread = ThreadPoolExecutor(1, "recheck")
        self._queues = {check: RecheckQueue(interval_s) for check in CHECKS}
        self._turn_s = _PAUSE_S

    def add(self, item: Verifiable) -> None:
        self._queues[item.check].add(item, item.verified_at)

    async def run(self) -> None:
        """Evenly: all at once would hold up for that long whoever opens a stream."""
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            await self.turn()
            await asyncio.sleep(_PAUSE_S if any(self._queues.values()) else _REST_S)
            self._turn_s = loop.time() - began

    async def turn(self) -> None:
        """One batch of each kind."""
        now = asyncio.get_running_loop().time()
        batches = [(check, queue.take(now, queue.share(self._turn_s))) for check, queue in self._queues.items()]
        verified = [await self._verify(check, batch) for check, batch in batches if batch]
        if not all(verified):
            await asyncio.sleep(_RETRY_S)

    async def _verify(self, check: Hashable, batch: Sequence[Verifiable]) -> bool:
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            endings = await loop.run_in_executor(self._thread, self._query, check, batch)
        except Exception as error:  # noqa: BLE001 - whatever it was, it is tried again
            meters.UNREACHABLE.labels("recheck").inc()
            log.warning("callers_not_rechecked", error=type(error).__name__, count=len(batch))
            return False
        else:
            for item, ending in zip(batch, endings, strict=True):
                if ending is None:
                    item.verified_at = max(item.verified_at, began)
                else:
                    item.end(ending)
            return True
        finally:
            for item in batch:
                self._queues[check].add(item, began)

    def _query(self, check: Hashable, batch: Sequence[Verifiable]) -> Sequence[Ending | None]:
        with db.reading(self._deps.engine) as connection:
            return CHECKS[check](self._deps.access, connection, batch)

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)
