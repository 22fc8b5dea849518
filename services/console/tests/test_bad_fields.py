"""Fields that no page of ours sends: they are refused, and change nothing."""

from uuid import uuid4

import pytest
from risk_desk import control, new_account

from console import controls
from console.api import Api, ApiProblem, with_key

DIGITS = "٣"
"""A number to Python, and no version."""


@pytest.fixture(scope="module")
def admin(signed_in):
    return signed_in("admin")


@pytest.fixture(scope="module")
def account(stack):
    account = new_account(stack, "fields")
    control(stack, account, "PUT", "/symbols/AAPL/limits", {"max_notional": "500"})
    control(stack, account, "PUT", "/limits", {"max_notional": "900"})
    return account


@pytest.fixture(scope="module")
def risk(account):
    return f"/console/accounts/{account}/risk"


@pytest.mark.parametrize("symbols", ["A" * 20_001, "AAPL\x00"])
def test_bounds_that_cannot_be_read_make_no_key_without_bounds(stack, admin, symbols):
    name = f"bound {uuid4().hex[:8]}"
    form = {"name": name, "environment": "paper", "permission": "intent:edit", "symbols": symbols}
    page = admin.submit("/console/keys/new", **form)

    assert page.status_code == 422 and "Symbols has" in page.text
    assert name not in [key["name"] for key in stack.call("GET", "/v1/api-keys?limit=99")["data"]]


def test_a_key_is_bound_to_as_many_symbols_as_the_api_takes(stack, admin):
    symbols = [f"S{number:031}" for number in range(500)]
    form = {"name": "wide", "environment": "paper", "permission": "intent:read", "symbols": ", ".join(symbols)}
    assert admin.submit("/console/keys/new", **form).status_code == 201

    [made] = [key for key in stack.call("GET", "/v1/api-keys?limit=99")["data"] if key["name"] == "wide"]
    stack.call("DELETE", f"/v1/api-keys/{made['id']}")
    assert made["bounds"]["symbols"] == symbols


@pytest.mark.parametrize("value", ["9" * 20_001, "5\x00"])
def test_a_limit_that_cannot_be_read_is_not_taken_away(stack, admin, account, risk, value):
    assert admin.submit(f"{risk}/limits", max_notional=value).status_code == 422
    assert admin.submit(f"{risk}/symbols/AAPL", step="limits", max_notional=value).status_code == 422

    assert control(stack, account, "GET", "/limits")["max_notional"] == "900"
    assert control(stack, account, "GET", "/symbols/AAPL/limits")["max_notional"] == "500"


def test_an_account_number_that_cannot_be_read_is_not_cleared(stack, admin, account):
    stack.call("PATCH", f"/v1/accounts/{account}", {"broker_account_id": "A-1"})
    form = {"name": "fields", "time_zone": "UTC", "broker_account_id": "9" * 256}
    page = admin.submit(f"/console/accounts/{account}/settings", **form)

    assert page.status_code == 422
    assert stack.call("GET", f"/v1/accounts/{account}")["broker_account_id"] == "A-1"


@pytest.mark.parametrize("version", [DIGITS, "1\n2", "x", "9" * 200])
def test_a_version_that_is_none_changes_nothing(stack, admin, account, risk, version):
    assert admin.submit(f"{risk}/limits", max_notional="1", version=version).status_code == 412
    page = admin.submit(f"/console/accounts/{account}/disable", version=version)

    assert page.status_code == 412 and 'role="alert"' in page.text
    assert control(stack, account, "GET", "/limits")["max_notional"] == "900"
    assert stack.call("GET", f"/v1/accounts/{account}")["disabled"] is False


@pytest.mark.parametrize("once", [DIGITS, "a\nb"])
def test_a_form_whose_id_is_none_places_no_order(stack, signed_in, once):
    trader, account = signed_in("trader"), f"/console/accounts/{stack.account()}"
    trader.submit(f"{account}/key", key=stack.key())
    tag = f"none-{uuid4().hex[:8]}"
    order = {"symbol": "AAPL", "order_side": "BUY", "kind": "Limit", "quantity": "1", "limit_price": "1"}
    page = trader.submit(f"{account}/ticket", step="place", time_in_force="DAY", once=once, tags=tag, **order)

    assert page.status_code == 422
    assert trader.get(f"{account}/orders?tag={tag}").text.count(" data-intent=") == 0


@pytest.mark.parametrize("stale", ["1e5000", "1e99999999", "NaN", "sNaN", "Infinity", "-1e18"])
def test_a_stale_time_that_is_none_is_refused(admin, risk, stale):
    assert admin.submit(f"{risk}/symbols/AAPL", step="window", start="09:00", stale=stale).status_code == 422


@pytest.mark.parametrize("stale", ["1e5000", "1e99999999", "NaN", "sNaN", "Infinity", "-1e18"])
def test_a_stale_time_that_no_json_should_hold_stays_text(stale):
    assert controls.set_window("A", "", "", stale).body["stale_order_millis"] == stale


def test_what_no_header_can_hold_is_refused_before_it_is_sent():
    with pytest.raises(ApiProblem) as refusal:
        with_key(Api("http://127.0.0.1:9"), DIGITS).get("/v1/auth/self")
    assert refusal.value.status == 422
