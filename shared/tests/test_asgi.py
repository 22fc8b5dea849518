"""What gunicorn serves, seen from the other end of a connection."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from statistics import median

import pytest

from .served import Server

COMPUTED_S = 0.2  # as served_app has it


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.end()


def test_bodies_and_paths_arrive_in_every_form_that_http_has_for_them(server: Server) -> None:
    with closing(server.open()) as line:
        assert server.ask(line, "GET /a%2Fb?c HTTP/1.1") == "200 GET /a/b 0"
        assert server.ask(line, "GET /?at=http://tip HTTP/1.1") == "200 GET / 0"
        assert server.ask(line, "GET http://tip HTTP/1.1") == "200 GET / 0"
        assert server.ask(line, "OPTIONS * HTTP/1.1") == "200 OPTIONS * 0"
        assert server.ask(line, "POST http://tip/x HTTP/1.1\r\nContent-Length: 3", b"abc") == "200 POST /x 3"
        chunks = b"2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n"
        assert server.ask(line, "POST /x HTTP/1.1\r\nTransfer-Encoding: chunked", chunks) == "200 POST /x 5"


def test_a_caller_that_hangs_up_in_the_middle_harms_nobody(server: Server) -> None:
    with closing(server.open()) as line:
        line.sendall(b"POST /x HTTP/1.1\r\nHost: tip\r\nContent-Length: 100\r\n\r\nabc")

    with closing(server.open()) as line:
        assert server.ask(line, "GET /after HTTP/1.1") == "200 GET /after 0"


def test_a_server_told_to_stop_answers_what_it_was_asked_and_does_not_wait_for_idle_callers() -> None:
    server = Server("--graceful-timeout", "60", "--keep-alive", "90")
    try:
        idle, busy, told = server.open(), server.open(), list[str]()
        assert server.ask(idle, "GET /idle HTTP/1.1") == "200 GET /idle 0"
        asking = threading.Thread(target=lambda: told.append(server.ask(busy, "GET /slow HTTP/1.1")))
        asking.start()
        while server.ask(idle, "GET /slow/begun HTTP/1.1") != "200 1":
            time.sleep(0.05)

        server.process.send_signal(signal.SIGTERM)

        assert server.process.wait(timeout=45) == 0  # long before gunicorn would have ended its worker
        asking.join()
        assert told == ["200 GET /slow 0"]
        for line in (idle, busy):
            line.close()
    finally:
        server.end()


def test_an_app_has_the_threads_that_it_was_given() -> None:
    server = Server(threads=12)
    try:
        lines = {f"tenant-{number}": server.open() for number in range(12)}
        for key, line in lines.items():
            assert server.ask(line, f"GET /known HTTP/1.1\r\nx-api-key: {key}").startswith("200")
        with ThreadPoolExecutor(12) as callers:
            told = list(
                callers.map(lambda key: server.ask(lines[key], f"GET /meet HTTP/1.1\r\nx-api-key: {key}"), lines)
            )
        for line in lines.values():
            line.close()
    finally:
        server.end()

    assert told == ["200 12 have met"] * 12


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
            assert server.ask(other, f"GET /known HTTP/1.1\r\n{head}").startswith("200")
        held = [
            callers.submit(server.ask, line, f"GET {path} HTTP/1.1\r\n{loud.format(number)}")
            for number, line in enumerate(lines)
        ]
        while sum(one.done() for one in held) < 20 - share:  # as many as wait in vain
            time.sleep(0.05)
        begun = server.ask(other, f"GET /slow/begun HTTP/1.1\r\n{quiet}")
        newcomer = server.ask(other, "GET /new HTTP/1.1\r\nx-api-key: new")
        server.ask(other, f"GET /release HTTP/1.1\r\n{quiet}")
        told = Counter(one.result() for one in held)
    for line in lines:
        line.close()

    assert (begun, newcomer) == (f"200 {share}", "200 GET /new 0")
    assert told == {"429 ": 20 - share, "200 GET /hold 0": share}


def test_a_tenant_pauses_after_a_heavy_request_four_times_as_long_as_it_computed_while_another_is_there(
    server: Server,
) -> None:
    heavy, done = "GET /compute?limit=100 HTTP/1.1\r\nx-api-key: loud", threading.Event()

    def keep_asking() -> None:
        with closing(server.open()) as line:
            while not done.wait(0.05):
                server.ask(line, "GET /known HTTP/1.1\r\nx-api-key: quiet")

    with closing(server.open()) as loud, ThreadPoolExecutor(1) as quiet:
        quiet.submit(keep_asking)
        try:
            assert server.ask(loud, heavy) == "200 GET /compute 0"
            began = time.monotonic()
            assert server.ask(loud, heavy) == "200 GET /compute 0"
            took = time.monotonic() - began
        finally:
            done.set()

    assert took >= 4 * COMPUTED_S + COMPUTED_S - 0.02


def test_the_first_request_of_a_credential_is_answered_with_its_body_as_any_other(server: Server) -> None:
    head = "POST /x HTTP/1.1\r\nx-api-key: new\r\nContent-Length: 3"
    with closing(server.open()) as line:
        assert [server.ask(line, head, b"abc") for _ in range(2)] == ["200 POST /x 3"] * 2


def test_requests_that_come_with_one_new_credential_at_once_are_authenticated_as_one(server: Server) -> None:
    """As after a restart: only the first is looked at as a stranger's, and then each once more as its tenant's."""
    lines = [server.open() for _ in range(20)]
    with closing(server.open()) as other, ThreadPoolExecutor(20) as callers:
        asked = [callers.submit(server.ask, line, "GET /x HTTP/1.1\r\nx-api-key: slowly/1") for line in lines]
        told = Counter(one.result() for one in asked)
        authenticated = server.ask(other, "GET /authenticated?slowly/1 HTTP/1.1\r\nx-api-key: quiet")
    for line in lines:
        line.close()

    assert (told, authenticated) == ({"200 GET /x 0": 20}, "200 21")


def test_invented_keys_hold_one_thread_and_stop_being_looked_at_when_too_many_were_refused(server: Server) -> None:
    known = "GET /known HTTP/1.1\r\nx-api-key: quiet"
    with closing(server.open()) as other, closing(server.open()) as guesser:
        assert server.ask(other, known).startswith("200")
        told = list[str]()
        while len(told) < 5_000 and "429 " not in told[-1:]:
            told.append(server.ask(guesser, f"GET / HTTP/1.1\r\nx-api-key: invented-{len(told)}"))

        assert server.ask(other, known).startswith("200")
    assert len(told) > 600 and Counter(told)["429 "] == 1


def test_callers_who_come_all_at_once_are_shared_among_the_workers() -> None:
    server = Server(workers=2)
    try:
        workers = set[str]()
        while len(workers) < 2:  # until the second one is there, too
            with closing(server.open()) as line:
                workers.add(server.ask(line, "GET /worker HTTP/1.1"))
        pids = [int(worker.split()[1]) for worker in workers]
        for pid in pids if sys.platform == "linux" else ():  # on one processor the first to run could take them all
            os.sched_setaffinity(pid, {min(os.sched_getaffinity(pid))})
        shares = [_least_share(server, pids) for _ in range(5)]
    finally:
        server.end()

    assert median(shares) >= 8, shares  # in a single try the scheduler may favour one of them


def _least_share(server: Server, pids: list[int]) -> int:
    """Of 64 callers that are there when the workers look up, how many the one has that has fewer."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    lines = [server.open() for _ in range(64)]
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    taken = Counter(server.ask(line, "GET /worker HTTP/1.1") for line in lines)
    for line in lines:
        line.close()
    return min(taken.values()) if len(taken) == 2 else 0


def test_gunicorn_loads_no_metrics_with_the_worker_class() -> None:
    """They look for the directory that workers share when they are loaded, and it is named after that."""
    loaded = "import sys, chassis.asgi; sys.exit('prometheus_client' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", loaded], check=False).returncode == 0
