"""Thousands of open event streams, in one event loop of a thread of its own."""

import asyncio
import resource
import threading
import time
from dataclasses import dataclass, field

from attack_http import written
from attack_tenants import Headers

AT_ONCE = 40
OPENING_S = 60.0


@dataclass
class Stream:
    opened: bool = False
    status: int = 0
    ended_at: float | None = None
    """On the monotonic clock."""


@dataclass
class Crowd:
    """Server-Sent Events of one account under many credentials; what comes is read and forgotten."""

    address: tuple[str, int]
    streams: list[Stream] = field(default_factory=list)
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)
    _tasks: set["asyncio.Task[None]"] = field(default_factory=set)

    def __post_init__(self) -> None:
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def open(self, requests: list[tuple[str, Headers]]) -> list[Stream]:
        """One stream for each account and credential; returns when each is open or refused."""
        return asyncio.run_coroutine_threadsafe(self._open(requests), self._loop).result()

    async def _open(self, requests: list[tuple[str, Headers]]) -> list[Stream]:
        gate, made = asyncio.Semaphore(AT_ONCE), []
        begun = []
        for account_id, headers in requests:
            stream, answered = Stream(), asyncio.Event()
            task = self._loop.create_task(self._hold(stream, answered, account_id, headers, gate))
            self._tasks.add(task)
            made.append(stream)
            begun.append(answered)
        for answered in begun:
            await answered.wait()
        self.streams += made
        return made

    async def _hold(
        self, stream: Stream, answered: asyncio.Event, account_id: str, headers: Headers, gate: asyncio.Semaphore
    ) -> None:
        writer = None
        try:
            async with gate, asyncio.timeout(OPENING_S):
                reader, writer = await asyncio.open_connection(*self.address)
                writer.write(written("GET", f"/v1/accounts/{account_id}/events", headers))
                head = await reader.readuntil(b"\r\n\r\n")
                stream.status = int(head[9:12])
                stream.opened = stream.status == 200
            answered.set()
            while stream.opened and b"event: end" not in (data := await reader.read(65536)):
                if not data:
                    break
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            pass
        finally:
            stream.ended_at = time.monotonic()
            answered.set()
            if writer is not None:
                writer.close()

    def close(self) -> None:
        async def cancel() -> None:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(cancel(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
