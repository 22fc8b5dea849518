"""How a worker reports its health: its loops turn (live) and it can do its work (ready)."""

import asyncio
import json
import math
import socket
import threading
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, NamedTuple

from chassis import logs, metrics

log = logs.get(__name__)

LONGEST_TURN_SECONDS = 30.0
REQUEST_S = 5.0
MAX_HEAD_BYTES = 8192


class Report(NamedTuple):
    healthy: bool
    facts: Mapping[str, Any]


class StopSignal(threading.Event):
    """The request to stop. Every loop polls it at every turn; a loop that stops polling is reported as hung."""

    def __init__(self, longest_turn_seconds: float = LONGEST_TURN_SECONDS) -> None:
        super().__init__()
        self._longest = longest_turn_seconds
        self._turned: dict[threading.Thread, float] = {}

    def is_set(self) -> bool:
        self._turned[threading.current_thread()] = time.monotonic()
        return super().is_set()

    def wait(self, timeout: float | None = None) -> bool:
        self._turned[threading.current_thread()] = math.inf  # a resting loop does not hang
        try:
            return super().wait(timeout)
        finally:
            self._turned[threading.current_thread()] = time.monotonic()

    def report(self) -> Report:
        """Healthy if every loop that has not ended has turned lately."""
        earliest = time.monotonic() - self._longest
        loops = [(thread, turned) for thread, turned in list(self._turned.items()) if thread.is_alive()]
        hung = sorted(thread.name for thread, turned in loops if turned < earliest)
        return Report(not hung, {"hung": hung} if hung else {})


Ready = Callable[[], Report]


def serve(host: str, port: int, stop: StopSignal, ready: Ready) -> None:
    """Answer /health/live, /health/ready and /metrics from a thread of its own, until the process ends."""
    listener = socket.create_server((host, port))
    serving = _serve(listener, _Pages(stop, ready))
    threading.Thread(target=asyncio.run, args=(serving,), name="health", daemon=True).start()


class _Pages:
    """What is answered, as status, media type and body."""

    def __init__(self, stop: StopSignal, ready: Ready) -> None:
        self._stop, self._ready = stop, ready
        self._checking = asyncio.Lock()

    async def answer(self, request_line: str) -> "_Answer":
        method, _, target = request_line.rpartition(" ")[0].partition(" ")
        if method != "GET":
            return _problem(HTTPStatus.METHOD_NOT_ALLOWED)
        if target == "/health/live":
            return _checked("live", self._stop.report)
        if target == "/health/ready":
            async with self._checking:  # it may wait for a database: one thread for all requests
                return await _in_thread(lambda: _checked("ready", self._ready))
        if target == "/metrics":
            return _Answer(HTTPStatus.OK, "text/plain; version=0.0.4", metrics.exposition())
        return _problem(HTTPStatus.BAD_REQUEST if "?" in target else HTTPStatus.NOT_FOUND)


class _Answer(NamedTuple):
    status: HTTPStatus
    kind: str
    body: bytes


def _problem(status: HTTPStatus) -> _Answer:
    body = {"type": "about:blank", "title": status.phrase, "status": status.value}
    return _Answer(status, "application/problem+json", json.dumps(body).encode())


def _checked(name: str, check: Ready) -> _Answer:
    try:
        report = check()
    except Exception as error:  # noqa: BLE001 - whatever is wrong, it is unhealthy
        report = Report(False, {"error": type(error).__name__})
    if not report.healthy:
        log.warning("unhealthy", check=name, **report.facts)
    body = {"status": name if report.healthy else f"not {name}", **report.facts}
    status = HTTPStatus.OK if report.healthy else HTTPStatus.SERVICE_UNAVAILABLE
    return _Answer(status, "application/json", json.dumps(body).encode())


async def _in_thread(work: Callable[[], _Answer]) -> _Answer:
    """In a thread that does not keep the process from ending."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[_Answer] = loop.create_future()
    threading.Thread(
        target=lambda: loop.call_soon_threadsafe(done.set_result, work()), name="ready", daemon=True
    ).start()
    return await asyncio.shield(done)


async def _serve(listener: socket.socket, pages: _Pages) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request per connection, which ends after a few seconds, whatever came of it."""
        try:
            async with asyncio.timeout(REQUEST_S):
                head = await reader.readuntil(b"\r\n\r\n")
            answered = await pages.answer(head.partition(b"\r\n")[0].decode("latin-1"))
            async with asyncio.timeout(REQUEST_S):
                writer.write(_as_bytes(answered))
                writer.close()
                await writer.wait_closed()
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            writer.transport.abort()

    server = await asyncio.start_server(answer, sock=listener, limit=MAX_HEAD_BYTES)
    await server.serve_forever()


def _as_bytes(answered: _Answer) -> bytes:
    lines = [
        f"HTTP/1.1 {answered.status.value} {answered.status.phrase}",
        f"Content-Type: {answered.kind}",
        f"Content-Length: {len(answered.body)}",
        "Connection: close",
    ]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + answered.body
