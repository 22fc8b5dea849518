"""The event stream at the platform's own port: handed on whole, both ways, and ended when either side is gone."""

import http.client
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tip_testing.ports import reserved_port
from tip_testing.processes import Running
from tip_testing.processes import start as start_process

APP = """
from flask import Flask
from chassis.asgi import Bridge
from tip_local.events_front import EventsFront

class Front(EventsFront):
    def __init__(self):
        app = Flask("app")
        app.add_url_rule("/", view_func=lambda: "the app")
        Bridge.__init__(self, app.wsgi_app)
        self.gateway = "http://127.0.0.1:%d"

    answer = Bridge.answer
    is_heavy = Bridge.is_heavy

front = Front()
"""
PATH = "/v1/accounts/a-b/events"


class Gateway:
    """One connection at a time, by hand."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self.head = b""

    def take(self, answer: bytes) -> socket.socket:
        connection, _ = self._server.accept()
        connection.settimeout(30)
        self.head = b""
        while b"\r\n\r\n" not in self.head:
            self.head += connection.recv(65536)
        connection.sendall(answer)
        return connection

    def close(self) -> None:
        self._server.close()


@pytest.fixture(scope="module")
def gateway() -> Iterator[Gateway]:
    made = Gateway()
    yield made
    made.close()


@pytest.fixture(scope="module")
def port(gateway: Gateway, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    folder = tmp_path_factory.mktemp("front")
    (folder / "fronted.py").write_text(APP % gateway.port)
    port = reserved_port()
    front = _serve(folder, port)
    yield port
    front.end()


def _serve(folder: Path, port: int) -> Running:
    environment = {"PYTHONPATH": str(folder), "WEB_PORT": str(port), "WEB_WORKERS": "1", "WEB_THREADS": "2"}
    words = ("-m", "gunicorn", "-c", "python:chassis.gunicorn_conf", "fronted:front")
    return start_process(*words, environment=environment, log=folder / "front.log", ready=lambda _: _listens(port))


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


@contextmanager
def requested(port: int, path: str) -> Iterator[http.client.HTTPConnection]:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as caller:
        caller.request("GET", path, headers={"x-api-key": "k", "Last-Event-ID": "7@e", "Connection": "keep-alive"})
        yield caller


@contextmanager
def opened(
    port: int, gateway: Gateway, answer: bytes, path: str = PATH
) -> Iterator[tuple[http.client.HTTPResponse, socket.socket]]:
    taken: list[socket.socket] = []
    taker = threading.Thread(target=lambda: taken.append(gateway.take(answer)))
    taker.start()
    with requested(port, path) as caller:
        taker.join(60)
        with taken[0], closing(caller.getresponse()) as response:
            yield response, taken[0]


CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\nX-Request-Id: r\r\n\r\n"


def piece(text: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(text), text)


def test_request_and_events_are_handed_on_as_they_are(port: int, gateway: Gateway) -> None:
    path = f"{PATH}?subscriptions=A%2CB&x=%C3%A9"
    with opened(port, gateway, CHUNKED + piece(b"data: 1\n\n"), path) as (answer, line):
        assert (answer.status, answer.headers["Content-Type"]) == (200, "text/event-stream")
        assert answer.headers["X-Request-Id"] == "r"
        assert answer.read1(100) == b"data: 1\n\n"
        line.sendall(piece(b"data: 2\n\n"))
        assert answer.read1(100) == b"data: 2\n\n"
        line.sendall(b"0\r\n\r\n")
        assert answer.read() == b""

    request, *headers = gateway.head.decode().strip().split("\r\n")
    assert request == f"GET {path} HTTP/1.1"
    named = dict(header.lower().split(": ", 1) for header in headers)
    assert (named["x-api-key"], named["last-event-id"]) == ("k", "7@e")
    assert "user-agent" not in named


def test_a_refusal_of_the_gateway_is_the_answer(port: int, gateway: Gateway) -> None:
    refusal = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\nRetry-After: 1\r\n\r\n{}"
    with opened(port, gateway, refusal) as (answer, _):
        assert (answer.status, answer.headers["Retry-After"], answer.read()) == (401, "1", b"{}")


def test_a_reader_that_leaves_ends_the_stream_at_the_gateway(port: int, gateway: Gateway) -> None:
    taken: list[socket.socket] = []
    taker = threading.Thread(target=lambda: taken.append(gateway.take(CHUNKED + piece(b"data: 1\n\n"))))
    taker.start()
    with requested(port, PATH) as caller, closing(caller.getresponse()) as answer:
        assert answer.read1(100)
    taker.join(60)

    with taken[0] as line:
        assert line.recv(10) == b""


def test_a_stream_that_breaks_is_not_taken_for_one_that_has_ended(port: int, gateway: Gateway) -> None:
    with opened(port, gateway, CHUNKED + piece(b"data: 1\n\n")) as (answer, line):
        assert answer.read1(100)
        line.close()

        with pytest.raises(http.client.IncompleteRead):
            answer.read()


def test_everything_else_is_the_apps(port: int) -> None:
    with requested(port, "/") as caller, closing(caller.getresponse()) as answer:
        assert answer.read() == b"the app"


def test_without_the_gateway_it_is_503(port: int, gateway: Gateway) -> None:
    gateway.close()
    with requested(port, PATH) as caller, closing(caller.getresponse()) as refused:
        assert (refused.status, refused.headers["Content-Type"]) == (503, "application/problem+json")
        assert refused.headers["Retry-After"] == "1"
