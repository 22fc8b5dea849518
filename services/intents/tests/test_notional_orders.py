"""Orders for so much money at submit: what they count as, and what of them may be replaced."""

from decimal import Decimal
from typing import Any

import pytest

from tip_testing.commands import create, replace

from .conftest import Desk


def price(desk: Desk, value: str, age: int = 0) -> None:
    desk.execute(
        "INSERT INTO intents.position (account_id, symbol, quantity, last_price, updated_at, price_at, price_source) "
        "VALUES (:account_id, 'AAPL', 0, :value, now(), now() - make_interval(secs => :age), 'fill')",
        value=Decimal(value),
        age=age,
    )


def by_notional(notional: str = "900", **more: Any) -> Any:
    return create(Market={"notional": notional}, **more)


def limit(desk: Desk, **limits: Any) -> None:
    columns, marks = ", ".join(limits), ", ".join(f":{name}" for name in limits)
    desk.execute(
        f"INSERT INTO controls.account_limits (account_id, organization_id, {columns}) "
        f"VALUES (:account_id, :organization_id, {marks})",
        organization_id=desk.organization.id,
        **limits,
    )


def codes(answer: Any) -> list[str]:
    return [reason["code"] for reason in answer.json.get("reasons", ())]


@pytest.mark.parametrize("terms", [{}, {"quantity": "1", "notional": "1"}])
def test_a_market_order_has_a_quantity_or_a_notional(desk: Desk, terms: dict[str, str]) -> None:
    answer = desk.submit(create(Market=terms))

    [error] = answer.json["errors"]
    assert (answer.status_code, error["code"], error["pointer"]) == (422, "one_of", "/command/payload/spec/Market")


@pytest.mark.parametrize("age", [None, 90])
def test_an_order_by_its_notional_needs_a_price_though_there_are_no_limits(desk: Desk, age: int | None) -> None:
    if age:
        price(desk, "100", age)

    answer = desk.submit(by_notional())

    assert (answer.status_code, codes(answer)) == (422, ["REFERENCE_PRICE_UNKNOWN"])
    assert desk.rows("intent") == []


def test_it_counts_by_a_price_that_has_fallen_by_a_tenth(desk: Desk) -> None:
    price(desk, "100")

    made = desk.submit(by_notional("900"))

    assert made.status_code == 201, made.json
    assert Decimal(made.json["state"]["leaves_quantity"]) == 10
    assert made.json["spec"] == {"Market": {"notional": "900", "time_in_force": "DAY"}}
    assert [row["quantity"] for row in desk.rows("intent")] == [10]
    assert made.json["controls"]["facts"]["reference_price"]["value"] == "100"


def test_later_orders_count_what_is_open_of_it(desk: Desk) -> None:
    price(desk, "100")
    limit(desk, max_position_quantity=15)
    desk.created(by_notional("900"))

    assert codes(desk.submit(create(quantity="6"))) == ["POSITION_ABOVE_LIMIT"]
    assert codes(desk.submit(by_notional("450.01"))) == ["POSITION_ABOVE_LIMIT"]
    assert desk.submit(create(quantity="5")).status_code == 201


def test_its_notional_is_what_it_says(desk: Desk) -> None:
    price(desk, "100")
    limit(desk, max_notional=900)

    assert desk.submit(by_notional("900")).status_code == 201
    assert codes(desk.submit(by_notional("900.01"))) == ["NOTIONAL_ABOVE_LIMIT"]


def test_nobody_can_say_that_it_only_reduces(desk: Desk) -> None:
    price(desk, "100")
    desk.execute("UPDATE intents.position SET quantity = 1000 WHERE account_id = :account_id")
    limit(desk, allow_short=False)

    assert codes(desk.submit(by_notional("100", side="SELL"))) == ["SHORT_NOT_ALLOWED"]
    assert desk.submit(create(quantity="1", side="SELL")).status_code == 201


def test_it_is_not_replaced(desk: Desk) -> None:
    price(desk, "100")
    made = desk.created(by_notional())

    for terms, code in (({"notional": "950"}, "notional"), ({"quantity": "9"}, "form")):
        answer = desk.submit(replace(made["intent_id"], Market=terms))
        assert (answer.status_code, answer.json["errors"][0]["code"]) == (422, code)


def test_a_broker_without_such_orders_refuses_them(desk: Desk) -> None:
    price(desk, "100")
    desk.execute("UPDATE accounts.account SET broker = 'fix' WHERE id = :account_id")

    answer = desk.submit(by_notional())

    assert (answer.status_code, answer.json["code"]) == (422, "broker_cannot")
    assert answer.json["errors"][0]["pointer"] == "/command/payload/spec/Market/notional"
