"""A request on its way to the broker, and what can be done to it."""

import json
import socket
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPMessage
from typing import Any

_DROPPED = frozenset({"transfer-encoding", "content-length", "connection"})


@dataclass
class Request:
    """One request of the platform. Times are seconds of the wall clock; None where it has not come to that."""

    method: str
    path: str
    headers: HTTPMessage
    body: bytes
    received_at: float
    forwarded_at: float | None = None
    answered_at: float | None = None
    status: int | None = None

    @property
    def json(self) -> dict[str, Any]:
        parsed = json.loads(self.body) if self.body else {}
        return parsed if isinstance(parsed, dict) else {}

    @property
    def key_id(self) -> str:
        """Names the account at the broker."""
        return self.headers.get("APCA-API-KEY-ID", "")

    @property
    def client_order_id(self) -> str | None:
        return self.json.get("client_order_id")


@dataclass
class Answer:
    status: int
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})

    def as_bytes(self) -> bytes:
        kept = {name: value for name, value in self.headers.items() if name.lower() not in _DROPPED}
        if self.status != 204:
            kept["Content-Length"] = str(len(self.body))
        lines = [f"HTTP/1.1 {self.status} -", *(f"{name}: {value}" for name, value in kept.items()), "", ""]
        return "\r\n".join(lines).encode("latin-1") + self.body


class Exchange:
    """One request on its way: what a fault can do with it."""

    def __init__(self, request: Request, client: socket.socket, forward: Callable[[Request], Answer | None]) -> None:
        self.request, self._client, self._forward = request, client, forward
        self.open = True

    def forward(self) -> Answer | None:
        """Let the broker have it; None if the broker cannot be reached or does not answer."""
        return self._forward(self.request)

    def reply(self, answer: Answer | None) -> None:
        """The client may have given up meanwhile. A broker that did not answer is a cut connection."""
        if answer is None:
            self.cut()
            return
        with suppress(OSError):
            self._client.sendall(answer.as_bytes())
            return
        self.open = False

    def cut(self) -> None:
        """The client sees a reset."""
        with suppress(OSError):
            self._client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.open = False

    def half_close(self, answer: Answer | None) -> None:
        """The client gets half an answer and the end of the stream; its own direction stays open for a while."""
        with suppress(OSError):
            whole = (answer or Answer(502)).as_bytes()
            self._client.sendall(whole[: len(whole) // 2])
            self._client.shutdown(socket.SHUT_WR)
            self._client.settimeout(1.0)
            self._client.recv(1)
        self.open = False


Fault = Callable[[Exchange], None]


def passing(exchange: Exchange) -> None:
    exchange.reply(exchange.forward())


def delay(seconds: float) -> Fault:
    """The broker gets it late, on the same connection: beyond the client's time-out that is a late delivery too."""

    def fault(exchange: Exchange) -> None:
        time.sleep(seconds)
        passing(exchange)

    return fault


def late(seconds: float) -> Fault:
    """The client's connection is cut at once; the broker gets the request later all the same."""

    def fault(exchange: Exchange) -> None:
        timer = threading.Timer(seconds, exchange.forward)
        timer.daemon = True
        timer.start()
        exchange.cut()

    return fault


def cut_before(exchange: Exchange) -> None:
    """The broker never gets it."""
    exchange.cut()


def cut_after(exchange: Exchange) -> None:
    """The broker has done it; its answer is lost."""
    exchange.forward()
    exchange.cut()


def half_close(exchange: Exchange) -> None:
    exchange.half_close(exchange.forward())


def answer(status: int, body: dict[str, Any] | None = None, headers: dict[str, str] | None = None) -> Fault:
    """The proxy answers in the broker's place; the broker never gets it."""
    made = Answer(status, json.dumps(body or {}).encode(), {"Content-Type": "application/json", **(headers or {})})
    return lambda exchange: exchange.reply(made)


def rewrite(change: Callable[[bytes], bytes]) -> Fault:
    """The client gets another body than the broker gave."""

    def fault(exchange: Exchange) -> None:
        given = exchange.forward()
        exchange.reply(given and Answer(given.status, change(given.body), given.headers))

    return fault


class Hold:
    """Holds requests until they are released, then delivers them; `cut=True` cuts the client off at once."""

    def __init__(self, *, cut: bool = False) -> None:
        self._cut, self._released = cut, threading.Event()

    def __call__(self, exchange: Exchange) -> None:
        if self._cut:
            threading.Thread(target=self._deliver, args=(exchange,), daemon=True).start()
            exchange.cut()
        else:
            self._released.wait()
            passing(exchange)

    def _deliver(self, exchange: Exchange) -> None:
        self._released.wait()
        exchange.forward()

    def release(self) -> None:
        self._released.set()


@dataclass
class Rule:
    method: str
    fault: Fault
    when: Callable[[Request], bool]
    count: int | None
    """How many requests it acts on; None is all of them."""
    hits: list[Request] = field(default_factory=list)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def takes(self, request: Request) -> bool:
        with self._changed:
            if self.count is not None and len(self.hits) >= self.count:
                return False
            if self.method not in ("*", request.method) or not self.when(request):
                return False
            self.hits.append(request)
            self._changed.notify_all()
            return True

    def wait_for_hits(self, count: int = 1, seconds: float = 60.0) -> list[Request]:
        with self._changed:
            if not self._changed.wait_for(lambda: len(self.hits) >= count, seconds):
                raise TimeoutError(f"{len(self.hits)} of {count} {self.method} requests came")
            return list(self.hits)


def path_is(path: str) -> Callable[[Request], bool]:
    return lambda request: request.path.partition("?")[0] == path


def path_begins(path: str) -> Callable[[Request], bool]:
    return lambda request: request.path.startswith(path)


def always(_request: Request) -> bool:
    return True
