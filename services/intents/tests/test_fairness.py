"""What one organization sends, and strangers send, does not keep another organization from being answered."""

import re
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from uuid import uuid4

import psycopg2
import pytest
from flask import Flask
from werkzeug.test import TestResponse

from tip_testing.commands import create, limit, replace
from tip_testing.identity_fixtures import IdentityFixtures
from tip_testing.waiting import eventually

from .conftest import Desk
from .test_submit_fast_path_at_random import counting

CONNECTIONS = 20
ORDINARY = "?dry_run=false"


@contextmanager
def locked(desk: Desk, intent_id: str) -> Iterator[None]:
    """The intent is being changed by somebody who takes long over it."""
    connection = psycopg2.connect(desk.platform.admin_url)
    try:
        connection.cursor().execute(
            "SELECT 1 FROM intents.intent WHERE account_id = %s AND id = %s FOR UPDATE",
            (str(desk.account_id), intent_id),
        )
        yield
    finally:
        connection.close()


@pytest.fixture(autouse=True)
def short_wait(app: Flask, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits in vain is refused long before those give up who wait for a lock."""
    monkeypatch.setattr(app.extensions["front"]._queue, "_wait_s", 0.5)


@pytest.fixture
def loud(new_desk: Callable[..., Desk]) -> Desk:
    return new_desk()


@pytest.fixture
def quiet(new_desk: Callable[..., Desk]) -> Desk:
    desk = new_desk()
    desk.created(create())  # its key is known from now on
    return desk


def everything(desk: Desk) -> list[int]:
    return [
        desk.get().status_code,
        desk.submit(create()).status_code,
        desk.submit(create(), query=ORDINARY).status_code,
    ]


def test_requests_that_wait_for_their_own_intent_leave_threads_to_others(loud: Desk, quiet: Desk) -> None:
    intent_id = loud.created(limit())["intent_id"]
    with locked(loud, intent_id), ThreadPoolExecutor(CONNECTIONS) as callers:
        waiting: list[Future[TestResponse]] = [
            callers.submit(loud.submit, replace(intent_id), query=ORDINARY) for _ in range(CONNECTIONS)
        ]
        done, _ = wait(waiting, return_when="FIRST_COMPLETED")  # the threads that it gets are taken by then
        assert [request.result().status_code for request in done] == [429] * len(done)

        assert everything(quiet) == [200, 201, 201]

    statuses = {request.result().status_code for request in waiting}
    assert 429 in statuses and statuses <= {201, 409, 429, 503}


def test_a_refusal_for_too_many_requests_at_a_time_says_so_as_every_other_does(loud: Desk) -> None:
    intent_id = loud.created(limit())["intent_id"]
    with locked(loud, intent_id), ThreadPoolExecutor(CONNECTIONS) as callers:
        waiting = [callers.submit(loud.submit, replace(intent_id), query=ORDINARY) for _ in range(CONNECTIONS)]
        done, _ = wait(waiting, return_when="FIRST_COMPLETED")
        refused = next(iter(done)).result()

    assert (refused.status_code, refused.json["code"], refused.json["status"]) == (429, "too_many_requests", 429)
    assert refused.content_type == "application/problem+json"
    assert int(refused.headers["Retry-After"]) > 0 and refused.headers["X-Request-Id"] == refused.json["request_id"]


def test_batches_of_a_tenant_are_done_one_at_a_time(loud: Desk, quiet: Desk) -> None:
    intent_id = loud.created(limit())["intent_id"]
    body = {"commands": [replace(intent_id)["command"]]}
    with locked(loud, intent_id), ThreadPoolExecutor(CONNECTIONS) as callers:
        path = f"{loud.path}/batch"
        waiting = [
            callers.submit(loud.app.test_client().post, path, json=body, headers=loud.headers)
            for _ in range(CONNECTIONS)
        ]
        done, _ = wait(waiting, return_when="FIRST_COMPLETED")
        assert {request.result().status_code for request in done} == {429}

        assert loud.get().status_code == 200  # lighter requests of its own go on, too
        assert everything(quiet) == [200, 201, 201]


def test_positions_of_a_tenant_are_read_one_at_a_time(loud: Desk) -> None:
    path = f"/v1/accounts/{loud.account_id}/positions"
    connection = psycopg2.connect(loud.platform.admin_url)
    connection.cursor().execute("LOCK TABLE intents.position")
    with closing(connection), ThreadPoolExecutor(CONNECTIONS) as callers:
        waiting = [callers.submit(loud.app.test_client().get, path, headers=loud.headers) for _ in range(CONNECTIONS)]
        done, _ = wait(waiting, return_when="FIRST_COMPLETED")
        assert {request.result().status_code for request in done} == {429}

        assert loud.get().status_code == 200  # the other thread that its key may have is free


@pytest.mark.parametrize(
    ("path", "heavy"),
    [
        ("/v1/accounts/{}/intents/batch", True),
        ("/v1/accounts/{}/intents/verify", True),
        ("/v1/accounts/{}/positions", True),
        ("/v1/accounts/{}/positi%6Fns", True),
        ("http://localhost/v1/accounts/{}/positions", True),
        ("/v1/accounts/{}/intents", False),
        ("/v1/accounts/{}/intents/stats", False),
        ("/v1/accounts/{}/balances", False),
        ("/v1/accounts/{}/positions/", False),
    ],
)
def test_a_heavy_request_is_known_by_its_view_however_its_path_is_written(app: Flask, path: str, heavy: bool) -> None:
    scope = {"raw_path": path.format(uuid4()).encode(), "query_string": b""}

    assert app.extensions["front"].is_heavy(scope) is heavy


def test_a_new_key_that_waits_for_its_intent_does_not_keep_other_new_keys_waiting(
    loud: Desk, new_desk: Callable[..., Desk]
) -> None:
    intent_id = loud.created(limit())["intent_id"]
    newcomer = new_desk()
    loud.app.extensions["callers"]._verified_callers.clear()
    with locked(loud, intent_id), ThreadPoolExecutor(2) as callers:
        first = callers.submit(loud.submit, replace(intent_id), query=ORDINARY)
        eventually(lambda: loud.app.extensions["callers"]._verified_callers, every=0.001)

        assert newcomer.get().status_code == 200
        assert not first.done()


def test_the_first_request_of_a_key_is_authenticated_twice_but_counted_and_charged_once(
    loud: Desk, identity: IdentityFixtures
) -> None:
    headers = {"x-api-key": identity.key(loud.organization.id, "paper")}
    with counting() as counts:
        answer = loud.client.get(loud.path, headers=headers)

    quota, left = (int(re.search(r"[qr]=(\d+)", answer.headers[name])[1]) for name in ("RateLimit-Policy", "RateLimit"))  # type: ignore[index]
    assert (answer.status_code, quota - left) == (200, 1)
    assert set(counts.values()) == {1.0}
