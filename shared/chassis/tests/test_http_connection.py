"""What a server does with requests that are late, large or malformed, on raw sockets."""

import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from chassis.http_connection import MAX_CHUNKS
from chassis.strict_json import MAX_BYTES
from tip_testing import raw_http
from tip_testing.waiting import eventually

from .served import Server

PAGE = 60_000  # as served_app has it
POST = b"POST /x HTTP/1.1\r\nHost: tip\r\n"
REFUSED = {
    "no host": (b"GET / HTTP/1.1\r\n\r\n", 400, "bad_request"),
    "two hosts": (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, "bad_request"),
    "no HTTP": (b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", 400, "bad_request"),
    "no version": (b"GET /\r\n\r\n", 400, "bad_request"),
    "another version": (b"GET / HTTP/3.0\r\nHost: tip\r\n\r\n", 400, "bad_request"),
    "a line that ends too early": (b"GET / HTTP/1.1\nHost: tip\n\n", 400, "bad_request"),
    "a space before the colon": (b"GET / HTTP/1.1\r\nHost : tip\r\n\r\n", 400, "bad_request"),
    "an escape in a value": (b"GET / HTTP/1.1\r\nHost: tip\r\nX: \x1b[2J\r\n\r\n", 400, "bad_request"),
    "a long line": (b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\nHost: tip\r\n\r\n", 414, "uri_too_long"),
    "a long header": (b"GET / HTTP/1.1\r\nHost: tip\r\nX: " + b"x" * 20_000 + b"\r\n\r\n", 431, "headers_too_large"),
    "many headers": (b"GET / HTTP/1.1\r\nHost: tip\r\n" + b"X: y\r\n" * 200 + b"\r\n", 431, "headers_too_large"),
    "a body in gzip": (POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n", 501, "unsupported_transfer_coding"),
    "a body in nonsense": (POST + b"Transfer-Encoding: nonsense\r\n\r\n", 501, "unsupported_transfer_coding"),
    "a length and chunks": (POST + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", 400, "bad_request"),
    "two lengths": (POST + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\n", 400, "bad_request"),
    "no length at all": (POST + b"Content-Length: -1\r\n\r\n", 400, "bad_request"),
    "a length beyond numbers": (POST + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n", 400, "bad_request"),
    "a huge length": (POST + b"Content-Length: 1000000000000\r\n\r\n", 413, "body_too_large"),
    "one byte too many": (POST + b"Content-Length: %d\r\n\r\n" % (MAX_BYTES + 1), 413, "body_too_large"),
    "chunks of nonsense": (POST + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n", 400, "bad_request"),
    "chunks too large together": (
        POST + b"Transfer-Encoding: chunked\r\n\r\n" + (b"4000\r\n" + b"x" * 0x4000 + b"\r\n") * 5,
        413,
        "body_too_large",
    ),
    "too many chunks": (
        POST + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * (MAX_CHUNKS + 1) + b"0\r\n\r\n",
        413,
        "body_too_large",
    ),
}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server()
    server.open().close()
    yield server
    server.end()


@pytest.fixture(scope="module")
def hasty() -> Iterator[Server]:
    """A server that waits for a second where others wait for ten or thirty."""
    server = Server(TEST_HEADERS_S="1", TEST_BODY_S="1")
    server.open().close()
    yield server
    server.end()


@pytest.mark.parametrize(("sent", "status", "code"), REFUSED.values(), ids=REFUSED.keys())
def test_what_the_server_itself_refuses_is_a_problem_like_any_other(
    server: Server, sent: bytes, status: int, code: str
) -> None:
    with server.open() as connection:
        connection.sendall(sent)
        answer = raw_http.read_answer(connection)
        assert answer is not None and answer.problem == (status, code)
        assert raw_http.is_closed(connection)

    assert answer.headers["connection"] == "close" and answer.headers["x-content-type-options"] == "nosniff"
    assert len(answer.body) < 600


def test_an_answer_of_413_reaches_a_caller_that_goes_on_sending(server: Server) -> None:
    def send(connection: socket.socket) -> None:
        with suppress(OSError):  # the server has stopped listening
            connection.sendall(b"x" * 50_000_000)

    with server.open() as connection:
        connection.sendall(POST + b"Content-Length: 50000000\r\n\r\n")
        sender = threading.Thread(target=send, args=(connection,))
        sender.start()
        answer = raw_http.read_answer(connection)
        connection.shutdown(socket.SHUT_RDWR)
        sender.join()

    assert answer is not None and answer.problem == (413, "body_too_large")


def test_the_largest_body_there_may_be_is_taken(server: Server) -> None:
    answer = raw_http.request(server.port, POST + b"Content-Length: %d\r\n\r\n" % MAX_BYTES + b"x" * MAX_BYTES)

    assert answer.status == 200


def test_as_many_chunks_as_there_may_be_are_taken(server: Server) -> None:
    body = b"1\r\nx\r\n" * MAX_CHUNKS + b"0\r\n\r\n"
    answer = raw_http.request(server.port, POST + b"Transfer-Encoding: chunked\r\n\r\n" + body)

    assert answer.body == b"POST /x %d" % MAX_CHUNKS


def test_http_1_0_needs_no_host(server: Server) -> None:
    assert raw_http.request(server.port, b"GET /old HTTP/1.0\r\n\r\n").body == b"GET /old 0"


def test_a_request_to_change_the_protocol_is_answered_in_this_one(server: Server) -> None:
    wanted = b"Connection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: "
    answer = raw_http.request(
        server.port, b"GET /x HTTP/1.1\r\nHost: tip\r\n" + wanted + b"AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    )

    assert (answer.status, answer.body) == (200, b"GET /x 0")


def test_headers_that_come_drop_by_drop_are_cut_off(hasty: Server) -> None:
    with hasty.open() as connection:
        answer = raw_http.trickle(connection, b"GET / HTTP/1.1\r\nHost: tip\r\nX-Slow: ", b"x")

    assert answer is not None and answer.problem == (408, "request_timeout")


def test_a_body_that_comes_drop_by_drop_is_cut_off(hasty: Server) -> None:
    with hasty.open() as connection:
        answer = raw_http.trickle(connection, POST + b"Content-Length: 60000\r\n\r\n", b"x")

    assert answer is not None and answer.problem == (408, "request_timeout")


def test_chunks_that_come_drop_by_drop_are_cut_off(hasty: Server) -> None:
    with hasty.open() as connection:
        answer = raw_http.trickle(connection, POST + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n")

    assert answer is not None and answer.problem == (408, "request_timeout")


def test_the_second_request_of_a_connection_has_no_more_time_than_the_first(hasty: Server) -> None:
    with hasty.open() as connection:
        assert hasty.request(connection, "GET /first HTTP/1.1") == "200 GET /first 0"
        answer = raw_http.trickle(connection, b"GET / HTTP/1.1\r\nHost: tip\r\nX-Slow: ", b"x")

    assert answer is not None and answer.problem == (408, "request_timeout")


def test_a_request_that_takes_its_time_within_the_limits_is_answered(server: Server) -> None:
    with server.open() as connection:
        for piece in (b"POST /x HT", b"TP/1.1\r\nHost: tip\r\nContent-", b"Length: 4\r\n\r\n", b"ab"):
            connection.sendall(piece)
            assert not select.select([connection], [], [], 0.05)[0]  # so that they do not arrive as one
        connection.sendall(b"cd")
        answer = raw_http.read_answer(connection)

    assert answer is not None and answer.body == b"POST /x 4"


def test_a_connection_without_requests_is_closed() -> None:
    server = Server("--keep-alive", "1")
    try:
        with server.open() as silent, server.open() as used_once:
            assert server.request(used_once, "GET /x HTTP/1.1") == "200 GET /x 0"
            assert raw_http.is_closed(silent) and raw_http.is_closed(used_once)
    finally:
        server.end()


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's table of connections is read")
def test_a_caller_that_does_not_read_its_answer_is_let_go(hasty: Server) -> None:
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        connection.connect(("127.0.0.1", hasty.port))
        connection.sendall(b"GET /large HTTP/1.1\r\nHost: tip\r\n\r\n")

        eventually(lambda: not _is_established(hasty.port, connection.getsockname()[1]), raw_http.PATIENCE_S)


def _is_established(server: int, client: int) -> bool:
    """As the server sees it."""
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    ends = f"0100007F:{server:04X}", f"0100007F:{client:04X}"
    return [line[3] for line in lines if (line[1], line[2]) == ends] == ["01"]


@pytest.mark.parametrize("stopped", [False, True], ids=["by its own wish", "by a worker that is stopping"])
def test_a_slow_reader_gets_the_whole_of_the_last_answer_on_its_connection(stopped: bool) -> None:
    server = Server(TEST_LINGER_S="0.2", TEST_SEND_BUFFER="4096")
    try:
        server.open().close()
        with socket.socket() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.settimeout(raw_http.PATIENCE_S)
            connection.connect(("127.0.0.1", server.port))
            connection.sendall(b"GET /page HTTP/1.1\r\nHost: tip\r\nConnection: close\r\n\r\n")
            select.select([connection], [], [])  # the answer is there
            if stopped:
                server.process.send(signal.SIGTERM)
            time.sleep(1.0)  # five times the linger, and is not read
            received = b"".join(_pieces(connection))
    finally:
        server.end()

    assert received.partition(b"\r\n\r\n")[2] == b"x" * PAGE


def _pieces(connection: socket.socket) -> Iterator[bytes]:
    """Until the connection ends, in order or not."""
    with suppress(ConnectionResetError):
        while piece := connection.recv(65536):
            yield piece


def test_slow_and_idle_callers_hold_no_thread() -> None:
    server = Server(threads=1, TEST_HEADERS_S="90", TEST_BODY_S="90")
    try:
        with ExitStack() as held:
            slow = [held.enter_context(server.open()) for _ in range(60)]
            for place, connection in enumerate(slow):
                begun = (b"", b"GET / HTTP/1.1\r\nHost: t", POST + b"Content-Length: 9\r\n\r\nx")[place % 3]
                connection.sendall(begun)
            with server.open() as other:
                assert server.request(other, "GET /quick HTTP/1.1") == "200 GET /quick 0"
            assert not select.select(slow, [], [], 0)[0], "none of them has been answered or ended"
    finally:
        server.end()


def test_the_last_answer_on_each_connection_of_a_worker_that_is_replaced_says_so() -> None:
    """A worker is replaced after so many requests. Who honours `Connection: close` loses no request to that."""
    patience = "100"  # a caller that waits for a processor is not idle
    server = Server("--max-requests", "40", "--max-requests-jitter", "0", TEST_QUIET_POLLS=patience)
    try:
        server.open().close()
        with ThreadPoolExecutor(4) as pool:
            callers = [pool.submit(_ask_until_answered_by, server, 3) for _ in range(4)]
        assert [caller.result() for caller in callers] == [3] * 4
    finally:
        server.end()


def _ask_until_answered_by(server: Server, workers: int) -> int:
    """By how many workers the requests were answered: each on the connection of the one before, unless that ended."""
    seen: set[bytes] = set()
    with ExitStack() as held:
        connection = None
        while len(seen) < workers:
            connection = connection or held.enter_context(server.open())
            connection.sendall(b"GET /worker HTTP/1.1\r\nHost: tip\r\n\r\n")
            answer = raw_http.read_answer(connection)
            assert answer is not None and answer.status == 200
            seen.add(answer.body)
            if answer.headers.get("connection") == "close":
                connection = None
    return len(seen)
