"""The express lane and the ordinary one: whatever becomes of a request, both answer it alike."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg2
import pytest
from flask import Flask
from werkzeug.test import TestResponse

from chassis import keys, strict_json

from .conftest import Desk, cancel, create, limit, replace
from .serving import create_app, introduce
from .test_controls import disable

UNKNOWN = "8f6a4a3e-0000-4000-8000-000000000000"
ORDINARY = "?dry_run=false"


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
    return [client.post((path or desk.path) + query, **sent, headers=named) for query in ("", ORDINARY)]


def ended(desk: Desk) -> str:
    intent_id = str(desk.created(limit())["intent_id"])
    desk.execute("UPDATE intents.intent SET status = 'CANCELED' WHERE account_id = :account_id")
    return intent_id


def busy(desk: Desk) -> str:
    intent_id = str(desk.created(limit())["intent_id"])
    desk.created(replace(intent_id))
    return intent_id


def reused(desk: Desk) -> list[TestResponse]:
    desk.submit(create("1"), Idempotency_Key="k")
    return both(desk, create("2"), Idempotency_Key="k")


def refused_by_control(desk: Desk) -> list[TestResponse]:
    disable(desk)
    return both(desk, create())


def in_flight(desk: Desk) -> list[TestResponse]:
    row = "(%(account_id)s, 'k', 'x', gen_random_uuid(), gen_random_uuid(), '{}', now())"
    with locked(desk, f"INSERT INTO intents.idempotency VALUES {row}"):
        return both(desk, create(), Idempotency_Key="k")


def overloaded(desk: Desk) -> list[TestResponse]:
    desk.created(create())
    with locked(desk, "SELECT 1 FROM intents.account_head WHERE account_id = %(account_id)s FOR UPDATE"):
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


KINDS: dict[str, tuple[int, str, Callable[[Desk], list[TestResponse]]]] = {
    "malformed": (400, "malformed_json", lambda desk: both(desk, b"{")),
    "bad key": (400, "bad_idempotency_key", lambda desk: both(desk, create(), Idempotency_Key="k" * 256)),
    "stranger": (401, "unauthenticated", lambda desk: both(desk, create(), x_api_key=keys.generate("paper"))),
    "no key at all": (401, "unauthenticated", lambda desk: both(desk, create(), x_api_key="x")),
    "read-only key": (
        403,
        "forbidden",
        lambda desk: both(desk, create(), x_api_key=desk.organization.api_keys["paper_read_only"]),
    ),
    "other environment": (
        403,
        "forbidden",
        lambda desk: both(desk, create(), x_api_key=desk.organization.api_keys["live"]),
    ),
    "unknown account": (404, "not_found", lambda desk: both(desk, create(), path=f"/v1/accounts/{UNKNOWN}/intents")),
    "unknown intent": (404, "not_found", lambda desk: both(desk, cancel(UNKNOWN))),
    "terminal": (409, "intent_terminal", lambda desk: both(desk, cancel(ended(desk)))),
    "busy": (409, "intent_busy", lambda desk: both(desk, replace(busy(desk)))),
    "in flight": (409, "idempotent_request_in_flight", in_flight),
    "too large": (413, "body_too_large", lambda desk: both(desk, b"[" * 100_000)),
    "invalid": (422, "invalid", lambda desk: both(desk, create("0"))),
    "invalid replacement": (
        422,
        "invalid",
        lambda desk: both(desk, replace(desk.created(limit())["intent_id"], Market={"quantity": "1"})),
    ),
    "key reused": (422, "idempotency_key_reused", reused),
    "not entitled": (403, "entitlement_required", not_entitled),
    "control": (422, "control_rejected", refused_by_control),
    "too many": (429, "rate_limited", too_many),
    "overloaded": (503, "unavailable", overloaded),
}


@pytest.mark.parametrize("kind", KINDS)
def test_both_lanes_refuse_alike(new_desk: Callable[..., Desk], kind: str) -> None:
    status, code, send = KINDS[kind]

    express, ordinary = send(new_desk())

    assert (express.status_code, express.json["code"]) == (status, code)
    assert ordinary.status_code == status
    assert {**express.json, "request_id": ""} == {**ordinary.json, "request_id": ""}
    assert sorted(express.headers.keys()) == sorted(ordinary.headers.keys())
    assert "RateLimit" in express.headers


def test_both_lanes_refuse_alike_whom_they_have_no_place_for(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    front = desk.app.extensions["front"]
    monkeypatch.setattr(front._lanes, "_most_waiting", 0)
    monkeypatch.setattr(front._queue, "_wait_s", 0.0)

    express, ordinary = (desk.submit(create(), query=query) for query in ("", ORDINARY))

    assert (express.status_code, express.json["code"]) == (429, "too_many_requests")
    assert {**express.json, "request_id": ""} == {**ordinary.json, "request_id": ""}
    assert sorted(express.headers.keys()) == sorted(ordinary.headers.keys())


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


def test_both_lanes_accept_alike(desk: Desk) -> None:
    express, ordinary = both(desk, create())
    again = both(desk, cancel(express.json["intent_id"]))
    repeated = both(desk, cancel(express.json["intent_id"]))

    for one, other, status in ((express, ordinary, 201), (again[0], express, 201), (*repeated, 200)):
        assert (one.status_code, other.status_code) == (status, status)
        assert set(one.json) == set(other.json)
        assert sorted(one.headers.keys()) == sorted(other.headers.keys())
