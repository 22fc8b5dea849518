"""Our Flask apps behind gunicorn's event loop.

Reading a request and writing its answer is the loop's work, so neither a slow caller nor an idle connection holds a
thread; the app itself runs in threads as ever. A service may answer requests on the loop, in front of the bridge,
without the cost of a framework (intents does).
"""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, NamedTuple, Self
from urllib.parse import unquote_to_bytes

from chassis import http_rules, problems, tracing
from chassis.callers import Callers, CredentialCheck, Reclassified, Trust, credential_check
from chassis.cors import Cors
from chassis.fair_queue import WAIT_S, FairQueue, QueueFull, Slot
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

# How long a tenant's heavy requests pause, and strangers' after a refused one, by what each has computed: with one at a
# time in each process they take a fifth of a core of it at most. What a batch costs behind this process is several
# times as much, and more of it waits the busier the machine is: it pauses by the time that it took. A tenant that is
# alone need not pause.
_PAUSE_FACTOR = 4.0
_LONGEST_PAUSE_S = 2.0
_LONGEST_PAUSE_OF_WRITES_S = 10.0
_MOST_BEHIND = 20.0
"""So many times as much as a batch computes may count for it, not what it waited for prices or locks beyond that."""
_READING = ("GET", "HEAD")
_LONG_LIST = re.compile(rb"(?:^|&)limit=[0-9]{3}")


class StreamedAnswer(NamedTuple):
    """A response of unknown length, whose body is made chunk by chunk while it is sent."""

    status: int
    headers: Headers
    chunks: Iterable[bytes]


class Bridge:
    """Serves a WSGI app of ours over ASGI. It answers once `start` has given it threads."""

    _threads: ThreadPoolExecutor
    _queue: FairQueue

    def __init__(
        self,
        app: Wsgi,
        callers: Callers | None = None,
        match_route: MatchRoute | None = None,
        cors: Cors | None = None,
    ) -> None:
        self._app, self._cors = app, cors
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
                await self._http(scope, receive, self.for_browsers(scope, send))
            finally:
                self.in_flight -= 1

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await read(receive)
        if body is None:
            return
        scope[http_rules.ARRIVED] = time.monotonic()
        if self._cors and scope["method"] == "OPTIONS" and _header(scope, b"access-control-request-method"):
            await respond(send, Answer(204, [], b""))
        else:
            await self.answer(scope, body, send)

    def for_browsers(self, scope: Scope, send: Send) -> Send:
        """What sends answers, such that pages of the configured origins may read them."""
        if not self._cors:
            return send
        given = self._cors.of_request(scope["method"], _header(scope, b"origin"))
        headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in given]

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *headers]
            await send(message)

        return send_with_headers

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
        if isinstance(answer, StreamedAnswer):
            await self._stream(scope, check, answer, send)
        else:
            await respond(send, answer)

    async def _stream(self, scope: Scope, check: CredentialCheck, answer: StreamedAnswer, send: Send) -> None:
        """Between two chunks the caller holds no thread, however slowly it reads, and waits for one like any other.

        What goes wrong now ends the connection: the caller sees that the answer is not complete.
        """
        chunks = iter(answer.chunks)
        await send(_start(answer))
        try:
            while chunk := await self._next(scope, check, chunks):
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        finally:
            with suppress(ValueError):  # a caller that left in the middle of a chunk: a thread still makes it
                _close(answer.chunks)
        await send({"type": "http.response.body", "body": b""})

    async def _next(self, scope: Scope, check: CredentialCheck, chunks: Iterator[bytes]) -> bytes:
        scope[http_rules.ARRIVED] = time.monotonic()
        chunk: bytes = await self.run(scope, check, next, chunks, b"", heavy=self.is_heavy(scope))
        return chunk

    def _refused(self, scope: Scope, error: problems.Problem, started: float) -> Answer:
        """The answer to a request that no app gets."""
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
        slot = await self._queue.acquire(
            check.caller, heavy=heavy, writes=scope["method"] not in _READING, arrived=scope[http_rules.ARRIVED]
        )
        check.leaves_room = slot.has_waited and not self.callers.is_alone(slot.caller)
        timed = _Timed(function)
        work = self._threads.submit(timed, *arguments)
        # Not when the caller stops waiting: the thread is taken until the work has ended.
        work.add_done_callback(lambda _: loop.call_soon_threadsafe(self._end, slot, check, timed))
        return await asyncio.wrap_future(work)

    def _end(self, slot: Slot, check: CredentialCheck, timed: "_Timed") -> None:
        self._queue.release(slot, pause_s=self._pause_s(slot, check, timed))
        self.callers.settle(check)

    def _pause_s(self, slot: Slot, check: CredentialCheck, timed: "_Timed") -> float:
        is_refused_stranger = check.refused and slot.caller.trust is Trust.UNVERIFIED
        if not (slot.heavy or is_refused_stranger) or self.callers.is_alone(slot.caller):
            return 0.0
        if slot.heavy and slot.writes:
            return min(_PAUSE_FACTOR * min(timed.took_s, _MOST_BEHIND * timed.computed_s), _LONGEST_PAUSE_OF_WRITES_S)
        return min(_PAUSE_FACTOR * timed.computed_s, _LONGEST_PAUSE_S)

    def _call(self, check: CredentialCheck, environ: Environ) -> Answer | StreamedAnswer | None:
        """The app's answer; None if the request must be queued again, for the caller it was authenticated as."""
        token = credential_check.set(check)
        try:
            return self._answered(environ)
        except Reclassified:
            return None
        finally:
            credential_check.reset(token)

    def _answered(self, environ: Environ) -> Answer | StreamedAnswer:
        started: list[tuple[int, Headers]] = []

        def start_response(status: str, headers: Headers, _error: object = None) -> None:
            started.append((int(status[:3]), headers))

        chunks = self._app(environ, start_response)
        status, headers = started[-1]
        if status == 200 and all(name.lower() != "content-length" for name, _ in headers):
            return StreamedAnswer(status, headers, chunks)
        try:
            return Answer(status, headers, b"".join(chunks))
        finally:
            _close(chunks)


class _Timed:
    """A function that is called once, and the time and the processor time that it took in its thread."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function, self.took_s, self.computed_s = function, 0.0, 0.0

    def __call__(self, *arguments: Any) -> Any:
        began, computed = time.monotonic(), time.thread_time()
        try:
            return self._function(*arguments)
        finally:
            self.took_s, self.computed_s = time.monotonic() - began, time.thread_time() - computed


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


def _close(chunks: Iterable[bytes]) -> None:
    if hasattr(chunks, "close"):
        chunks.close()


async def respond(send: Send, answer: Answer) -> None:
    await send(_start(answer))
    await send({"type": "http.response.body", "body": answer.body})


def _start(answer: Answer | StreamedAnswer) -> Message:
    encoded = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in answer.headers]
    return {"type": "http.response.start", "status": answer.status, "headers": encoded}


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
