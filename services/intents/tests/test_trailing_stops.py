"""Trailing stops at submit: what is one, what it counts as, and what of it may be replaced."""

import pytest

from tip_testing.commands import create, replace

from .conftest import Desk


@pytest.mark.parametrize(
    ("terms", "pointer", "code"),
    [
        ({}, "", "one_of"),
        ({"trail_amount": "1", "trail_percent": "1"}, "", "one_of"),
        ({"trail_percent": "100"}, "/trail_percent", "range"),
        ({"trail_amount": "0"}, "/trail_amount", "range"),
        ({"trail_amount": "1", "stop_price": "1"}, "/stop_price", None),
        ({"trail_amount": "1", "time_in_force": "IOC"}, "/time_in_force", "choice"),
    ],
)
def test_a_trailing_stop_has_one_trail_and_no_price(desk: Desk, terms: dict[str, str], pointer: str, code: str) -> None:
    answer = desk.submit(create(TrailingStop={"quantity": "10", **terms}))

    [error] = answer.json["errors"]
    assert (answer.status_code, error["pointer"]) == (422, f"/command/payload/spec/TrailingStop{pointer}")
    assert code is None or error["code"] == code


def test_a_trail_is_replaced_by_one_of_its_own_form(desk: Desk) -> None:
    made = desk.submit(create(TrailingStop={"quantity": "10", "trail_amount": "5"})).json

    other = desk.submit(replace(made["intent_id"], TrailingStop={"quantity": "10", "trail_percent": "5"}))
    same = desk.submit(replace(made["intent_id"], TrailingStop={"quantity": "12", "trail_amount": "4.5"}))

    [error] = other.json["errors"]
    assert (other.status_code, error["pointer"], error["code"]) == (422, "/command/payload/spec/TrailingStop", "form")
    assert "must have trail_amount" in error["message"]
    assert (same.status_code, same.json["spec"]["TrailingStop"]["trail_amount"]) == (201, "4.5")
