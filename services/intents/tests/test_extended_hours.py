"""Orders for outside the regular hours, at submit."""

from typing import Any

import pytest

from tip_testing.commands import create, replace

from .conftest import Desk

LIMIT = {"quantity": "10", "limit_price": "99.5"}


def extended(value: Any = True, **spec: Any) -> Any:
    body = create(**(spec or {"Limit": LIMIT}))
    body["command"]["payload"]["extended_hours"] = value
    return body


def orders(desk: Desk) -> list[Any]:
    path = desk.path.removesuffix("/intents") + "/orders"
    listed: list[Any] = desk.client.get(path, headers=desk.headers).json["data"]
    return listed


def test_it_is_kept_and_listed(desk: Desk) -> None:
    wanted, other = desk.created(extended()), desk.created(create(Limit=LIMIT))

    listed = {order["intent_id"]: order["extended_hours"] for order in orders(desk)}
    assert listed == {wanted["intent_id"]: True, other["intent_id"]: False}
    assert wanted["command"]["payload"]["extended_hours"] is True


@pytest.mark.parametrize(
    "spec",
    [
        {"Limit": {**LIMIT, "time_in_force": "GTC"}},
        {"Market": {"quantity": "1"}},
        {"Stop": {"quantity": "1", "stop_price": "1"}},
        {"TrailingStop": {"quantity": "1", "trail_amount": "1"}},
    ],
    ids=str,
)
def test_what_the_broker_does_not_trade_then_is_refused(desk: Desk, spec: dict[str, Any]) -> None:
    answer = desk.submit(extended(**spec))

    assert (answer.status_code, answer.json["code"]) == (422, "broker_cannot")
    [error] = answer.json["errors"]
    assert error["pointer"] == "/command/payload/extended_hours" and "only Limit (DAY)" in error["message"]


def test_a_broker_without_extended_hours_refuses_them(desk: Desk) -> None:
    desk.execute("UPDATE accounts.account SET broker = 'fix' WHERE id = :account_id")

    answer = desk.submit(extended())

    assert (answer.status_code, answer.json["errors"][0]["pointer"]) == (422, "/command/payload/extended_hours")


@pytest.mark.parametrize("value", ["true", 1, None])
def test_it_is_true_or_false(desk: Desk, value: Any) -> None:
    assert desk.submit(extended(value)).json["errors"][0]["pointer"] == "/command/payload/extended_hours"


def test_a_replacement_keeps_it_and_what_goes_with_it(desk: Desk) -> None:
    made = desk.created(extended())

    longer = desk.submit(replace(made["intent_id"], Limit={**LIMIT, "time_in_force": "GTC"}))
    cheaper = desk.submit(replace(made["intent_id"], Limit={**LIMIT, "limit_price": "98"}))

    assert (longer.status_code, longer.json["code"]) == (422, "broker_cannot")
    assert longer.json["errors"][0]["pointer"] == "/command/payload/spec/Limit/time_in_force"
    assert cheaper.status_code == 201
    [order] = orders(desk)
    assert order["extended_hours"] is True
