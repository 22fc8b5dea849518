"""What gunicorn serves, seen from the other end of a connection."""

import math
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, nullcontext
from http.client import HTTPConnection
from itertools import islice
from statistics import median

import pytest

from .served import Server

COMPUTED_S, PAGE, STREAMED_CHUNKS = 0.2, 60_000, 300  # as served_app has them


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.end()


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


@pytest.mark.parametrize(
    ("known", "path", "share"), [(True, "/hold", 4), (False, "/hold", 4), (False, "/hold?limit=500", 1)]
)
def test_a_tenant_that_holds_all_it_can_get_leaves_threads_to_another(
    server: Server, known: bool, path: str, share: int
) -> None:
    """Whether its credentials are known to the process or new, and of heavy requests all but one."""
    loud, quiet = "x-api-key: loud/{}", "x-api-key: quiet"
    lines = [server.open() for _ in range(20)]
    with closing(server.open()) as other, ThreadPoolExecutor(20) as callers:
        for head in (*(map(loud.format, range(20)) if known else ()), quiet):
            assert server.request(other, f"GET /known HTTP/1.1\r\n{head}").startswith("200")
        held = [
            callers.submit(server.request, line, f"GET {path} HTTP/1.1\r\n{loud.format(number)}")
            for number, line in enumerate(lines)
        ]
        while sum(answer.done() for answer in held) < 20 - share:  # as many as wait in vain
            time.sleep(0.05)
        begun = server.request(other, f"GET /slow/begun HTTP/1.1\r\n{quiet}")
        newcomer = server.request(other, "GET /new HTTP/1.1\r\nx-api-key: new")
        server.request(other, f"GET /release HTTP/1.1\r\n{quiet}")
        statuses = Counter(answer.result().partition(" ")[0] for answer in held)
    for line in lines:
        line.close()

    assert (begun, newcomer) == (f"200 {share}", "200 GET /new 0")
    assert statuses == {"429": 20 - share, "200": share}


@contextmanager
def another_tenant(server: Server, connection: socket.socket | None = None) -> Iterator[None]:
    """One that sends requests all the time, and whom the server knows already."""
    done, known = threading.Event(), threading.Event()

    def keep_sending() -> None:
        with nullcontext(connection) if connection else closing(server.open()) as line:
            while not done.wait(0.05):
                server.request(line, "GET /first HTTP/1.1\r\nx-api-key: quiet")
                server.request(line, "GET /known HTTP/1.1\r\nx-api-key: quiet")
                known.set()

    with ThreadPoolExecutor(1) as quiet:
        sending = quiet.submit(keep_sending)
        try:
            assert known.wait(60)
            yield
        finally:
            done.set()
            sending.result()


def in_two_of_five_trials(holds: Callable[[], bool]) -> bool:
    """A machine that stalls keeps the other tenant away, or makes a request look like work; hardly four times."""
    return sum(islice(filter(None, (holds() for _ in range(5))), 2)) == 2


@pytest.mark.parametrize(
    ("request_line", "least_s", "most_s"),
    [
        ("GET /compute?limit=100", 4.9 * COMPUTED_S, math.inf),
        ("POST /compute?limit=100", 4.9 * COMPUTED_S, math.inf),
        ("POST /compute/beside?limit=100", 9.9 * COMPUTED_S, math.inf),
        ("GET /slow?limit=100", 0.0, 3.0),
        ("POST /slow?limit=100", 0.0, 3.0),
    ],
    ids=[
        "a read",
        "a batch",
        "a batch that waits for as long as it computes",
        "a read that waits",
        "a batch that waits",
    ],
)
def test_after_a_heavy_request_its_tenant_pauses_while_another_is_there(
    server: Server, request_line: str, least_s: float, most_s: float
) -> None:
    """Four times as long as it computed; after a batch as long as it took, unless it did nothing but wait."""
    heavy = f"{request_line} HTTP/1.1\r\nx-api-key: loud\r\nContent-Length: 0"

    def paused_and_worked() -> bool:
        with closing(server.open()) as loud, another_tenant(server):
            first, began = server.request(loud, heavy), time.monotonic()
            second, took_s = server.request(loud, heavy), time.monotonic() - began
            return first.startswith("200 ") and second.startswith("200 ") and least_s <= took_s <= most_s

    assert in_two_of_five_trials(paused_and_worked)


