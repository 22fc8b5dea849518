"""The connection to the database is lost while something is being written: nobody is told what is not known."""

from collections.abc import Callable, Iterator
from urllib.parse import urlsplit, urlunsplit

import pytest
from werkzeug.test import TestResponse

from tip_local.wire import Wire

from .conftest import Desk, cancel, create, limit
from .serving import create_app
from .test_controls import limits


@pytest.fixture
def wire(desk: Desk) -> Iterator[Wire]:
    address = urlsplit(desk.platform.database_url("intents"))
    assert address.hostname and address.port
    wire = Wire(address.hostname, address.port)
    yield wire
    wire.close()


@pytest.fixture
def wired(desk: Desk, wire: Wire) -> Iterator[Desk]:
    """The desk, with a service that reaches its database over the wire."""
    address = urlsplit(desk.platform.database_url("intents"))
    moved = address._replace(netloc=f"{address.username}:{address.password}@127.0.0.1:{wire.port}")
    app = create_app({**desk.platform.environment("intents"), "DATABASE_URL": urlunsplit(moved)})
    yield Desk(app, desk.platform, desk.organization, desk.account_id, desk.admin)
    deps = app.extensions["deps"]
    deps.direct._drop()
    deps.engine.dispose()


def created(desk: Desk) -> TestResponse:
    return desk.submit(create())


def cancelled(desk: Desk) -> TestResponse:
    [intent] = desk.rows("intent")
    return desk.submit(cancel(intent["id"]))


def counted(desk: Desk) -> TestResponse:
    limits(desk, max_orders_per_minute=100)
    return desk.submit(create())


def batched(desk: Desk) -> TestResponse:
    body = {"commands": [create()["command"], create()["command"]], "atomic": True}
    return desk.client.post(f"{desk.path}/batch", json=body, headers=desk.headers)


WRITES: dict[str, tuple[bytes, Callable[[Desk], TestResponse], int, int]] = {
    # what is sent, by whom, the status when it was done, how many actions that makes
    "a CREATE": (b"EXECUTE intents_create", created, 201, 1),
    "a CANCEL": (b"COMMIT", cancelled, 201, 1),
    "a CREATE under limits": (b"COMMIT", counted, 201, 1),
    "an atomic batch": (b"COMMIT", batched, 200, 2),
}


@pytest.mark.parametrize("write", WRITES)
def test_what_was_done_although_the_answer_was_lost_is_told_as_done(wired: Desk, wire: Wire, write: str) -> None:
    words, send, status, actions = WRITES[write]
    wired.created(limit())
    wire.cut(words, deliver=True)

    answer = send(wired)

    assert answer.status_code == status, answer.json
    assert wire.words is None
    assert len(wired.rows("action")) == 1 + actions
    told = answer.json["results"][-1]["action"] if "results" in answer.json else answer.json
    assert wired.get(f"/{told['intent_id']}").json == told


@pytest.mark.parametrize("for_good", [False, True])
@pytest.mark.parametrize("write", WRITES)
def test_what_nobody_knows_is_told_as_unknown(wired: Desk, wire: Wire, write: str, for_good: bool) -> None:
    words, send, _, _ = WRITES[write]
    wired.created(limit())
    wire.cut(words, deliver=False, for_good=for_good)

    answer = send(wired)

    assert (answer.status_code, answer.json["code"]) == (503, "outcome_unknown")
    assert "nothing was written" not in answer.json["detail"] and "not known" in answer.json["detail"]
    assert "Retry-After" in answer.headers
    assert len(wired.rows("action")) == 1


def test_what_was_lost_before_its_commit_was_not_written_and_is_told_so(wired: Desk, wire: Wire) -> None:
    wired.created(limit())
    wire.cut(b"EXECUTE intents_amend", deliver=True)

    answer = cancelled(wired)

    assert (answer.status_code, answer.json["code"]) == (503, "unavailable")
    assert len(wired.rows("action")) == 1


def test_a_database_that_cannot_be_reached_is_an_outage_and_no_fault_of_ours(wired: Desk, wire: Wire) -> None:
    wire.refuse()

    answers = [created(wired), wired.submit(create(), query="?dry_run=false"), batched(wired), wired.get()]

    assert [(answer.status_code, answer.json["code"]) for answer in answers] == [(503, "unavailable")] * 4
