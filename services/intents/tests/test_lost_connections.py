"""The connection to the database is lost while something is being written: nobody is told what is not known."""

from collections.abc import Callable, Iterator
from urllib.parse import urlsplit, urlunsplit

import pytest
from werkzeug.test import TestResponse

from tip_testing.commands import cancel, create, limit
from tip_testing.cuttable_proxy import CuttableProxy

from .conftest import Desk
from .serving import create_app, send_together
from .test_coalesced import request
from .test_controls import limits


@pytest.fixture
def wire(desk: Desk) -> Iterator[CuttableProxy]:
    address = urlsplit(desk.platform.database_url("intents_web"))
    assert address.hostname and address.port
    wire = CuttableProxy(address.hostname, address.port)
    yield wire
    wire.close()


@pytest.fixture
def wired(desk: Desk, wire: CuttableProxy) -> Iterator[Desk]:
    """The desk, with a service that reaches its database over the wire."""
    address = urlsplit(desk.platform.database_url("intents_web"))
    moved = address._replace(netloc=f"{address.username}:{address.password}@127.0.0.1:{wire.port}")
    app = create_app({**desk.platform.web_environment("intents"), "DATABASE_URL": urlunsplit(moved)})
    yield Desk(app, desk.platform, desk.organization, desk.account_id, desk.admin)
    deps = app.extensions["deps"]
    deps.connections._drop()
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
def test_what_was_done_although_the_answer_was_lost_is_told_as_done(
    wired: Desk, wire: CuttableProxy, write: str
) -> None:
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
def test_what_nobody_knows_is_told_as_unknown(wired: Desk, wire: CuttableProxy, write: str, for_good: bool) -> None:
    words, send, _, _ = WRITES[write]
    wired.created(limit())
    wire.cut(words, deliver=False, for_good=for_good)

    answer = send(wired)

    assert (answer.status_code, answer.json["code"]) == (503, "outcome_unknown")
    assert "nothing was written" not in answer.json["detail"] and "not known" in answer.json["detail"]
    assert "Retry-After" in answer.headers
    assert len(wired.rows("action")) == 1


LOTS: dict[str, tuple[bytes, int]] = {
    # what is sent, and on how many accounts the three are
    "on one account": (b"COMMIT", 1),
    "on an account each": (b"EXECUTE intents_create", 3),
}


@pytest.mark.parametrize("lot", LOTS)
@pytest.mark.parametrize("deliver", [True, False])
def test_each_of_a_lot_is_told_what_is_known_of_it(
    wired: Desk, wire: CuttableProxy, new_desk: Callable[..., Desk], lot: str, deliver: bool
) -> None:
    words, accounts = LOTS[lot]
    desks = [wired, *(new_desk(organization=wired.organization) for _ in range(accounts - 1))]

    def send() -> list[TestResponse]:
        lot = [request(desks[place % accounts], create(), Idempotency_Key=f"k{place}") for place in range(3)]
        return send_together(wired.app, lot)

    wired.created(limit())
    wire.cut(words, deliver=deliver)

    answers = send()
    again = send()

    assert wire.words is None
    assert [answer.status_code for answer in answers] == ([201] if deliver else [503]) * 3
    assert deliver or {answer.json["code"] for answer in answers} == {"outcome_unknown"}
    assert [answer.status_code for answer in again] == [201] * 3
    assert [answer.headers.get("Idempotent-Replayed") for answer in again] == (["true"] if deliver else [None]) * 3
    assert not deliver or [one.json for one in again] == [one.json for one in answers]
    assert sum(len(desk.rows("action")) for desk in desks) == 1 + 3
    assert all(desk.get("/verify").json["valid"] for desk in desks)


def test_what_was_lost_before_its_commit_was_not_written_and_is_told_so(wired: Desk, wire: CuttableProxy) -> None:
    wired.created(limit())
    wire.cut(b"EXECUTE intents_amend", deliver=True)

    answer = cancelled(wired)

    assert (answer.status_code, answer.json["code"]) == (503, "unavailable")
    assert len(wired.rows("action")) == 1


def test_a_database_that_cannot_be_reached_is_an_outage_and_no_fault_of_ours(wired: Desk, wire: CuttableProxy) -> None:
    wire.refuse()

    answers = [created(wired), wired.submit(create(), query="?dry_run=false"), batched(wired), wired.get()]

    assert [(answer.status_code, answer.json["code"]) for answer in answers] == [(503, "unavailable")] * 4
