"""HTTP connections that check before they write, and that bound what they read.

Between deciding and writing lie a connection to be made and, if the process is suspended there, any length of time. So
whether a request may still go out is checked where the bytes leave: after the connection is there, before each piece of
the request.

A time-out of a socket is for one read of it: an answer of one byte a second never ends. So the time of the whole answer
and its size are counted where the bytes come in, which covers headers, framing and whatever comes before the answer.
"""

import io
import socket
import threading
import time
from http.client import HTTPException, HTTPResponse
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from tip_brokers.protocol import Check, no_check

ANSWER_BYTES = 8 * 2**20
"""Of one answer: on the line, and once more after decompression."""
READING = ("GET", "HEAD")
_PIECE_BYTES = 2**16


class AnswerTooLarge(HTTPException):
    """There is more of it than its request allows. What was read is thrown away, the rest is not read."""


class Written(threading.local):
    """This thread's request: what it has to pass, and whether any of it has gone out.

    Where a library makes several requests of one, `changes` says whether one has gone out that may change something.
    """

    check: Check = staticmethod(no_check)
    begun: bool = False
    changes: bool = False
    is_reading: bool = False
    answer_bytes: int = ANSWER_BYTES

    def start(self, check: Check, answer_bytes: int = ANSWER_BYTES) -> None:
        self.check, self.begun, self.changes, self.answer_bytes = check, False, False, answer_bytes

    def begin(self) -> None:
        """Whatever is not known to read may change something."""
        self.check()
        self.begun = True
        self.changes |= not self.is_reading


written = Written()


class _BoundedReader(io.RawIOBase):
    """The bytes of one answer, until its time is up: the socket's time-out, from the moment the request was sent."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock, self._bytes = sock, sock.makefile("rb", buffering=0)
        self._ends_at = time.monotonic() + (sock.gettimeout() or 0.0)
        self._left = written.answer_bytes

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        seconds = self._ends_at - time.monotonic()
        if seconds <= 0:
            raise TimeoutError("the whole answer took too long")
        self._sock.settimeout(seconds)
        count = self._bytes.readinto(buffer)
        self._left -= count or 0
        if self._left < 0:
            raise AnswerTooLarge
        return count

    def close(self) -> None:
        self._bytes.close()
        super().close()


class _BoundedResponse(HTTPResponse):
    def __init__(self, sock: socket.socket, *arguments: Any, **named: Any) -> None:
        super().__init__(sock, *arguments, **named)
        self.fp.close()
        self.fp = io.BufferedReader(_BoundedReader(sock))


class _CheckedConnection(HTTPConnection):
    response_class = _BoundedResponse

    def send(self, data: Any) -> None:
        if self.sock is None:
            self.connect()
        written.begin()
        super().send(data)


class _CheckedSecureConnection(HTTPSConnection):
    response_class = _BoundedResponse

    def send(self, data: Any) -> None:
        if self.sock is None:
            self.connect()
        written.begin()
        super().send(data)


class _CheckedPool(HTTPConnectionPool):
    ConnectionCls = _CheckedConnection


class _CheckedSecurePool(HTTPSConnectionPool):
    ConnectionCls = _CheckedSecureConnection


class CheckedAdapter(HTTPAdapter):
    """What the check raises comes out of the call as it is; the connection is closed on an incomplete request."""

    def init_poolmanager(self, *arguments: Any, **named: Any) -> None:
        super().init_poolmanager(*arguments, **named)
        self.poolmanager.pool_classes_by_scheme = {"http": _CheckedPool, "https": _CheckedSecurePool}


class BoundedAdapter(CheckedAdapter):
    """For a library that reads answers by itself: each is read whole, within the bounds, before it is handed over."""

    timeouts: tuple[float, float] = (1.0, 3.0)
    """To connect, and for the whole answer."""

    def send(self, request: requests.PreparedRequest, *arguments: Any, **named: Any) -> requests.Response:
        written.is_reading = request.method in READING
        try:
            response = super().send(request, *arguments, **{**named, "stream": True, "timeout": self.timeouts})
        finally:
            written.is_reading = False
        try:
            response._content = read_whole(response)
        except AnswerTooLarge as error:
            raise requests.exceptions.ContentDecodingError(error) from None
        finally:
            response.close()
        return response


def bounded_session(connect_seconds: float, read_seconds: float) -> requests.Session:
    """Without proxies, netrc and redirects: a password there must not replace the account's keys."""
    session = requests.Session()
    session.trust_env = False
    session.max_redirects = 0
    adapter = BoundedAdapter(pool_connections=1, pool_maxsize=1, max_retries=0)
    adapter.timeouts = (connect_seconds, read_seconds)
    session.mount("http://", adapter)
    session.mount("https://", adapter)
    return session


def read_whole(response: requests.Response) -> bytes:
    """The body of a streamed response, decompressed piece by piece so that it cannot become too large unnoticed."""
    pieces, size = [], 0
    for piece in response.iter_content(_PIECE_BYTES):
        size += len(piece)
        if size > written.answer_bytes:
            raise AnswerTooLarge
        pieces.append(piece)
    return b"".join(pieces)
