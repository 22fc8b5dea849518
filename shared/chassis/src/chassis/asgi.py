"""Our Flask apps behind gunicorn's event loop.

Reading a request and writing its answer is the loop's work, so neither a slow caller nor an idle connection holds a
thread; the app itself runs in threads as ever. A service may answer requests on the loop, in front of the bridge,
without the cost of a framework (intents does).
"""

import asyncio
import re
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, Self
from urllib.parse import unquote_to_bytes

from gunicorn.workers.gasgi import ASGIWorker

from chassis import http_rules, problems, tracing
from chassis.callers import Callers, CredentialCheck, Reclassified, Trust, credential_check
from chassis.fair_queue import SWITCH_S, WAIT_S, FairQueue, QueueFull, Slot
from chassis.http_connection import Connection
from chassis.problems import Answer, RouteMatch
from chassis.wsgi_environ import Environ, decoded_path, environ

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = list[tuple[str, str]]
Wsgi = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]
MatchRoute = Callable[[str, str], RouteMatch]
"""Given method and path, where the request is routed."""

_STILL_OPEN_S = 0.5  # how long after its last request a stopping worker waits for one more on an open connection
_SHUTDOWN_POLL_S = 0.05
# How long a tenant's heavy requests pause, and strangers' after a refused one, by what each has computed: with one at a
# time in each process they take a fifth of a core of it at most. A tenant that is alone need not pause.
_PAUSE_FACTOR = 4.0
_LONGEST_PAUSE_S = 2.0
_LONG_LIST = re.compile(rb"(?:^|&)limit=[0-9]{3}")


class Bridge:
    """Serves a WSGI app of ours over ASGI. It answers once `start` has given it threads."""

    _threads: ThreadPoolExecutor
    _queue: FairQueue

    def __init__(self, app: Wsgi, callers: Callers | None = None, match_route: MatchRoute | None = None) -> None:
        self._app = app
        self._match_route = match_route or _match_nothing
        self.callers = callers or Callers()
        self.in_flight = 0
        self._first_of: dict[bytes, asyncio.Future[None]] = {}
        """By credential that is not verified yet: the request that is being authenticated."""

    def start(self, threads: int) -> Self:
        """With as many threads for the app as gunicorn is configured for (WEB_THREADS)."""
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="web")
        self._queue = FairQueue(threads)
        return self

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _live(receive, send)
        else:
            self.in_flight += 1
            try:
                await self._http(scope, receive, send)
            finally:
                self.in_flight -= 1

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await read(receive)
        if body is not None:
            scope[http_rules.ARRIVED] = time.monotonic()
            await self.answer(scope, body, send)

    async def answer(self, scope: Scope, body: bytes, send: Send) -> None:
        """Let the app answer in a thread."""
        started = time.perf_counter()
        check = await self._classified(scope)
        run = partial(self.run, scope, check, self._call, check, heavy=self.is_heavy(scope))
        try:
            with self._authenticating(check):
                answer = await run(environ(scope, body))
            if answer is None:  # authenticated, and `check` says now against whom it counts
                answer = await run(environ(scope, body))
        except QueueFull as refusal:
            answer = self._refused(scope, refusal, started)
        await respond(send, answer)

    def _refused(self, scope: Scope, error: QueueFull, started: float) -> Answer:
        """The answer to a request that got no thread."""
        from chassis import web  # not above: gunicorn's arbiter loads this module before metrics have a directory

        trace, match = trace_of(scope), self._match_route(scope["method"], decoded_path(scope))
        answer = problems.render(error, match, trace.request_id)
        return web.finish(answer, match, scope["method"], trace, {}, started)

    async def _classified(self, scope: Scope) -> CredentialCheck:
        """Of requests with the same new credential the first is authenticated, and the others wait for its result."""
        check = self.callers.classify(scope)
        if first := self._first_of.get(check.digest):
            await asyncio.wait([first], timeout=WAIT_S)
            return self.callers.classify(scope)
        return check

    @contextmanager
    def _authenticating(self, check: CredentialCheck) -> Iterator[None]:
        if check.caller.trust is not Trust.UNVERIFIED or check.digest in self._first_of:
            yield
            return
        self._first_of[check.digest] = done = asyncio.get_running_loop().create_future()
        try:
            yield
        finally:
            del self._first_of[check.digest]
            done.set_result(None)

    def is_heavy(self, scope: Scope) -> bool:
        """Whether the request is so much work that a tenant gets only one such at a time."""
        return _LONG_LIST.search(unquote_to_bytes(scope["query_string"])) is not None

    async def run(
        self, scope: Scope, check: CredentialCheck, function: Callable[..., Any], *arguments: Any, heavy: bool = False
    ) -> Any:
        """Run what may block in a thread, when the caller gets a slot; QueueFull if it gets none in time."""
        if self.callers.must_wait(check.caller):
            await asyncio.sleep(WAIT_S)  # a refusal at once would only bring the next guess sooner
            raise QueueFull
        loop = asyncio.get_running_loop()
        slot = await self._queue.acquire(check.caller, heavy=heavy, arrived=scope[http_rules.ARRIVED])
        computed = _Computed(function)
        work = self._threads.submit(computed, *arguments)
        # Not when the caller stops waiting: the thread is taken until the work has ended.
        work.add_done_callback(lambda _: loop.call_soon_threadsafe(self._end, slot, check, computed.seconds))
        return await asyncio.wrap_future(work)

    def _end(self, slot: Slot, check: CredentialCheck, computed_s: float) -> None:
        costly = slot.heavy or (check.refused and slot.caller.trust is Trust.UNVERIFIED)
        pauses = costly and not self.callers.is_alone(slot.caller)
        self._queue.release(slot, pause_s=min(_PAUSE_FACTOR * computed_s, _LONGEST_PAUSE_S) if pauses else 0.0)
        self.callers.settle(check)

    def _call(self, check: CredentialCheck, environ: Environ) -> Answer | None:
        """The app's answer; None if the request must be queued again, for the caller it was authenticated as."""
        token = credential_check.set(check)
        try:
            return self._answered(environ)
        except Reclassified:
            return None
        finally:
            credential_check.reset(token)

    def _answered(self, environ: Environ) -> Answer:
        started: list[tuple[int, Headers]] = []

        def start_response(status: str, headers: Headers, _error: object = None) -> None:
            started.append((int(status[:3]), headers))

        chunks = self._app(environ, start_response)
        try:
            body = b"".join(chunks)
        finally:
            if hasattr(chunks, "close"):
                chunks.close()
        return Answer(*started[-1], body)


