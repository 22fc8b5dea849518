"""A broker on loopback that answers as nobody should: without end, drop by drop, far too much."""

import socket
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from types import TracebackType
from typing import Self

Answer = Callable[[], Iterator[bytes]]
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
_DROP_SECONDS = 0.05
_MEGABYTE = b" " * 2**20


def endless() -> Iterator[bytes]:
    yield _HEAD + b"\r\n"
    while True:
        yield _MEGABYTE


def dripping() -> Iterator[bytes]:
    yield _HEAD + b"\r\n"
    yield from _drops(b" ")


def dripping_headers() -> Iterator[bytes]:
    yield _HEAD + b"X-Long: "
    yield from _drops(b"a")


def dripping_interim_answers() -> Iterator[bytes]:
    yield from _drops(b"HTTP/1.1 100 Continue\r\n\r\n")


def _drops(drop: bytes) -> Iterator[bytes]:
    while True:
        yield drop
        time.sleep(_DROP_SECONDS)


@cache
def _packed() -> bytes:
    packer = zlib.compressobj(level=1, wbits=31)
    pieces = [packer.compress(b'{"id": "'), *(packer.compress(_MEGABYTE) for _ in range(64)), packer.compress(b'"}')]
    return b"".join(pieces) + packer.flush()


def huge_when_decompressed() -> Iterator[bytes]:
    """Sixty-four megabytes, of which a small part is on the line."""
    packed = _packed()
    yield _HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed) + packed


def deeply_nested() -> Iterator[bytes]:
    yield from whole(b"[" * 100_000 + b"]" * 100_000)()


def whole(body: bytes) -> Answer:
    """An answer as it should be."""

    def answer() -> Iterator[bytes]:
        yield _HEAD + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body

    return answer


BROKEN: dict[str, Answer] = {
    made.__name__: made
    for made in (endless, dripping, dripping_headers, dripping_interim_answers, huge_when_decompressed, deeply_nested)
}


class Hostile:
    """Serves one answer to every request, until the caller hangs up or it is closed."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.requests = 0
        self._closed = threading.Event()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._closed.set()
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                caller, _ = self._listening.accept()
                threading.Thread(target=self._serve, args=(caller,), daemon=True).start()

    def _serve(self, caller: socket.socket) -> None:
        with suppress(OSError), caller:
            caller.recv(2**16)
            self.requests += 1
            for piece in self._answer():
                if self._closed.is_set():
                    return
                caller.sendall(piece)
