"""What requests cost of the caller's quota: as much as they are work."""

from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from chassis import keys
from tip_testing.commands import create
from tip_testing.platform_plugin import Platform

from .conftest import Desk
from .serving import create_app

QUOTA = 90  # below a hundred, units are reserved one by one, so that the header is exact


@pytest.fixture(scope="module")
def counting(platform: Platform) -> Flask:
    return create_app(platform.web_environment("intents", RATE_LIMIT_PER_MINUTE=str(QUOTA)))


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chassis.ratelimit._PATIENCE_S", 60.0)


@pytest.fixture
def payer(new_desk: Callable[..., Desk], counting: Flask) -> Desk:
    """A desk whose keys have used nothing yet."""
    desk = new_desk()
    desk.app = counting
    return desk


def units(answer: TestResponse) -> int:
    """What is used of the quota after this answer."""
    return QUOTA - int(answer.headers["RateLimit"].split("r=")[1].split(";")[0])


def batch(client: FlaskClient, desk: Desk, count: int) -> TestResponse:
    body = {"commands": [create()["command"]] * count}
    return client.post(f"{desk.path}/batch", json=body, headers=desk.headers)


def test_a_batch_costs_as_much_as_its_commands_sent_one_by_one(payer: Desk) -> None:
    answer = batch(payer.client, payer, 40)

    assert (answer.status_code, units(answer)) == (200, 40)
    assert units(payer.submit(create())) == 41


def test_a_batch_beyond_the_quota_is_refused_before_any_of_it_is_done(payer: Desk) -> None:
    assert [batch(payer.client, payer, 40).status_code for _ in range(2)] == [200, 200]
    refused = batch(payer.client, payer, 40)

    assert (refused.status_code, refused.json["code"]) == (429, "rate_limited")
    assert int(refused.headers["Retry-After"]) > 0
    assert len(payer.rows("action")) == 80


@pytest.mark.parametrize(("query", "cost"), [("", 1), ("?limit=99", 1), ("?limit=100", 2), ("?limit=500", 6)])
def test_a_list_costs_by_the_rows_that_are_requested(payer: Desk, query: str, cost: int) -> None:
    assert units(payer.get(query)) == cost


def test_statistics_cost_more_than_a_read_and_a_verification_by_what_it_reads(payer: Desk) -> None:
    assert units(payer.get("/stats")) == 5
    assert units(payer.get("/verify")) == 6
    payer.execute(
        "INSERT INTO intents.account_head (account_id, last_sequence, last_hash, previous_hash) "
        "VALUES (:account_id, 1000, '', '')"
    )
    assert units(payer.get("/verify")) == 6 + 11


def test_positions_cost_by_how_many_are_held(payer: Desk) -> None:
    path = f"/v1/accounts/{payer.account_id}/positions"
    assert units(payer.client.get(path, headers=payer.headers)) == 1
    payer.execute(
        "INSERT INTO intents.position (account_id, symbol, quantity, updated_at) "
        "SELECT :account_id, 'S' || number, 1, now() FROM generate_series(1, 1000) number"
    )

    answer = payer.client.get(path, headers=payer.headers)

    assert (units(answer), len(answer.json["data"])) == (1 + 11, 1000)


def test_positions_beyond_the_quota_are_refused(payer: Desk) -> None:
    payer.execute(
        "INSERT INTO intents.position (account_id, symbol, quantity, updated_at) "
        "SELECT :account_id, 'S' || number, 1, now() FROM generate_series(1, 5000) number"
    )
    answers = [payer.client.get(f"/v1/accounts/{payer.account_id}/positions", headers=payer.headers) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [200, 429]
    assert answers[1].json["code"] == "rate_limited"


def test_requests_over_the_rate_limit_are_refused_with_a_time_to_wait(desk: Desk) -> None:
    client = create_app(desk.platform.web_environment("intents", RATE_LIMIT_PER_MINUTE="3")).test_client()

    answers = [client.post(desk.path, json=create(), headers=desk.headers) for _ in range(5)]

    assert [answer.status_code for answer in answers] == [201, 201, 201, 429, 429]
    assert int(answers[-1].headers["Retry-After"]) > 0
    assert len(desk.rows("action")) == 3


def test_an_unknown_key_is_looked_up_and_counted_once(desk: Desk) -> None:
    app = create_app(desk.platform.web_environment("intents", RATE_LIMIT_PER_MINUTE="3"))
    headers = {"x-api-key": keys.generate("paper")}
    deps = app.extensions["deps"]
    reads: list[str] = []
    execute = deps.connections._execute

    def counted(statement: Any, *arguments: Any) -> Any:
        reads.append(statement.name)
        return execute(statement, *arguments)

    deps.connections._execute = counted
    statuses = [
        app.test_client()
        .post(desk.path, json=create(), headers=headers, environ_base={"REMOTE_ADDR": f"10.0.0.{place}"})
        .status_code
        for place in range(4)
    ]

    assert statuses == [401, 401, 401, 429]
    assert reads == ["intents_facts"] * 4