class _Computed:
    """A function that is called once, and the processor time it took in its thread."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function, self.seconds = function, 0.0

    def __call__(self, *arguments: Any) -> Any:
        began = time.thread_time()
        try:
            return self._function(*arguments)
        finally:
            self.seconds = time.thread_time() - began


async def read(receive: Receive) -> bytes | None:
    """The body; None if the caller has gone or was refused. The connection limits its size and its time."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if not message.get("more_body"):
            return bytes(body)


async def respond(send: Send, answer: Answer) -> None:
    encoded = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in answer.headers]
    await send({"type": "http.response.start", "status": answer.status, "headers": encoded})
    await send({"type": "http.response.body", "body": answer.body})


def trace_of(scope: Scope) -> tracing.Trace:
    """The trace that the caller continues, or a new one."""
    return tracing.Trace.begin(_header(scope, b"x-request-id"), _header(scope, b"traceparent"))


def _header(scope: Scope, name: bytes) -> str:
    return ",".join(value.decode("latin-1") for given, value in scope["headers"] if given == name)


def _match_nothing(_method: str, path: str) -> RouteMatch:
    return RouteMatch("web", "unmatched", path)


async def _live(receive: Receive, send: Send) -> None:
    for event in ("startup", "shutdown"):
        await receive()
        await send({"type": f"lifespan.{event}.complete"})


class Worker(ASGIWorker):  # type: ignore[misc]
    """gunicorn's worker, but for four things.

    It would accept every connection that waits, so that one worker may get them all: ours accepts one at a time. It
    would wait for idle connections until it is killed: ours waits for requests. Its connections know no limits of time:
    ours do. And it starts the bridge's threads.
    """

    _queueing = False

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.unsent: set[Connection] = set()  # connections that are closed once the rest of their answer is sent

    @classmethod
    def check_config(cls, cfg: Any, log: Any) -> None:
        """Threads are set: they are the bridge's."""

    def _setup_event_loop(self) -> None:
        super()._setup_event_loop()
        self.loop.create_server = partial(self._listen, self.loop.create_server)

    def _listen(self, create_server: Callable[..., Any], _protocol: Any, **options: Any) -> Any:
        return create_server(partial(Connection, self), backlog=1, **options)

    def notify(self) -> None:
        if self.servers and not self._queueing:
            self._queueing = True  # the backlog above was meant for the loop, and reached the kernel too
            for listener in self.sockets:
                listener.sock.listen(self.cfg.backlog)
        super().notify()

    def load_wsgi(self) -> None:
        """An app without a front of its own gets a plain `Bridge`."""
        sys.setswitchinterval(SWITCH_S)
        app = self.app.wsgi()
        extensions = getattr(app, "extensions", {})
        front = (
            app if isinstance(app, Bridge) else Bridge(app, extensions.get("callers"), extensions.get("match_route"))
        )
        self.asgi: Bridge = front.start(self.cfg.threads)

    async def _shutdown(self) -> None:
        for server in self.servers:
            server.close()
        loop = asyncio.get_running_loop()
        ends, last = loop.time() + self.cfg.graceful_timeout - 1, loop.time()
        while self.nr_conns and not self._quick_shutdown and loop.time() < min(ends, last + _STILL_OPEN_S):
            await asyncio.sleep(_SHUTDOWN_POLL_S)
            if self.asgi.in_flight or self.unsent:
                last = loop.time()
