"""How tenants share the threads of a gunicorn worker, seen from the other end of a connection."""

import math
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, nullcontext
from itertools import islice

import pytest

from .served import Server

COMPUTED_S = 0.2  # as served_app has it


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
    """What is timed. A machine that stalls keeps the other tenant away, or makes a request look like work."""
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
            assert first.startswith("200 ") and second.startswith("200 ")
            return least_s <= took_s <= most_s

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
                assert [server.request(loud, heavy) for _ in range(2)] == ["200 POST /compute 0"] * 2
                return time.monotonic() - began >= 5 * COMPUTED_S

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
            assert server.request(loud, "GET /list?limit=100 HTTP/1.1\r\nx-api-key: loud") == "200 GET /list 0"
            return time.monotonic() - began < 4 * COMPUTED_S

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
