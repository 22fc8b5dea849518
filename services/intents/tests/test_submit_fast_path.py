"""The fast path and Flask: whatever becomes of a request, both answer it alike."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg2
import pytest
from flask import Flask
from werkzeug.test import EnvironBuilder, TestResponse

from chassis import keys, strict_json
from tip_testing.commands import cancel, create

from .conftest import Desk
from .serving import create_app, introduce, send_at_once
from .test_controls import disable

FLASK = "?dry_run=false"


@contextmanager
def locked(desk: Desk, statement: str) -> Iterator[None]:
    """Somebody else's transaction, under way."""
    connection = psycopg2.connect(desk.platform.admin_url)
    try:
        connection.cursor().execute(statement, {"account_id": str(desk.account_id)})
        yield
    finally:
        connection.close()


def both(
    desk: Desk, body: Any, app: Flask | None = None, path: str | None = None, **headers: str
) -> list[TestResponse]:
    client = (app or desk.app).test_client()
    named = {**desk.headers, **{name.replace("_", "-"): value for name, value in headers.items()}}
    sent = {"data": body, "content_type": "application/json"} if isinstance(body, bytes) else {"json": body}
    introduce(app or desk.app, named["x-api-key"])
    return [client.post((path or desk.path) + query, **sent, headers=named) for query in ("", FLASK)]


def refused_by_control(desk: Desk) -> list[TestResponse]:
    disable(desk)
    return both(desk, create())


def kept_waiting(desk: Desk) -> list[TestResponse]:
    desk.created(create())
    with locked(desk, "SELECT 1 FROM intents.account_head WHERE account_id = %(account_id)s FOR UPDATE"):
        return both(desk, create())


def overloaded(desk: Desk) -> list[TestResponse]:
    desk.execute(
        "INSERT INTO intents.backlog VALUES (:id, CAST(:account_id AS text), now() + interval '1 minute')",
        id=desk.organization.id,
    )
    return both(desk, create())


def too_many(desk: Desk) -> list[TestResponse]:
    app = create_app(desk.platform.web_environment("intents", RATE_LIMIT_PER_MINUTE="1"))
    both(desk, create(), app)
    return both(desk, create(), app)


def not_entitled(desk: Desk) -> list[TestResponse]:
    desk.execute("UPDATE accounts.account SET environment = 'live' WHERE id = :account_id")
    desk.execute(
        "UPDATE identity.entitlement SET expires_at = now() WHERE organization_id = :id",
        id=desk.organization.id,
    )
    return both(desk, create(), x_api_key=desk.organization.api_keys["live"])


REFUSALS: dict[str, tuple[int, str, Callable[[Desk], list[TestResponse]]]] = {
    # the status, the code, and who sends; everything else that is refused is refused by `model.decide`
    "stranger": (401, "unauthenticated", lambda desk: both(desk, create(), x_api_key=keys.generate("paper"))),
    "read-only key": (
        403,
        "forbidden",
        lambda desk: both(desk, create(), x_api_key=desk.organization.api_keys["paper_read_only"]),
    ),
    "not entitled": (403, "entitlement_required", not_entitled),
    "control": (422, "control_rejected", refused_by_control),
    "too many": (429, "rate_limited", too_many),
    "kept waiting": (503, "unavailable", kept_waiting),
    "overloaded": (503, "overloaded", overloaded),
}


@pytest.mark.parametrize("kind", REFUSALS)
def test_the_fast_path_and_flask_refuse_alike(new_desk: Callable[..., Desk], kind: str) -> None:
    status, code, send = REFUSALS[kind]

    fast, flask = send(new_desk())

    assert (fast.status_code, fast.json["code"]) == (status, code)
    assert flask.status_code == status
    assert {**fast.json, "request_id": ""} == {**flask.json, "request_id": ""}
    assert sorted(fast.headers.keys()) == sorted(flask.headers.keys())
    assert "RateLimit" in fast.headers


def test_the_fast_path_and_flask_refuse_alike_when_too_many_wait(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    front = desk.app.extensions["front"]
    monkeypatch.setattr(front._batcher, "_max_waiting", 0)
    monkeypatch.setattr(front._queue, "_wait_s", 0.0)

    fast, flask = (desk.submit(create(), query=query) for query in ("", FLASK))

    assert (fast.status_code, fast.json["code"]) == (429, "too_many_requests")
    assert {**fast.json, "request_id": ""} == {**flask.json, "request_id": ""}
    assert sorted(fast.headers.keys()) == sorted(flask.headers.keys())


@pytest.mark.parametrize(("size", "reader"), [(4_000, "event loop"), (5_000, "web")])
def test_the_event_loop_reads_small_bodies_only(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, size: int, reader: str
) -> None:
    loads, readers = strict_json.loads, list[str]()

    def noted(body: bytes) -> Any:
        readers.append(threading.current_thread().name)
        return loads(body)

    monkeypatch.setattr(strict_json, "loads", noted)
    body = json.dumps(create()).encode().ljust(size)

    answer = desk.client.post(desk.path, data=body, content_type="application/json", headers=desk.headers)

    assert answer.status_code == 201 and readers
    assert all(name.startswith(reader) for name in readers), readers


def test_a_key_that_is_remembered_as_another_organizations_is_looked_up_again(
    desk: Desk, new_desk: Callable[..., Desk]
) -> None:
    other = new_desk()
    remembered = desk.app.extensions["callers"]._verified_callers
    introduce(desk.app, desk.headers["x-api-key"])
    own = dict(remembered.items())

    def remember_wrongly() -> None:
        for digest, caller in own.items():
            if caller.tenant == str(desk.organization.id):
                remembered.put(digest, caller._replace(tenant=str(other.organization.id)))

    remember_wrongly()
    created = desk.submit(create())
    remember_wrongly()
    theirs = desk.client.post(other.path, json=create(), headers=desk.headers)
    remember_wrongly()
    together = send_at_once(
        desk.app,
        [
            EnvironBuilder(path, method="POST", json=create(), headers=headers)
            for path, headers in ((other.path, desk.headers), (other.path, other.headers), (desk.path, desk.headers))
        ],
    )

    assert (created.status_code, theirs.status_code) == (201, 404)
    assert [answer.status_code for answer in together] == [404, 201, 201]
    assert len(desk.rows("action")) == 2 and len(other.rows("action")) == 1


def test_the_fast_path_and_flask_accept_alike(desk: Desk) -> None:
    fast, flask = both(desk, create())
    again = both(desk, cancel(fast.json["intent_id"]))
    repeated = both(desk, cancel(fast.json["intent_id"]))

    for first, second, status in ((fast, flask, 201), (again[0], fast, 201), (*repeated, 200)):
        assert (first.status_code, second.status_code) == (status, status)
        assert set(first.json) == set(second.json)
        assert sorted(first.headers.keys()) == sorted(second.headers.keys())
