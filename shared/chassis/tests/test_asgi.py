"""What gunicorn serves, seen from the other end of a connection."""

import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection
from statistics import median

import pytest

from .served import Server

PAGE, STREAMED_CHUNKS = 60_000, 300  # as served_app has them


def test_bodies_and_paths_arrive_in_every_form_that_http_has_for_them(server: Server) -> None:
    with closing(server.open()) as line:
        assert server.request(line, "GET /a%2Fb?c HTTP/1.1") == "200 GET /a/b 0"
        assert server.request(line, "GET /?at=http://tip HTTP/1.1") == "200 GET / 0"
        assert server.request(line, "GET http://tip HTTP/1.1") == "200 GET / 0"
        assert server.request(line, "OPTIONS * HTTP/1.1") == "200 OPTIONS * 0"
        assert server.request(line, "POST http://tip/x HTTP/1.1\r\nContent-Length: 3", b"abc") == "200 POST /x 3"
        chunks = b"2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n"
        assert server.request(line, "POST /x HTTP/1.1\r\nTransfer-Encoding: chunked", chunks) == "200 POST /x 5"


def test_a_caller_that_hangs_up_in_the_middle_harms_nobody(server: Server) -> None:
    with closing(server.open()) as line:
        line.sendall(b"POST /x HTTP/1.1\r\nHost: tip\r\nContent-Length: 100\r\n\r\nabc")

    with closing(server.open()) as line:
        assert server.request(line, "GET /after HTTP/1.1") == "200 GET /after 0"


@pytest.mark.skipif(not hasattr(select, "POLLRDHUP"), reason="only Linux says that a caller has hung up")
def test_what_was_sent_to_a_paused_worker_by_a_caller_that_gave_up_is_not_done(server: Server) -> None:
    """It may have sent the same to another worker, and then something else: this would undo it."""
    with closing(server.open()) as line:
        worker = int(server.request(line, "GET /worker HTTP/1.1").split()[1])
        os.kill(worker, signal.SIGSTOP)
        line.sendall(b"PUT /slow HTTP/1.1\r\nHost: tip\r\nContent-Length: 0\r\n\r\n")
    os.kill(worker, signal.SIGCONT)

    with closing(server.open()) as line:
        assert server.request(line, "GET /slow HTTP/1.1") == "200 GET /slow 0"
        assert server.request(line, "GET /slow/begun HTTP/1.1") == "200 1"


def test_a_stopping_server_answers_requests_in_flight_and_does_not_wait_for_idle_callers() -> None:
    server = Server("--graceful-timeout", "60", "--keep-alive", "90")
    try:
        idle, busy, answers = server.open(), server.open(), list[str]()
        assert server.request(idle, "GET /idle HTTP/1.1") == "200 GET /idle 0"
        requesting = threading.Thread(target=lambda: answers.append(server.request(busy, "GET /slow HTTP/1.1")))
        requesting.start()
        while server.request(idle, "GET /slow/begun HTTP/1.1") != "200 1":
            time.sleep(0.05)

        server.process.send(signal.SIGTERM)

        assert server.process.wait(45) == 0  # long before gunicorn would have ended its worker
        requesting.join()
        assert answers == ["200 GET /slow 0"]
        for line in (idle, busy):
            line.close()
    finally:
        server.end()


def test_an_answer_of_unknown_length_is_made_while_it_is_read_and_holds_no_thread_between_its_chunks() -> None:
    server = Server(threads=2, TEST_SEND_BUFFER="65536")
    try:
        with closing(HTTPConnection("127.0.0.1", server.port, timeout=60)) as reader, closing(server.open()) as line:
            reader.request("GET", "/stream", headers={"x-api-key": "reader"})
            answer = reader.getresponse()
            first = answer.read(1)
            while server.request(line, "GET /stream/chunks HTTP/1.1") == "200 0":
                time.sleep(0.05)
            answered = [server.request(line, "GET /beside HTTP/1.1\r\nx-api-key: reader") for _ in range(20)]
            made = int(server.request(line, "GET /stream/chunks HTTP/1.1").split()[1])
            rest = answer.read()
    finally:
        server.end()

    assert answered == ["200 GET /beside 0"] * 20
    assert made < STREAMED_CHUNKS  # nobody has read the others yet
    assert first + rest == b"".join(bytes([number % 256]) * PAGE for number in range(STREAMED_CHUNKS))


def test_a_caller_that_leaves_in_the_middle_of_a_stream_ends_it() -> None:
    server = Server(TEST_SEND_BUFFER="65536")
    try:
        with closing(server.open()) as line:
            line.sendall(b"GET /stream?0.1 HTTP/1.1\r\nHost: tip\r\n\r\n")
            line.recv(1000)
        with closing(server.open()) as line:
            chunks = [server.request(line, "GET /stream/chunks HTTP/1.1")]
            while len(chunks) < 2 or chunks[-1] != chunks[-2]:
                time.sleep(1.0)
                chunks.append(server.request(line, "GET /stream/chunks HTTP/1.1"))
    finally:
        server.end()

    assert int(chunks[-1].split()[1]) < STREAMED_CHUNKS


def test_an_app_has_the_threads_that_it_was_given() -> None:
    server = Server(threads=12)
    try:
        lines = {f"tenant-{number}": server.open() for number in range(12)}
        for key, line in lines.items():
            assert server.request(line, f"GET /known HTTP/1.1\r\nx-api-key: {key}").startswith("200")
        with ThreadPoolExecutor(12) as callers:
            answers = list(
                callers.map(lambda key: server.request(lines[key], f"GET /meet HTTP/1.1\r\nx-api-key: {key}"), lines)
            )
        for line in lines.values():
            line.close()
    finally:
        server.end()

    assert answers == ["200 12 have met"] * 12


def test_callers_who_come_all_at_once_are_shared_among_the_workers() -> None:
    server = Server(workers=2)
    try:
        workers = set[str]()
        while len(workers) < 2:  # until the second one is there, too
            with closing(server.open()) as line:
                workers.add(server.request(line, "GET /worker HTTP/1.1"))
        pids = [int(worker.split()[1]) for worker in workers]
        for pid in pids if sys.platform == "linux" else ():  # on one processor the first to run could take them all
            os.sched_setaffinity(pid, {min(os.sched_getaffinity(pid))})
        shares = [_least_share(server, pids) for _ in range(5)]
    finally:
        server.end()

    assert median(shares) >= 8, shares  # in a single try the scheduler may favour one of them


def _least_share(server: Server, pids: list[int]) -> int:
    """Of 64 callers that are there when the workers poll, how many the one has that has fewer."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    lines = [server.open() for _ in range(64)]
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    taken = Counter(server.request(line, "GET /worker HTTP/1.1") for line in lines)
    for line in lines:
        line.close()
    return min(taken.values()) if len(taken) == 2 else 0


def test_the_worker_class_loads_no_metrics_before_they_have_a_directory() -> None:
    """gunicorn's arbiter loads it first and then chooses the directory; counters made earlier would be lost."""
    code = "import sys, chassis.gunicorn_worker; sys.exit('prometheus_client' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
