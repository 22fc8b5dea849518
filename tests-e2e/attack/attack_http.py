"""HTTP/1.1 as bytes: whatever can be written into a socket can be sent, and what comes back is read strictly."""

import json
import socket
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

TIMEOUT_S = 60.0
LARGEST_HEAD = 256 * 1024
LARGEST_STREAM = 64 * 1024 * 1024
Headers = Iterable[tuple[str, str]]


class NoAnswer(Exception):
    """The connection ended, or time passed, before a whole answer had come."""


@dataclass(frozen=True)
class Answer:
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str:
        return next((value for header, value in self.headers if header == name), "")

    @property
    def closes(self) -> bool:
        return self.header("connection").lower() == "close"

    @property
    def text(self) -> str:
        return self.body.decode(errors="replace")

    def json(self) -> Any:
        return json.loads(self.body)


def written(method: str, target: str, headers: Headers = (), body: bytes | None = None) -> bytes:
    """A request; `Host` and `Content-Length` are added unless they are given."""
    lines = list(headers)
    names = {name.lower() for name, _ in lines}
    if "host" not in names:
        lines.insert(0, ("Host", "127.0.0.1"))
    if body is not None and not names & {"content-length", "transfer-encoding"}:
        lines.append(("Content-Length", str(len(body))))
    head = "".join([f"{method} {target} HTTP/1.1\r\n", *(f"{name}: {value}\r\n" for name, value in lines), "\r\n"])
    return head.encode("utf-8", "surrogateescape") + (body or b"")


class HttpConnection:
    """One connection to one listener, kept open for as long as the server keeps it open."""

    def __init__(self, address: tuple[str, int], timeout_s: float = TIMEOUT_S) -> None:
        self.address, self.timeout_s = address, timeout_s
        self._socket: socket.socket | None = None
        self._buffer = b""

    def __enter__(self) -> "HttpConnection":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self) -> socket.socket:
        self.close()
        self._socket = socket.create_connection(self.address, timeout=self.timeout_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._socket

    def open_socket(self) -> socket.socket:
        """The present connection, for what only a socket can do."""
        return self._socket or self.open()

    def timeout_after(self, seconds: float) -> None:
        self.open_socket().settimeout(seconds)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket, self._buffer = None, b""

    def exchange(self, request: bytes) -> Answer:
        """Send and read. A kept connection that the server has closed meanwhile is replaced, once."""
        kept = self._socket is not None
        try:
            return self._exchange(request)
        except (OSError, NoAnswer) as problem:
            self.close()
            if not kept or isinstance(problem, TimeoutError):
                raise NoAnswer(repr(problem)) from None
        try:
            return self._exchange(request)
        except (OSError, NoAnswer) as problem:
            self.close()
            raise NoAnswer(repr(problem)) from None

    def _exchange(self, request: bytes) -> Answer:
        connection = self._socket or self.open()
        with suppress(ConnectionError):  # refused while it was still being sent: the answer may be here already
            connection.sendall(request)
        answer = self.read(head_only=request.startswith(b"HEAD "))
        if answer.closes:
            self.close()
        return answer

    def send(self, data: bytes) -> None:
        (self._socket or self.open()).sendall(data)

    def read(self, *, head_only: bool = False) -> Answer:
        status, headers = self.head()
        if head_only or status in (204, 304):
            return Answer(status, headers, b"")
        fields = dict(headers)
        if fields.get("transfer-encoding", "").lower() == "chunked":
            return Answer(status, headers, self._chunks())
        if "content-length" in fields:
            return Answer(status, headers, self.exactly(int(fields["content-length"])))
        return Answer(status, headers, self._rest())

    def head(self) -> tuple[int, tuple[tuple[str, str], ...]]:
        """Status and headers of the final answer; its body is still to be read."""
        status, headers = self._head()
        while status < 200:
            status, headers = self._head()
        return status, headers

    def first_bytes(self, marker: bytes) -> bytes:
        """What has come up to and with the marker; for streams that do not end."""
        return self._until(marker, LARGEST_STREAM) + marker

    def _head(self) -> tuple[int, tuple[tuple[str, str], ...]]:
        lines = self._until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        version, _, rest = lines[0].partition(" ")
        if not version.startswith("HTTP/1.") or not rest[:3].isdigit():
            raise NoAnswer(f"not HTTP: {lines[0][:80]!r}")
        pairs = (line.partition(":") for line in lines[1:])
        return int(rest[:3]), tuple((name.strip().lower(), value.strip()) for name, _, value in pairs)

    def _until(self, marker: bytes, most: int = LARGEST_HEAD) -> bytes:
        while marker not in self._buffer:
            if len(self._buffer) > most:
                raise NoAnswer(f"{marker!r} does not come")
            self._more()
        found, _, self._buffer = self._buffer.partition(marker)
        return found

    def exactly(self, count: int) -> bytes:
        while len(self._buffer) < count:
            self._more()
        found, self._buffer = self._buffer[:count], self._buffer[count:]
        return found

    def _chunks(self) -> bytes:
        body = b""
        while size := int(self._until(b"\r\n").split(b";")[0], 16):
            body += self.exactly(size)
            self.exactly(2)
        self._until(b"\r\n")
        return body

    def _rest(self) -> bytes:
        with suppress(NoAnswer):
            while True:
                self._more()
        found, self._buffer = self._buffer, b""
        return found

    def _more(self) -> None:
        if self._socket is None:
            raise NoAnswer("the connection is closed")
        data = self._socket.recv(65536)
        if not data:
            raise NoAnswer("the server closed the connection")
        self._buffer += data


def address_of(url: str) -> tuple[str, int]:
    host, _, port = url.rpartition("//")[2].partition(":")
    return host, int(port)
