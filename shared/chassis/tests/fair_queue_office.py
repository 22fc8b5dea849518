"""A fair queue with requests in it."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from chassis.callers import Caller, Trust
from chassis.fair_queue import FairQueue, QueueFull, Slot

THREADS = 8


def caller(tenant: str, key: str = "key", trust: Trust = Trust.VERIFIED) -> Caller:
    return Caller(trust, tenant, f"{tenant}/{key}")


def in_a_loop(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    def run() -> None:
        asyncio.run(test())  # type: ignore[arg-type]

    run.__name__ = test.__name__
    return run


class Office:
    """Requests that run until they are released."""

    def __init__(self, **options: Any) -> None:
        self.queue = FairQueue(THREADS, **options)
        self.running: list[Slot] = []
        self.refused: list[Caller] = []

    async def send(self, *callers: Caller, heavy: bool = False, writes: bool = False) -> "list[asyncio.Task[None]]":
        tasks = [asyncio.create_task(self._request(caller, heavy, writes)) for caller in callers]
        await settled()
        return tasks

    async def _request(self, caller: Caller, heavy: bool, writes: bool) -> None:
        try:
            self.running.append(await self.queue.acquire(caller, heavy=heavy, writes=writes))
        except QueueFull:
            self.refused.append(caller)

    async def end(self, slot: Slot) -> None:
        self.running.remove(slot)
        self.queue.release(slot)
        await settled()

    @property
    def tenants(self) -> Counter[str]:
        return Counter(slot.caller.tenant for slot in self.running)


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)
