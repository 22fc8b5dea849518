"""An app for tests of the server: it answers what it received. Every key is good, but those invented."""

import os
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from chassis import gunicorn_worker, http_connection, http_rules, presence
from chassis.asgi import Bridge
from chassis.callers import Callers, CredentialCheck, credential_check, leaves_room
from chassis.cors import Cors
from chassis.principals import Kind, Principal

_BEGUN: list[str] = []
_AUTHENTICATED: Counter[str] = Counter()
_CHUNKS: list[int] = []
_ABOUT_ITSELF: dict[str, Callable[[str], int]] = {
    "/worker": lambda _: os.getpid(),
    "/slow/begun": lambda _: len(_BEGUN),
    "/stream/chunks": lambda _: len(_CHUNKS),
    "/authenticated": lambda key: _AUTHENTICATED[key],
    "/leaves_room": lambda _: int(leaves_room()),
}
_RELEASED = threading.Event()
_MEETING = threading.Barrier(int(os.environ["WEB_THREADS"]), timeout=20)


COMPUTED_S = 0.2
LARGE = 32 * 1024 * 1024
PAGE = 60_000
STREAMED_CHUNKS = 300


def create_front() -> Bridge:
    """With pages of another origin that may call, and other workers."""
    return Bridge(create_app(), Callers(presence=presence.OF_WORKERS), cors=Cors(["https://desk.example"]))


def create_app() -> Callable[..., Iterable[bytes]]:
    http_rules.HEADERS_S = float(os.environ.get("TEST_HEADERS_S", http_rules.HEADERS_S))
    http_rules.BODY_S = float(os.environ.get("TEST_BODY_S", http_rules.BODY_S))
    http_connection.LINGER_S = float(os.environ.get("TEST_LINGER_S", http_connection.LINGER_S))
    gunicorn_worker.QUIET_POLLS = int(os.environ.get("TEST_QUIET_POLLS", gunicorn_worker.QUIET_POLLS))
    if "TEST_SEND_BUFFER" in os.environ:
        _shrink_send_buffers(int(os.environ["TEST_SEND_BUFFER"]))

    def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        status = _status(environ)
        if environ["PATH_INFO"] == "/stream":
            start_response(status, [])
            return _streamed(float(environ["QUERY_STRING"] or 0))
        body = (_received(environ) if status == "200 OK" else "").encode("latin-1")
        start_response(status, [("Content-Length", str(len(body)))])
        return [body]

    return app


def _streamed(pause_s: float) -> Iterator[bytes]:
    """As an answer whose parts are read from the database one by one."""
    for number in range(STREAMED_CHUNKS):
        time.sleep(pause_s)
        _CHUNKS.append(threading.get_ident())
        yield bytes([number % 256]) * PAGE


def _shrink_send_buffers(size: int) -> None:
    """So that what a caller has not read is kept by the server, and not by the kernel."""
    made = http_connection.Connection.connection_made

    def connection_made(self: http_connection.Connection, transport: Any) -> None:
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, size)
        made(self, transport)

    http_connection.Connection.connection_made = connection_made  # type: ignore[method-assign]


def _status(environ: dict[str, Any]) -> str:
    key = environ.get("HTTP_X_API_KEY")
    if key and key.startswith("invented"):
        _check().refuse()
        return "401 No"
    if key:
        _AUTHENTICATED[key] += 1
        if key.startswith("slowly") and _AUTHENTICATED[key] == 1:
            time.sleep(1.0)
        organization = uuid5(NAMESPACE_URL, key.split("/")[0])
        _check().verify(Principal(Kind.API_KEY, key, organization))
    return "200 OK"


def _check() -> CredentialCheck:
    check = credential_check.get()
    assert check
    return check


def _received(environ: dict[str, Any]) -> str:
    path = environ["PATH_INFO"]
    if path in _ABOUT_ITSELF:
        return str(_ABOUT_ITSELF[path](environ["QUERY_STRING"]))
    if path == "/page":
        return "x" * PAGE
    if path == "/large":
        return "x" * LARGE
    if path == "/meet":
        _MEETING.wait()
        return f"{_MEETING.parties} have met"
    if path == "/hold":
        _BEGUN.append(path)
        _RELEASED.wait(60)
    if path == "/release":
        _RELEASED.set()
    if path.startswith("/compute"):
        until = time.thread_time() + COMPUTED_S
        while time.thread_time() < until:
            pass
        time.sleep(COMPUTED_S if path.endswith("/beside") else 0.0)
    if path == "/slow":
        _BEGUN.append(path)
        time.sleep(1.0)
    return f"{environ['REQUEST_METHOD']} {path} {len(environ['wsgi.input'].read())}"
