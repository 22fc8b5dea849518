"""The connection to the database is lost while something is being written: no answer claims what is not known."""

from collections.abc import Callable, Iterator
from urllib.parse import urlsplit, urlunsplit

import pytest
from werkzeug.test import TestResponse

from tip_testing.commands import cancel, create, limit
from tip_testing.cuttable_proxy import CuttableProxy

from .conftest import Desk
from .serving import create_app, send_at_once
from .test_coalesced import request
from .test_controls import limits


@pytest.fixture
def proxy(desk: Desk) -> Iterator[CuttableProxy]:
    address = urlsplit(desk.platform.database_url("intents_web"))
    assert address.hostname and address.port
    proxy = CuttableProxy(address.hostname, address.port)
    yield proxy
    proxy.close()


@pytest.fixture
def proxied(desk: Desk, proxy: CuttableProxy) -> Iterator[Desk]:
    """The desk, with a service that reaches its database through the proxy."""
    address = urlsplit(desk.platform.database_url("intents_web"))
    moved = address._replace(netloc=f"{address.username}:{address.password}@127.0.0.1:{proxy.port}")
    app = create_app({**desk.platform.web_environment("intents"), "DATABASE_URL": urlunsplit(moved)})
    yield Desk(app, desk.platform, desk.organization, desk.account_id, desk.admin)
    deps = app.extensions["deps"]
    with deps.connections._session():
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
    "a CREATE under limits": (b"EXECUTE intents_create", counted, 201, 1),
    "an atomic batch": (b"COMMIT", batched, 200, 2),
}


@pytest.mark.parametrize("write", WRITES)
def test_what_was_done_although_the_answer_was_lost_is_answered_as_done(
    proxied: Desk, proxy: CuttableProxy, write: str
) -> None:
    words, send, status, actions = WRITES[write]
    proxied.created(limit())
    proxy.cut(words, deliver=True)

    answer = send(proxied)

    assert answer.status_code == status, answer.json
    assert proxy.words is None
    assert len(proxied.rows("action")) == 1 + actions
    shown = answer.json["results"][-1]["action"] if "results" in answer.json else answer.json
    assert proxied.get(f"/{shown['intent_id']}").json == shown


@pytest.mark.parametrize("for_good", [False, True])
@pytest.mark.parametrize("write", WRITES)
def test_what_nobody_knows_is_answered_as_unknown(
    proxied: Desk, proxy: CuttableProxy, write: str, for_good: bool
) -> None:
    words, send, _, _ = WRITES[write]
    proxied.created(limit())
    proxy.cut(words, deliver=False, for_good=for_good)

    answer = send(proxied)

    assert (answer.status_code, answer.json["code"]) == (503, "outcome_unknown")
    assert "nothing was written" not in answer.json["detail"] and "not known" in answer.json["detail"]
    assert "Retry-After" in answer.headers
    assert len(proxied.rows("action")) == 1


BATCHES: dict[str, tuple[bytes, int]] = {
    # what is sent, and on how many accounts the three are
    "on one account": (b"COMMIT", 1),
    "on an account each": (b"EXECUTE intents_create", 3),
}


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("deliver", [True, False])
def test_each_of_a_batch_is_answered_by_what_is_known_of_it(
    proxied: Desk, proxy: CuttableProxy, new_desk: Callable[..., Desk], batch: str, deliver: bool
) -> None:
    words, accounts = BATCHES[batch]
    desks = [proxied, *(new_desk(organization=proxied.organization) for _ in range(accounts - 1))]

    def send() -> list[TestResponse]:
        requests = [request(desks[place % accounts], create(), Idempotency_Key=f"k{place}") for place in range(3)]
        return send_at_once(proxied.app, requests)

    proxied.created(limit())
    proxy.cut(words, deliver=deliver)

    answers = send()
    again = send()

    assert proxy.words is None
    assert [answer.status_code for answer in answers] == ([201] if deliver else [503]) * 3
    assert deliver or {answer.json["code"] for answer in answers} == {"outcome_unknown"}
    assert [answer.status_code for answer in again] == [201] * 3
    assert [answer.headers.get("Idempotent-Replayed") for answer in again] == (["true"] if deliver else [None]) * 3
    assert not deliver or [answer.json for answer in again] == [answer.json for answer in answers]
    assert sum(len(desk.rows("action")) for desk in desks) == 1 + 3
    assert all(desk.get("/verify").json["valid"] for desk in desks)


def test_what_was_lost_before_its_commit_was_not_written_and_is_answered_so(
    proxied: Desk, proxy: CuttableProxy
) -> None:
    proxied.created(limit())
    proxy.cut(b"EXECUTE intents_amend", deliver=True)

    answer = cancelled(proxied)

    assert (answer.status_code, answer.json["code"]) == (503, "unavailable")
    assert len(proxied.rows("action")) == 1


def test_a_database_that_cannot_be_reached_is_an_outage_and_no_fault_of_ours(
    proxied: Desk, proxy: CuttableProxy
) -> None:
    proxy.refuse()

    answers = [created(proxied), proxied.submit(create(), query="?dry_run=false"), batched(proxied), proxied.get()]

    assert [(answer.status_code, answer.json["code"]) for answer in answers] == [(503, "unavailable")] * 4
