"""A worker whose loop hangs is not live, whatever else in it still turns."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import requests

from tip_testing import raw_http
from tip_testing.ports import reserved_port
from tip_testing.processes import running
from tip_testing.waiting import eventually

WORKER = str(Path(__file__).with_name("health_worker.py"))


@pytest.fixture
def fetch(tmp_path: Path) -> Iterator[Any]:
    """Asks a worker that counts a turn of half a second as hanging."""
    environment = {"HEALTH_PORT": str(reserved_port()), "HEALTH_TURN_SECONDS": "0.5"}

    def answer(path: str) -> tuple[int, Any]:
        answered = requests.get(f"http://127.0.0.1:{environment['HEALTH_PORT']}{path}", timeout=60)
        return answered.status_code, answered.json() if path.startswith("/health") else answered.text

    answer.port = int(environment["HEALTH_PORT"])
    with running(WORKER, str(tmp_path), environment=environment, ready=lambda _: _reachable(answer)):
        yield answer


def _reachable(answer: Callable[[str], Any]) -> bool:
    try:
        return bool(answer("/health/live"))
    except requests.ConnectionError:
        return False


def test_a_worker_whose_loop_hangs_is_not_live_until_it_turns_again(fetch, tmp_path):
    assert fetch("/health/live") == (200, {"status": "live"})

    (tmp_path / "hang").touch()
    eventually(lambda: fetch("/health/live") == (503, {"status": "not live", "hung": ["MainThread"]}))

    (tmp_path / "hang").unlink()
    eventually(lambda: fetch("/health/live")[0] == 200)


def test_a_worker_that_rests_is_live(fetch, tmp_path):
    (tmp_path / "tired").touch()
    time.sleep(1.0)

    assert fetch("/health/live") == (200, {"status": "live"})


def test_a_worker_says_itself_whether_it_is_ready(fetch, tmp_path):
    assert fetch("/health/ready") == (200, {"status": "ready", "tired": False})

    (tmp_path / "tired").touch()

    assert fetch("/health/ready") == (503, {"status": "not ready", "tired": True})
    assert fetch("/health/live")[0] == 200


def test_metrics_are_served_beside_the_health(fetch):
    status, text = fetch("/metrics")

    assert status == 200 and "# HELP" in text


def test_headers_that_come_drop_by_drop_are_cut_off_and_hold_up_nobody(fetch):
    port = fetch.port

    with raw_http.opened(port) as slow, ExitStack() as held:
        for _ in range(50):
            held.enter_context(raw_http.opened(port)).sendall(b"GET /health/live HT")
        assert fetch("/health/ready")[0] == 200
        assert raw_http.trickle(slow, b"GET /health/live HTTP/1.1\r\nX-Slow: ", b"x") is None


@pytest.mark.parametrize(
    ("path", "status"), [("/health/live?x=1", 400), ("/metrics?x=1", 400), ("/nowhere", 404), ("/", 404)]
)
def test_what_is_not_there_is_not_answered_with_something_else(fetch, path, status):
    assert raw_http.request(fetch.port, f"GET {path} HTTP/1.1\r\nHost: tip\r\n\r\n".encode()).status == status
