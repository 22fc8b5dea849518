"""The symbols that an API key is bounded to: refused like a control, on every way to submit."""

from typing import Any
from uuid import UUID

import pytest
from werkzeug.test import TestResponse

from identity.model import Bounds
from tip_testing.commands import cancel, create, limit, replace
from tip_testing.identity_fixtures import IdentityFixtures

from .conftest import Desk
from .serving import introduce

REASON = {
    "code": "KEY_SYMBOL_NOT_ALLOWED",
    "control": "api_key.symbols",
    "version": 1,
    "message": "MSFT is not among the symbols of the API key.",
}


@pytest.fixture
def bounded(desk: Desk, identity: IdentityFixtures) -> dict[str, str]:
    key = identity.key(desk.organization.id, "paper", bounds=Bounds(symbols=("AAPL", "TSLA")))
    introduce(desk.app, key)
    return {"x-api-key": key}


def send(desk: Desk, headers: dict[str, str], body: Any, query: str = "") -> TestResponse:
    return desk.client.post(desk.path + query, json=body, headers=headers)


@pytest.mark.parametrize("query", ["", "?dry_run=false", "?dry_run=true"])
def test_a_symbol_outside_the_bounds_is_refused_with_the_reason(
    desk: Desk, bounded: dict[str, str], query: str
) -> None:
    refused = send(desk, bounded, create("MSFT"), query)

    assert (refused.status_code, refused.json["code"], refused.json["reasons"]) == (422, "control_rejected", [REASON])
    assert desk.rows("action") == []
    assert send(desk, bounded, create("AAPL"), query).status_code == (200 if query == "?dry_run=true" else 201)
    assert desk.submit(create("MSFT")).status_code == 201, "other keys are not bounded"


def test_the_refusal_is_in_the_list_and_the_bounds_in_the_record_of_what_passed(
    desk: Desk, bounded: dict[str, str]
) -> None:
    send(desk, bounded, create("MSFT"))
    passed = send(desk, bounded, create("AAPL")).json

    listed = desk.client.get(f"/v1/accounts/{desk.account_id}/refusals?code=KEY_SYMBOL_NOT_ALLOWED", headers=bounded)
    assert [(found["symbol"], found["reasons"]) for found in listed.json["data"]] == [("MSFT", [REASON])]
    assert passed["controls"]["checks"][-1] == {"control": "api_key.symbols", "version": 1, "outcome": "PASSED"}
    assert passed["controls"]["facts"]["key_bounds"]["symbols"] == ["AAPL", "TSLA"]


def test_each_command_of_a_batch_is_bounded_and_an_atomic_one_is_refused_whole(
    desk: Desk, bounded: dict[str, str]
) -> None:
    commands = [create("AAPL")["command"], create("MSFT")["command"]]

    each = desk.client.post(f"{desk.path}/batch", json={"commands": commands}, headers=bounded)
    atomic = desk.client.post(f"{desk.path}/batch", json={"commands": commands, "atomic": True}, headers=bounded)

    assert [result["status"] for result in each.json["results"]] == [201, 422]
    assert atomic.status_code == 422
    assert len(desk.rows("action")) == 1


def test_an_order_of_another_key_outside_the_bounds_is_canceled_and_not_replaced(
    desk: Desk, bounded: dict[str, str]
) -> None:
    intent_id = desk.created(limit("MSFT"))["intent_id"]

    assert send(desk, bounded, replace(intent_id)).json["reasons"] == [REASON]
    assert send(desk, bounded, cancel(intent_id)).status_code == 201


@pytest.mark.parametrize(("body", "status"), [({"symbol": "AAPL"}, 202), ({"symbol": "MSFT"}, 422), ({}, 422)])
def test_positions_are_closed_only_within_the_bounds(
    desk: Desk, bounded: dict[str, str], body: dict[str, str], status: int
) -> None:
    path = f"/v1/accounts/{UUID(str(desk.account_id))}/positions/close"

    closed = desk.client.post(path, json=body, headers=bounded)

    assert closed.status_code == status
    if status == 422:
        assert closed.json["reasons"][0]["code"] == "KEY_SYMBOL_NOT_ALLOWED"
