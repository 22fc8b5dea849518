"""One HTTP exchange with a broker, seen from the other end of the line."""

import socket
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from tip_brokers.checked_http import ANSWER_BYTES
from tip_brokers.http_client import HttpClient
from tip_brokers.protocol import NotSent, OutcomeUnknown

ORDER = b'{"qty":"1"}'


class Line:
    """A broker's end of connections."""

    def __init__(self, listener: socket.socket) -> None:
        self.listener = listener
        self.client = HttpClient(f"http://127.0.0.1:{listener.getsockname()[1]}", read_seconds=20)

    def received(self) -> bytes:
        """Everything that came on the next connection until the caller closed it."""
        connection, _ = self.listener.accept()
        with closing(connection), connection.makefile("rb") as came:
            return came.read()

    def answers_in_chunks(self, chunk: bytes, times: int) -> None:
        """Answer the next request in the background, as far as the caller reads."""

        def answer() -> None:
            connection, _ = self.listener.accept()
            with closing(connection):
                connection.recv(65536)
                try:
                    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                    for _ in range(times):
                        connection.sendall(chunk)
                    connection.sendall(b"0\r\n\r\n")
                except OSError:
                    return

        threading.Thread(target=answer, daemon=True).start()


@pytest.fixture
def line() -> Iterator[Line]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(20)
        yield Line(listener)


@pytest.mark.parametrize("pieces", [0, 1], ids=["nothing", "the headers alone"])
def test_no_byte_leaves_after_the_check_has_refused(line: Line, pieces: int) -> None:
    passed: list[bool] = []

    def check() -> None:
        if len(passed) == pieces:
            raise NotSent("too_late")
        passed.append(True)

    with pytest.raises(NotSent, match="too_late"):
        line.client.call("POST", "/v2/orders", {}, check, data=ORDER)

    came = line.received()
    assert ORDER not in came and bool(came) is (pieces == 1)


def test_what_comes_around_a_small_body_counts_too(line: Line) -> None:
    """Each chunk has one byte of body, and much beside it."""
    chunk, most = b"1;" + b"x" * 60_000 + b"\r\n \r\n", ANSWER_BYTES // 60_000
    line.answers_in_chunks(chunk, most - 2)
    assert len(line.client.call("GET", "/v2/orders", {}).content) == most - 2

    line.answers_in_chunks(chunk, most + 2)
    with pytest.raises(OutcomeUnknown):
        line.client.call("GET", "/v2/orders", {})
