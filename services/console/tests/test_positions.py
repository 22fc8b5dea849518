"""Positions and balances: what the API says, with the age of each figure."""

from datetime import UTC, datetime, timedelta

import pytest
from people import hidden

from console.routes import filters, holdings
from tip_testing.waiting import eventually


@pytest.fixture(scope="module")
def account(stack):
    """The paper account, which has bought something."""
    spec = {"Market": {"quantity": "2"}}
    command = {"type": "CREATE", "payload": {"symbol": "GOOG", "order_side": "BUY", "spec": spec}}
    stack.call("POST", f"/v1/accounts/{stack.account()}/intents", {"command": command}, key=stack.key())
    return f"/console/accounts/{stack.account()}"


def test_what_is_held_is_shown_with_its_age_and_source(stack, signed_in, account):
    reader = signed_in("reader")
    eventually(lambda: ">GOOG</a>" in reader.get(f"{account}/positions").text)
    page = reader.get(f"{account}/positions").text
    [held] = [one for one in stack.call("GET", f"/v1{account[8:]}/positions")["data"] if one["symbol"] == "GOOG"]

    assert f">{filters.number(held['quantity'])}</td>" in page
    assert " ago</time>, broker" in page or " ago</time>, fill" in page
    assert "Buying power" in page and "USD" in page


def test_an_account_without_positions_says_what_to_do(stack, signed_in):
    page = signed_in("stranger").get(f"/console/accounts/{stack.account('globex')}/positions")

    assert page.status_code == 200 and "Nothing is held" in page.text and "/ticket" in page.text


def test_an_account_is_read_at_its_broker_on_request(stack, signed_in, account):
    visitor = signed_in("admin")
    before = stack.call("GET", f"/v1{account[8:]}/balances")["as_of"]
    token = hidden(visitor.get("/console").text)["csrf"]
    assert visitor.post(f"{account}/refresh", {}).status_code == 403

    assert visitor.post(f"{account}/refresh", {"csrf": token}).status_code == 303
    eventually(lambda: stack.call("GET", f"/v1{account[8:]}/balances")["as_of"] != before)


def test_a_figure_of_which_no_age_is_known_or_that_is_old_is_greyed():
    now = datetime.now(UTC)

    assert holdings._is_stale(None)
    assert holdings._is_stale((now - timedelta(minutes=6)).isoformat())
    assert not holdings._is_stale((now - timedelta(minutes=4)).isoformat())


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "-"), ("1234567.5", "1 234 567.50"), ("-310", "-310.00"), ("0.00012", "0.00012"), ("1E+3", "1 000.00")],
)
def test_prices_have_two_decimals_and_thousands_apart(value, shown):
    plain = str.maketrans({"\N{EN DASH}": "-", "\N{MINUS SIGN}": "-", "\N{THIN SPACE}": " "})

    assert filters.price(value).translate(plain) == shown
