"""Submits that arrive at the same time share a read and a write, and each is answered as if it had come alone."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import psycopg2
import pytest
from flask import Flask
from werkzeug.test import EnvironBuilder, TestResponse

from chassis import keys
from chassis.db import LOCK_TIMEOUT_MS
from tip_testing.commands import cancel, create, limit, replace
from tip_testing.waiting import eventually

from .conftest import Desk
from .serving import create_app, introduce, send_at_once, send_at_once_timed
from .test_controls import disable, limits


def request(desk: Desk, body: Any, **headers: str) -> EnvironBuilder:
    named = {**desk.headers, **{name.replace("_", "-"): value for name, value in headers.items()}}
    return EnvironBuilder(urlsplit(desk.path).path, method="POST", json=body, headers=named)


def test_new_intents_on_many_accounts_cost_one_read_and_one_write(
    desk: Desk, new_desk: Callable[..., Desk], statements: list[str]
) -> None:
    desks = [desk, *(new_desk() for _ in range(9))]

    answers = send_at_once(
        desk.app, [request(owner, create(quantity=str(place))) for place, owner in enumerate(desks, 1)]
    )

    assert [answer.status_code for answer in answers] == [201] * 10
    assert [answer.json["account_id"] for answer in answers] == [str(owner.account_id) for owner in desks]
    assert [answer.json["spec"]["Market"]["quantity"] for answer in answers] == [str(n) for n in range(1, 11)]
    assert statements == ["intents_facts", "intents_create"]
    for owner, answer in zip(desks, answers, strict=True):
        assert owner.get(f"/{answer.json['intent_id']}").json == answer.json
        assert len(owner.outbox()) == 1


def test_those_on_one_account_follow_each_other_in_the_log_and_in_the_chain(desk: Desk, statements: list[str]) -> None:
    answers = send_at_once(desk.app, [request(desk, create(quantity=str(quantity))) for quantity in range(1, 11)])

    assert [answer.json["sequence"] for answer in answers] == list(range(1, 11))
    assert statements.count("intents_facts") == 1
    assert desk.get("/verify").json["valid"] is True
    assert len(desk.rows("action")) == len(desk.rows("intent")) == len(desk.outbox()) == 10


def test_each_of_a_mixed_batch_is_answered_as_if_it_had_come_alone(new_desk: Callable[..., Desk]) -> None:
    plain, refused, counted, referring, busy = (new_desk() for _ in range(5))
    disable(refused)
    limits(counted, max_orders_per_minute=1)
    intent_id = referring.created(limit())["intent_id"]
    pending = busy.created(limit())["intent_id"]
    busy.created(replace(pending))
    cases = {
        "plain": (request(plain, create()), 201, None),
        "refused by a control": (request(refused, create()), 422, "control_rejected"),
        "a cancel": (request(referring, cancel(intent_id)), 201, None),
        "a busy intent": (request(busy, replace(pending)), 409, "intent_busy"),
        "a stranger": (request(plain, create(), x_api_key=keys.generate("paper")), 401, "unauthenticated"),
        "invalid": (request(plain, create(quantity="0")), 422, "invalid"),
        "another's account": (
            request(plain, create(), x_api_key=refused.organization.api_keys["paper"]),
            404,
            "not_found",
        ),
    }

    at_the_limit = [request(counted, create()) for _ in range(2)]
    *answers, first, second = send_at_once(plain.app, [*(built for built, _, _ in cases.values()), *at_the_limit])

    assert sorted([first.status_code, second.status_code]) == [201, 422]
    found = {name: (answer.status_code, answer.json.get("code")) for name, answer in zip(cases, answers, strict=True)}
    assert found == {name: (status, code) for name, (_, status, code) in cases.items()}
    assert len(plain.rows("action")) == len(counted.rows("action")) == 1
    assert refused.rows("action") == [] and len(refused.rows("refusal")) == 1


def test_one_key_twice_at_once_is_done_once_and_answered_twice_alike(desk: Desk) -> None:
    desk.created(create())

    answers = send_at_once(desk.app, [request(desk, create(quantity="7"), Idempotency_Key="k") for _ in range(4)])

    assert [answer.status_code for answer in answers] == [201] * 4
    assert len({answer.get_data() for answer in answers}) == 1
    assert sorted(answer.headers.get("Idempotent-Replayed", "") for answer in answers) == ["", "true", "true", "true"]
    assert len(desk.rows("action")) == 2


def test_keys_on_one_account_are_each_done_once_whatever_else_is_in_the_batch(desk: Desk) -> None:
    desk.submit(create(quantity="1"), Idempotency_Key="used")
    keys_sent = ["a", None, "b", "a", "used", "c", None]

    answers = send_at_once(
        desk.app,
        [request(desk, create(quantity="1"), **({"Idempotency_Key": key} if key else {})) for key in keys_sent],
    )

    assert [answer.status_code for answer in answers] == [201] * 7
    assert [answer.headers.get("Idempotent-Replayed") for answer in answers] == [
        None, None, None, "true", "true", None, None,
    ]  # fmt: skip
    assert len(desk.rows("action")) == 6 and len(desk.rows("idempotency")) == 4
    assert desk.get("/verify").json["valid"] is True


def test_batches_with_the_same_keys_in_two_workers_do_not_wait_for_each_other_in_a_circle(
    desk: Desk, new_desk: Callable[..., Desk]
) -> None:
    other = create_app(desk.platform.web_environment("intents"))
    introduce(other, desk.headers["x-api-key"])
    keys_sent = [f"k{number}" for number in range(12)]

    def send(app: Flask, order: list[str]) -> list[TestResponse]:
        return send_at_once(app, [request(desk, create(quantity="1"), Idempotency_Key=key) for key in order])

    with ThreadPoolExecutor(2) as pool:
        here = pool.submit(send, desk.app, keys_sent)
        there = pool.submit(send, other, keys_sent[::-1])
        first, second = here.result(), there.result()[::-1]

    assert {answer.status_code for answer in (*first, *second)} == {201}
    assert [answer.json for answer in first] == [answer.json for answer in second]
    assert len(desk.rows("action")) == 12


@contextmanager
def held(*desks: Desk) -> Iterator[None]:
    """The accounts are being written to by somebody who takes long over it."""
    connection = psycopg2.connect(desks[0].platform.admin_url)
    try:
        connection.cursor().execute(
            "SELECT 1 FROM intents.account_head WHERE account_id = ANY(%s::uuid[]) FOR UPDATE",
            ([str(desk.account_id) for desk in desks],),
        )
        yield
    finally:
        connection.close()


def test_an_account_that_is_held_up_holds_up_no_other(new_desk: Callable[..., Desk]) -> None:
    stuck, free = new_desk(), new_desk()
    stuck.created(create())

    with held(stuck):
        answers = send_at_once(stuck.app, [request(stuck, create()), request(free, create())])

    assert [(answer.status_code, answer.json.get("code")) for answer in answers] == [
        (503, "unavailable"),
        (201, None),
    ]
    assert len(stuck.rows("action")) == len(free.rows("action")) == 1


def test_a_tenants_locked_accounts_delay_nobody_elses_submit_by_the_wait_for_a_lock(
    new_desk: Callable[..., Desk],
) -> None:
    first, *others = (new_desk() for _ in range(4))
    locked = [first, *(new_desk(organization=first.organization) for _ in range(2))]
    for desk in (*locked, *others[:2]):  # of the last one it is the first action
        desk.created(create())

    with held(*locked):
        sent = [request(desk, create()) for desk in (*locked, *others)]
        answers = send_at_once_timed(first.app, sent)

    assert [answer.status_code for answer, _seconds in answers] == [503] * 3 + [201] * 3
    assert max(seconds for _answer, seconds in answers[3:]) < LOCK_TIMEOUT_MS / 1000
    assert [len(desk.rows("action")) for desk in (*locked, *others)] == [1, 1, 1, 2, 2, 1]


def test_a_locked_account_delays_the_next_batch_by_less_than_the_wait_for_a_lock(
    new_desk: Callable[..., Desk], monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck, free = new_desk(), new_desk()
    stuck.created(create())
    batcher = stuck.app.extensions["front"]._batcher
    monkeypatch.setattr(batcher, "_max_in_flight", 1)

    with held(stuck), ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(stuck.submit, create())
        eventually(lambda: batcher._in_flight, every=0.001)
        [(answer, seconds)] = send_at_once_timed(free.app, [request(free, create())])
        assert not waiting.done()

    assert answer.status_code == 201
    assert seconds < LOCK_TIMEOUT_MS / 1000


def test_a_submit_that_left_the_others_for_a_locked_account_is_done_when_it_is_free(
    new_desk: Callable[..., Desk],
) -> None:
    stuck, free = new_desk(), new_desk()
    stuck.created(create())

    with ThreadPoolExecutor(1) as pool:
        with held(stuck):
            sent = [request(stuck, create(), Idempotency_Key="k"), request(free, create())]
            waiting = pool.submit(send_at_once, stuck.app, sent)
            eventually(lambda: free.rows("action"))
            assert not waiting.done()
        answers = waiting.result()

    assert [answer.status_code for answer in answers] == [201, 201]
    assert len(stuck.rows("action")) == 2 and stuck.get("/verify").json["valid"] is True
