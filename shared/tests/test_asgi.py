"""What gunicorn serves, seen from the other end of a connection."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from chassis.strict_json import MAX_BYTES
from tip_local.processes import free_port


class Server:
    def __init__(self, workers: int = 1) -> None:
        self.port = free_port()
        command = [sys.executable, "-m", "gunicorn", "-c", "python:chassis.gunicorn_conf", "served_app:create_app()"]
        environment = {
            "WEB_PORT": str(self.port),
            "WEB_WORKERS": str(workers),
            "PYTHONPATH": str(Path(__file__).parent),
        }
        self.process = subprocess.Popen(command, env={**os.environ, **environment})

    def open(self) -> socket.socket:
        deadline = time.monotonic() + 30
        while True:
            try:
                return socket.create_connection(("127.0.0.1", self.port), timeout=10)
            except OSError:
                assert self.process.poll() is None and time.monotonic() < deadline
                time.sleep(0.05)

    def ask(self, connection: socket.socket, head: str, body: bytes = b"") -> str:
        connection.sendall(f"{head}\r\nHost: tip\r\n".encode() + b"\r\n" + body)
        return answer(connection)


def answer(connection: socket.socket) -> str:
    """Status and body."""
    received = b""
    while b"\r\n\r\n" not in received:
        more = connection.recv(65536)
        if not more:
            return ""
        received += more
    head, _, body = received.partition(b"\r\n\r\n")
    length = next(
        int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")
    )
    while len(body) < length:
        body += connection.recv(65536)
    return f"{head[9:12].decode()} {body.decode()}"


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.process.kill()
    server.process.wait()


def test_bodies_and_paths_arrive_in_every_form_that_http_has_for_them(server: Server) -> None:
    with closing(server.open()) as line:
        assert server.ask(line, "GET /a%2Fb?c HTTP/1.1") == "200 GET /a/b 0"
        assert server.ask(line, "GET /?at=http://tip HTTP/1.1") == "200 GET / 0"
        assert server.ask(line, "GET http://tip HTTP/1.1") == "200 GET / 0"
        assert server.ask(line, "OPTIONS * HTTP/1.1") == "200 OPTIONS * 0"
        assert server.ask(line, "POST http://tip/x HTTP/1.1\r\nContent-Length: 3", b"abc") == "200 POST /x 3"
        chunks = b"2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n"
        assert server.ask(line, "POST /x HTTP/1.1\r\nTransfer-Encoding: chunked", chunks) == "200 POST /x 5"


def test_of_a_body_too_long_to_be_taken_no_more_is_read_than_shows_that(server: Server) -> None:
    with closing(server.open()) as line:
        head = f"POST /x HTTP/1.1\r\nContent-Length: {10 * MAX_BYTES}"
        told = server.ask(line, head, b"x" * 2 * MAX_BYTES)

    status, _, _, taken = told.split()
    assert status == "200" and MAX_BYTES < int(taken) <= 2 * MAX_BYTES


def test_a_caller_that_hangs_up_in_the_middle_harms_nobody(server: Server) -> None:
    with closing(server.open()) as line:
        line.sendall(b"POST /x HTTP/1.1\r\nHost: tip\r\nContent-Length: 100\r\n\r\nabc")

    with closing(server.open()) as line:
        assert server.ask(line, "GET /after HTTP/1.1") == "200 GET /after 0"


def test_a_server_told_to_stop_answers_what_it_was_asked_and_does_not_wait_for_idle_callers(server: Server) -> None:
    idle, busy = server.open(), server.open()
    assert server.ask(idle, "GET /idle HTTP/1.1") == "200 GET /idle 0"
    told: list[str] = []
    asking = threading.Thread(target=lambda: told.append(server.ask(busy, "GET /slow HTTP/1.1")))
    asking.start()
    time.sleep(0.3)

    server.process.send_signal(signal.SIGTERM)

    assert server.process.wait(timeout=7) == 0  # before gunicorn would have killed its worker
    asking.join()
    assert told == ["200 GET /slow 0"]
    for line in (idle, busy):
        line.close()


def test_callers_who_come_all_at_once_are_shared_among_the_workers() -> None:
    server = Server(workers=2)
    try:
        server.open().close()
        time.sleep(1.5)  # until the second worker is there, too
        lines = [server.open() for _ in range(64)]
        workers = Counter(server.ask(line, "GET /worker HTTP/1.1") for line in lines)
        for line in lines:
            line.close()
    finally:
        server.process.kill()
        server.process.wait()

    assert len(workers) == 2 and min(workers.values()) >= 8, workers
