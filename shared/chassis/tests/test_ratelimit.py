"""The rate limit: one quota whatever the number of processes, IETF headers, and no outage when Redis is down."""

import socket
import time
from contextlib import suppress
from uuid import uuid4

import pytest
from redis import Redis

from chassis.problems import Problem
from chassis.ratelimit import _RETRY_AFTER_S, RateLimit
from identity.app import create_app
from tip_testing.platform_plugin import Platform
from tip_testing.servers_plugin import ValkeyServer


def count_until_refused(*limits: RateLimit, caller: str, most: int) -> int:
    for number in range(most):
        try:
            limits[number % len(limits)].count(caller)
        except Problem as refusal:
            return number if refusal.status == 429 and 1 <= int(refusal.headers["Retry-After"]) <= 60 else -1
    return most


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that has to wait for its turn on a busy machine is not one that is away."""
    monkeypatch.setattr("chassis.ratelimit._PATIENCE_S", 60.0)


@pytest.mark.usefixtures("patient")
def test_processes_share_one_quota(valkey_server: ValkeyServer) -> None:
    processes = [RateLimit(valkey_server.url, per_minute=30) for _ in range(3)]

    assert count_until_refused(*processes, caller=uuid4().hex, most=100) == 30


@pytest.mark.usefixtures("patient")
def test_taking_quota_in_blocks_never_lets_more_through(valkey_server: ValkeyServer) -> None:
    processes = [RateLimit(valkey_server.url, per_minute=1000) for _ in range(3)]

    assert 1000 - 3 * 10 <= count_until_refused(*processes, caller=uuid4().hex, most=2000) <= 1000


@pytest.mark.usefixtures("patient")
def test_one_caller_does_not_use_up_anothers_quota(valkey_server: ValkeyServer) -> None:
    limit = RateLimit(valkey_server.url, per_minute=5)

    assert count_until_refused(limit, caller=uuid4().hex, most=10) == 5
    assert count_until_refused(limit, caller=uuid4().hex, most=3) == 3


@pytest.mark.usefixtures("patient")
def test_a_request_that_is_more_work_costs_more_of_the_quota(valkey_server: ValkeyServer) -> None:
    processes, caller = [RateLimit(valkey_server.url, per_minute=1000) for _ in range(2)], uuid4().hex
    for number in range(9):
        processes[number % 2].count(caller, 100)

    left = count_until_refused(processes[0], caller=caller, most=200)
    assert 80 <= left <= 100  # a block of ten may be lost to each process


@pytest.mark.usefixtures("patient")
def test_a_request_that_the_rest_does_not_pay_for_leaves_the_rest_to_smaller_ones(valkey_server: ValkeyServer) -> None:
    limit, caller = RateLimit(valkey_server.url, per_minute=30), uuid4().hex
    limit.count(caller, 20)
    with pytest.raises(Problem):
        limit.count(caller, 20)

    assert count_until_refused(limit, caller=caller, most=30) == 10


@pytest.mark.usefixtures("patient")
def test_a_request_larger_than_the_whole_quota_takes_all_of_it_and_passes(valkey_server: ValkeyServer) -> None:
    limit, caller = RateLimit(valkey_server.url, per_minute=30), uuid4().hex
    counted = limit.count(caller, 100)

    assert counted["default"][:2] == (30, 0)
    assert count_until_refused(limit, caller=caller, most=3) == 0


@pytest.mark.usefixtures("patient")
def test_any_number_of_other_callers_costs_a_caller_nothing_of_its_quota(
    valkey_server: ValkeyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chassis.ratelimit._MAX_TRACKED", 10)
    limit, caller, used = RateLimit(valkey_server.url, per_minute=1000), uuid4().hex, 0
    for number in range(100):
        limit.count(f"stranger-{number}")
        used = 1000 - limit.count(caller)["default"][1]

    assert used == 100


@pytest.mark.usefixtures("patient")
def test_requests_at_the_very_end_of_a_window_cost_no_more_than_others(valkey_server: ValkeyServer) -> None:
    caller = uuid4().hex
    RateLimit(valkey_server.url, per_minute=1000).count(caller)
    with Redis.from_url(valkey_server.url) as redis:
        [key] = redis.keys(f"*{caller}*")
        redis.pexpire(key, 400)
    other_process = RateLimit(valkey_server.url, per_minute=1000)
    for _ in range(50):
        remaining = other_process.count(caller)["default"][1]

    assert 1000 - remaining <= 50 + 2 * 10


def test_requests_pass_when_redis_is_down() -> None:
    limit = RateLimit("redis://127.0.0.1:1/0", per_minute=5)

    assert count_until_refused(limit, caller="anyone", most=12) == 12
    assert limit.count("anyone", 5)


def test_a_redis_that_is_silent_costs_one_request_in_many_its_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts, and never says a word
        limit = RateLimit(f"redis://127.0.0.1:{silent.getsockname()[1]}/0", per_minute=60)
        began = time.monotonic()
        passed = sum(count_until_refused(limit, caller=f"caller-{number}", most=1) for number in range(50))
        turns = 1 + (time.monotonic() - began) / _RETRY_AFTER_S
        queried = _waiting(silent)

    assert passed == 50
    assert 1 <= queried <= turns


def _waiting(server: socket.socket) -> int:
    """How many have connected and were not accepted yet."""
    server.setblocking(False)
    count = 0
    with suppress(BlockingIOError):
        while True:
            server.accept()[0].close()
            count += 1
    return count


@pytest.mark.usefixtures("patient")
def test_answers_carry_the_headers_and_a_refusal_says_when_to_come_back(platform: Platform) -> None:
    client = create_app(platform.web_environment("identity", RATE_LIMIT_PER_MINUTE="2")).test_client()
    address = {"REMOTE_ADDR": "127.7.7.7"}
    answers = [
        client.post("/api/v1/auth/api-key/validate", json={"api_key": "x"}, environ_base=address) for _ in range(3)
    ]

    assert [answer.status_code for answer in answers] == [401, 401, 429]
    assert answers[0].headers["RateLimit-Policy"] == '"default";q=2;w=60, "validate";q=100000;w=60'
    assert answers[0].headers["RateLimit"].startswith('"default";r=1;t=')
    assert int(answers[2].headers["Retry-After"]) > 0


@pytest.mark.usefixtures("patient")
def test_a_forwarded_address_is_believed_only_behind_a_configured_proxy(platform: Platform) -> None:
    def statuses(**settings: str) -> list[int]:
        client = create_app(platform.web_environment("identity", RATE_LIMIT_PER_MINUTE="2", **settings)).test_client()
        base = {"REMOTE_ADDR": f"127.8.{len(settings)}.1"}
        return [
            client.post(
                "/api/v1/auth/api-key/validate",
                json={"api_key": "x"},
                environ_base=base,
                headers={"X-Forwarded-For": f"127.6.{len(settings)}.{number}"},
            ).status_code
            for number in range(4)
        ]

    assert statuses() == [401, 401, 429, 429]
    assert statuses(TRUSTED_PROXIES="1") == [401] * 4
