"""A line to the broker that can be delayed, cut, held or made to deliver late: a real proxy on loopback.

    with BrokerProxy(upstream_port=8081) as proxy:
        rule = proxy.on("POST", late(5.0), when=path_is("/v2/orders"), count=1)
        ...                      # PAPER_BROKER_URL=proxy.url
        rule.wait_for_hits(1)

Without a rule everything passes, the websocket included. The first rule that fits acts on a request.
"""

import io
import socket
import socketserver
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection, HTTPException, parse_headers
from types import TracebackType
from typing import Any, BinaryIO, Self

from fault_requests import (
    Answer,
    Exchange,
    Fault,
    Hold,
    Request,
    Rule,
    always,
    answer,
    cut_after,
    cut_before,
    delay,
    half_close,
    late,
    passing,
    path_begins,
    path_is,
    rewrite,
)
from fault_websocket import pass_through

__all__ = [
    "Answer",
    "BrokerProxy",
    "Exchange",
    "Fault",
    "Hold",
    "Request",
    "Rule",
    "always",
    "answer",
    "cut_after",
    "cut_before",
    "delay",
    "half_close",
    "late",
    "passing",
    "path_begins",
    "path_is",
    "rewrite",
]

HOST = "127.0.0.1"
UPSTREAM_SECONDS = 60.0
_SO_TIMESTAMPNS = 35
_TIMESPEC = struct.Struct("@qq")


class BrokerProxy:
    """Listens from its making on; `close` ends it. Delayed requests that are still waiting are then lost."""

    def __init__(self, upstream_port: int, *, listen_port: int = 0) -> None:
        self.upstream_port = upstream_port
        self.requests: list[Request] = []
        """Everything that came, in the order of arrival."""
        self.stream_filter: Callable[[bytes], bytes] | None = None
        """Changes each message of the websocket on its way to the platform; set it before the stream is opened."""
        self._rules: list[Rule] = []
        self._lock = threading.Lock()
        self._clients: set[socket.socket] = set()
        self._streams: set[socket.socket] = set()
        self._server = _Server((HOST, listen_port), _Handler)
        self._server.proxy = self
        threading.Thread(target=self._server.serve_forever, args=(0.05,), name="proxy", daemon=True).start()

    @property
    def port(self) -> int:
        port: int = self._server.server_address[1]
        return port

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._end(self._streams | self._clients)

    def on(
        self, method: str, fault: Fault, *, when: Callable[[Request], bool] = always, count: int | None = None
    ) -> Rule:
        """From now on; `method` may be `*`."""
        rule = Rule(method, fault, when, count)
        with self._lock:
            self._rules.append(rule)
        return rule

    def off(self, rule: Rule) -> None:
        with self._lock:
            self._rules.remove(rule)

    @contextmanager
    def during(self, method: str, fault: Fault, when: Callable[[Request], bool] = always) -> Iterator[Rule]:
        rule = self.on(method, fault, when=when)
        try:
            yield rule
        finally:
            self.off(rule)

    def cut_streams(self) -> None:
        """Every open websocket, without a farewell."""
        self._end(self._streams)

    def _end(self, sockets: set[socket.socket]) -> None:
        with self._lock:
            ended = list(sockets)
        for connection in ended:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    @contextmanager
    def serving(self, client: socket.socket) -> Iterator[None]:
        with self._lock:
            self._clients.add(client)
        try:
            yield
        finally:
            with self._lock:
                self._clients.discard(client)

    def forwarded(self, method: str) -> list[Request]:
        """Those that the broker was given, in the order of arrival."""
        with self._lock:
            sent = [request for request in self.requests if request.forwarded_at is not None]
        return [request for request in sent if request.method == method]

    def fault_for(self, request: Request) -> Fault:
        with self._lock:
            self.requests.append(request)
            rules = list(self._rules)
        return next((rule.fault for rule in rules if rule.takes(request)), passing)

    def forward(self, request: Request) -> Answer | None:
        """On a connection of its own, so that nothing is sent twice because an idle one had been closed."""
        headers = {name: value for name, value in request.headers.items() if name.lower() != "connection"}
        with closing(HTTPConnection(HOST, self.upstream_port, timeout=UPSTREAM_SECONDS)) as line:
            try:
                line.connect()
                request.forwarded_at = time.time()
                line.request(request.method, request.path, request.body or None, headers)
                response = line.getresponse()
                body = response.read()
            except (OSError, HTTPException):
                return None
        request.answered_at, request.status = time.time(), response.status
        return Answer(response.status, body, dict(response.getheaders()))

    def stream(self, request: Request, client: socket.socket) -> None:
        ends = {client}
        with suppress(OSError), socket.create_connection((HOST, self.upstream_port), 5) as upstream:
            ends.add(upstream)
            with self._lock:
                self._streams |= ends
            request.forwarded_at = time.time()
            pass_through(_head_of(request), client, upstream, self.stream_filter)
        with self._lock:
            self._streams -= ends


def _head_of(request: Request) -> bytes:
    """Without extensions: what passes must be readable for a filter."""
    lines = [f"{name}: {value}" for name, value in request.headers.items() if name != "Sec-WebSocket-Extensions"]
    return "\r\n".join([f"GET {request.path} HTTP/1.1", *lines, "", ""]).encode("latin-1")


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256
    proxy: BrokerProxy


class _Handler(socketserver.BaseRequestHandler):
    """One connection of the platform: its requests, one after the other."""

    server: _Server
    request: socket.socket

    def handle(self) -> None:
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        arrivals = Arrivals(self.request)
        with suppress(OSError), self.server.proxy.serving(self.request), io.BufferedReader(arrivals) as lines:
            while (request := _read(lines, arrivals)) is not None:
                fault = self.server.proxy.fault_for(request)
                if fault is passing and request.headers.get("Upgrade", "").lower() == "websocket":
                    self.server.proxy.stream(request, self.request)
                    return
                exchange = Exchange(request, self.request, self.server.proxy.forward)
                fault(exchange)
                if not exchange.open:
                    return

    def finish(self) -> None:
        self.request.close()  # at once: a reset, if the exchange was cut


class Arrivals(io.RawIOBase):
    """What a socket receives, and when the kernel had the last of it: on a busy machine the reader may be late."""

    def __init__(self, source: socket.socket) -> None:
        self._source, self.last_at = source, 0.0
        if sys.platform == "linux":
            source.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count, ancillary, _flags, _address = self._source.recvmsg_into([buffer], socket.CMSG_SPACE(_TIMESPEC.size))
        stamps = [_TIMESPEC.unpack(data) for _level, kind, data in ancillary if kind == _SO_TIMESTAMPNS]
        self.last_at = stamps[-1][0] + stamps[-1][1] / 1e9 if stamps else time.time()
        return count


def _read(lines: BinaryIO, arrivals: Arrivals) -> Request | None:
    """The next request; None when the platform has closed the connection."""
    first = lines.readline(65_536).split()
    if len(first) != 3:
        return None
    headers = parse_headers(lines)
    body = lines.read(int(headers.get("Content-Length", 0)))
    return Request(first[0].decode(), first[1].decode(), headers, body, arrivals.last_at)