def test_a_heavy_request_that_has_waited_leaves_room_while_another_tenant_is_there(server: Server) -> None:
    heavy, probe = "GET /compute?limit=100", "GET /leaves_room?limit=100"

    def answers(connection: socket.socket, *lines: str) -> list[str]:
        return [server.request(connection, f"{line} HTTP/1.1\r\nx-api-key: loud") for line in lines]

    with closing(server.open()) as loud:
        assert answers(loud, heavy, probe)[1] == "200 0"
        with another_tenant(server):
            assert answers(loud, probe, heavy, probe)[::2] == ["200 0", "200 1"]


def test_a_tenant_pauses_also_for_one_whose_requests_another_worker_answers() -> None:
    server = Server(workers=2, app="create_front")
    lines: list[socket.socket] = []
    try:
        by_worker: dict[str, socket.socket] = {}
        while len(by_worker) < 2:
            lines.append(server.open())
            by_worker[server.request(lines[-1], "GET /worker HTTP/1.1")] = lines[-1]
        loud, quiet = by_worker.values()
        heavy = "POST /compute?limit=100 HTTP/1.1\r\nx-api-key: loud\r\nContent-Length: 0"

        def paused() -> bool:
            with another_tenant(server, quiet):
                began = time.monotonic()
                answers = [server.request(loud, heavy) for _ in range(2)]
                return answers == ["200 POST /compute 0"] * 2 and time.monotonic() - began >= 5 * COMPUTED_S

        assert in_two_of_five_trials(paused)
    finally:
        for line in lines:
            line.close()
        server.end()


def test_while_its_batches_pause_a_tenant_reads_on(server: Server) -> None:
    def read_on() -> bool:
        with closing(server.open()) as loud, another_tenant(server):
            server.request(loud, "POST /compute/beside?limit=100 HTTP/1.1\r\nx-api-key: loud\r\nContent-Length: 0")
            began = time.monotonic()
            answer = server.request(loud, "GET /list?limit=100 HTTP/1.1\r\nx-api-key: loud")
            return answer == "200 GET /list 0" and time.monotonic() - began < 4 * COMPUTED_S

    assert in_two_of_five_trials(read_on)


def test_the_first_request_of_a_credential_is_answered_with_its_body_as_any_other(server: Server) -> None:
    head = "POST /x HTTP/1.1\r\nx-api-key: new\r\nContent-Length: 3"
    with closing(server.open()) as line:
        assert [server.request(line, head, b"abc") for _ in range(2)] == ["200 POST /x 3"] * 2


def test_requests_that_come_with_one_new_credential_at_once_are_authenticated_as_one(server: Server) -> None:
    """As after a restart: only the first is authenticated as a stranger's, and then each once more as its tenant's."""
    lines = [server.open() for _ in range(20)]
    with closing(server.open()) as other, ThreadPoolExecutor(20) as callers:
        pending = [callers.submit(server.request, line, "GET /x HTTP/1.1\r\nx-api-key: slowly/1") for line in lines]
        answers = Counter(answer.result() for answer in pending)
        authenticated = server.request(other, "GET /authenticated?slowly/1 HTTP/1.1\r\nx-api-key: quiet")
    for line in lines:
        line.close()

    assert (answers, authenticated) == ({"200 GET /x 0": 20}, "200 21")


def test_invented_keys_hold_one_thread_and_stop_being_checked_when_too_many_were_refused(server: Server) -> None:
    known = "GET /known HTTP/1.1\r\nx-api-key: quiet"
    with closing(server.open()) as other, closing(server.open()) as guesser:
        assert server.request(other, known).startswith("200")
        statuses = list[str]()
        while len(statuses) < 5_000 and "429" not in statuses[-1:]:
            answer = server.request(guesser, f"GET / HTTP/1.1\r\nx-api-key: invented-{len(statuses)}")
            statuses.append(answer.partition(" ")[0])

        assert server.request(other, known).startswith("200")
    assert len(statuses) > 600 and Counter(statuses)["429"] == 1


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
