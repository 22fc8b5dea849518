"""Beyond the specification: trading states, limits, and what a command would meet."""

import re
from decimal import Decimal
from typing import Any

import pytest

from tip_testing.commands import Body, cancel, create, limit


def codes(controls: Any, body: Body | None = None, **more: Any) -> list[str]:
    answer = controls.call("POST", "/preview", {**(body or create()), **more})
    assert answer.status_code == 200, answer.json
    assert answer.json["decision"] == ("REFUSED" if answer.json["reasons"] else "ALLOWED")
    return [reason["code"] for reason in answer.json["reasons"]]


def test_the_switch_of_an_account_is_put_read_and_removed(controls: Any) -> None:
    made = controls.call("PUT", "", {"trading_state": "REDUCING", "reason": "volatile"})

    assert (made.status_code, made.headers["ETag"]) == (201, '"1"')
    assert set(made.json) == {
        "account_id", "organization_id", "trading_state", "reason", "created_at", "updated_at", "version",
    }  # fmt: skip
    assert controls.call("GET").json == made.json
    again = controls.call("PUT", "", {"trading_state": "ACTIVE"}, If_Match='"1"')
    assert (again.status_code, again.json["reason"], again.json["version"]) == (200, None, 2)
    assert controls.call("PUT", "", {"trading_state": "ACTIVE"}, If_Match='"1"').status_code == 412
    assert controls.call("DELETE").status_code == 204
    assert controls.call("GET").json["code"] == "not_found"


def test_the_switch_of_the_organization_stops_every_account_of_it_and_no_other(setting: Any) -> None:
    mine = setting.identity.organization(entitlements=["controls_premium"])
    theirs = setting.identity.organization(entitlements=["controls_premium"])
    paper, live = (setting.controls(mine, setting.account(mine, kind)) for kind in ("paper", "live"))
    other = setting.controls(theirs, setting.account(theirs))

    made = paper.call("PUT", "/v1/controls/organization", {"trading_state": "HALTED"})

    assert (made.status_code, "account_id" in made.json) == (201, False)
    assert made.headers["Location"] == "/v1/controls/organization"
    assert [codes(caller) for caller in (paper, live, other)] == [["TRADING_HALTED"], ["TRADING_HALTED"], []]
    assert setting.events(mine.id)[0]["control"] == "organization_switch"
    assert paper.call("DELETE", "/v1/controls/organization").status_code == 204
    assert codes(live) == []


@pytest.mark.parametrize("path", ["/limits", "/symbols/AAPL/limits"])
def test_limits_are_replaced_whole_and_kept_to_the_last_digit(controls: Any, path: str) -> None:
    everything = {
        "max_quantity": "100.50",
        "max_notional": "999999999999999.999999999",
        "price_collar_bps": 250,
        "max_orders_per_minute": 10,
        "max_orders_per_day": 1000,
        "max_position_quantity": "0.5",
        "max_position_notional": "12.50",
        "max_open_orders": 7,
        "allow_short": False,
    }
    if path == "/limits":
        everything |= {"max_gross_exposure": "1000000", "max_daily_loss": "250.25"}
        everything |= {"allowed_symbols": ["AAPL", "BTC/USD"], "denied_symbols": ["TSLA"]}

    made = controls.call("PUT", path, everything)
    less = controls.call("PUT", path, {"max_quantity": "1"})

    assert made.status_code == 201
    assert {name: made.json[name] for name in everything} == everything
    assert {name: less.json[name] for name in everything} == dict.fromkeys(everything) | {"max_quantity": "1"}
    assert controls.call("GET", path).json == less.json


@pytest.mark.parametrize(
    ("path", "limits", "facts", "body", "code"),
    [
        ("/limits", {"max_quantity": "9"}, {}, create(), "QUANTITY_ABOVE_LIMIT"),
        ("/symbols/AAPL/limits", {"max_quantity": "9.99"}, {}, create(), "QUANTITY_ABOVE_LIMIT"),
        ("/limits", {"max_notional": "999"}, {"reference_price": "100"}, create(), "NOTIONAL_ABOVE_LIMIT"),
        (
            "/symbols/AAPL/limits",
            {"price_collar_bps": 100},
            {"reference_price": "100"},
            limit(quantity="1", price="101.01"),
            "PRICE_OUTSIDE_COLLAR",
        ),
        (
            "/limits",
            {"max_orders_per_minute": 5},
            {"account_orders_last_minute": 5},
            create(),
            "ORDER_RATE_ABOVE_LIMIT",
        ),
        (
            "/symbols/AAPL/limits",
            {"max_orders_per_day": 5},
            {"symbol_orders_last_day": 5},
            create(),
            "ORDER_RATE_ABOVE_LIMIT",
        ),
        ("/limits", {"max_open_orders": 2}, {"account_open_orders": 2}, create(), "OPEN_ORDERS_ABOVE_LIMIT"),
        (
            "/symbols/AAPL/limits",
            {"max_open_orders": 2},
            {"symbol_open_orders": 2},
            create(),
            "OPEN_ORDERS_ABOVE_LIMIT",
        ),
        ("/limits", {"max_position_quantity": "19"}, {"position_quantity": "10"}, create(), "POSITION_ABOVE_LIMIT"),
        (
            "/symbols/AAPL/limits",
            {"max_position_notional": "1999"},
            {"open_quantity": "10", "reference_price": "100"},
            create(),
            "POSITION_NOTIONAL_ABOVE_LIMIT",
        ),
        ("/symbols/AAPL/limits", {"allow_short": False}, {}, create(side="SELL"), "SHORT_NOT_ALLOWED"),
        (
            "/limits",
            {"max_gross_exposure": "1999"},
            {"other_exposure": "1000", "reference_price": "100"},
            create(),
            "GROSS_EXPOSURE_ABOVE_LIMIT",
        ),
        (
            "/limits",
            {"max_daily_loss": "9"},
            {"equity": "90", "day_start_equity": "100"},
            create(),
            "DAILY_LOSS_ABOVE_LIMIT",
        ),
    ],
)
def test_each_limit_refuses_by_its_code_and_only_where_it_is_set(
    controls: Any, path: str, limits: dict[str, Any], facts: dict[str, Any], body: Body, code: str
) -> None:
    assert codes(controls, body, facts=facts) == []
    controls.call("PUT", path, limits)

    assert codes(controls, body, facts=facts) == [code]
    other_symbol = {"command": {**body["command"], "payload": {**body["command"]["payload"], "symbol": "MSFT"}}}
    assert codes(controls, other_symbol, facts=facts) == ([] if "symbols" in path else [code])
    controls.call("DELETE", path)
    assert codes(controls, body, facts=facts) == []


def test_a_preview_reports_every_control_with_its_version_and_outcome(controls: Any) -> None:
    controls.symbol("PUT", "AAPL", body={"manually_disabled": False})
    controls.symbol("PUT", "AAPL", body={"manually_disabled": True, "manual_reason": "earnings"})
    controls.symbol("PATCH", "AAPL", "/time", {"trading_start": "09:30:00", "trading_end": "16:00:00"})
    controls.call("PUT", "", {"trading_state": "ACTIVE"})

    at = "2026-07-01T12:00:00Z"
    answer = controls.call("POST", "/preview", {**create(), "at": at})

    assert answer.json["at"] == "2026-07-01T12:00:00.000000Z"
    assert answer.json["account_id"] == str(controls.account_id)
    assert answer.json["checks"] == [
        {"control": "account", "version": 1, "outcome": "PASSED"},
        {"control": "account_switch", "version": 1, "outcome": "PASSED"},
        {"control": "symbol_manual", "version": 2, "outcome": "REFUSED"},
        {"control": "symbol_time", "version": 1, "outcome": "PASSED"},
    ]
    assert answer.json["reasons"] == [
        {"code": "SYMBOL_DISABLED", "control": "symbol_manual", "version": 2, "message": "AAPL is disabled: earnings"}
    ]
    assert answer.json["facts"]["position_quantity"] == "0"
    assert answer.json["facts"]["reference_price"] is None
    assert answer.json["facts"]["account_orders_last_minute"] == 0


@pytest.mark.parametrize(
    ("zone", "at", "refused"),
    [
        ("America/New_York", "2026-03-06T14:29:59Z", True),  # 09:29:59 in winter
        ("America/New_York", "2026-03-06T14:30:00Z", False),
        ("America/New_York", "2026-03-09T13:29:59Z", True),  # and 09:29:59 in summer
        ("America/New_York", "2026-03-09T13:30:00Z", False),
        ("America/New_York", "2026-11-02T13:30:00Z", True),
        ("America/New_York", "2026-11-02T14:30:00Z", False),
        ("America/New_York", "2026-11-02T16:00:00-05:00", True),
        ("Asia/Tokyo", "2026-11-02T00:30:00Z", False),
        ("Asia/Tokyo", "2026-11-02T07:00:00Z", True),
    ],
)
def test_a_preview_of_a_later_moment_reads_the_clock_on_the_accounts_wall(
    setting: Any, organization: Any, zone: str, at: str, refused: bool
) -> None:
    controls = setting.controls(organization, setting.account(organization, time_zone=zone))
    controls.symbol("PATCH", "AAPL", "/time", {"trading_start": "09:30:00", "trading_end": "16:00:00"})

    assert codes(controls, at=at) == (["OUTSIDE_TRADING_WINDOW"] if refused else [])


def test_a_preview_judges_by_the_facts_its_caller_gives(controls: Any) -> None:
    controls.call("PUT", "", {"trading_state": "REDUCING"})
    sell = create(side="SELL")

    answer = controls.call("POST", "/preview", sell | {"facts": {"position_quantity": None}})

    assert answer.json["decision"] == "REFUSED"
    assert answer.json["checks"][-1] == {"control": "account_switch", "version": 1, "outcome": "NOT_EVALUATED"}
    assert codes(controls, sell) == ["TRADING_REDUCING"]
    assert codes(controls, sell, facts={"position_quantity": "10"}) == []
    assert codes(controls, sell, facts={"position_quantity": "9.9"}) == ["TRADING_REDUCING"]
    assert codes(controls, create(), facts={"position_quantity": "-10"}) == []
    assert codes(controls, sell, facts={"position_quantity": "10", "open_quantity": "0.1"}) == ["TRADING_REDUCING"]


def test_a_cancel_always_passes_and_a_replace_is_judged_like_a_create(controls: Any) -> None:
    controls.call("PUT", "", {"trading_state": "HALTED"})
    replace = {"command": {**create()["command"], "type": "REPLACE"}}

    assert codes(controls, cancel("00000000-0000-4000-8000-000000000000")) == []
    assert codes(controls, replace) == ["TRADING_HALTED"]


def test_a_disabled_account_refuses_and_says_so(setting: Any, controls: Any) -> None:
    with setting.platform.admin() as admin:
        admin.exec_driver_sql(f"UPDATE accounts.account SET disabled = true WHERE id = '{controls.account_id}'")

    assert codes(controls) == ["ACCOUNT_DISABLED"]


@pytest.mark.parametrize(
    "spec",
    [
        {"Market": {"quantity": "1"}},
        {"Limit": {"quantity": "1", "limit_price": "10", "time_in_force": "GTC"}},
        {"Stop": {"quantity": "1", "stop_price": "10"}},
        {"StopLimit": {"quantity": "1", "stop_price": "10", "limit_price": "10"}},
    ],
)
def test_every_kind_of_order_can_be_previewed(controls: Any, spec: dict[str, Any]) -> None:
    controls.call("PUT", "/limits", {"price_collar_bps": 1})
    facts = {"reference_price": "20"}
    expected = [] if "Market" in spec else ["PRICE_OUTSIDE_COLLAR"]

    assert codes(controls, create(**spec), facts=facts) == expected


def test_an_account_trades_the_allowed_symbols_and_not_the_denied_ones(controls: Any) -> None:
    made = controls.call("PUT", "/limits", {"allowed_symbols": [" aapl", "MSFT", "msft"], "denied_symbols": ["MSFT"]})

    assert made.json["allowed_symbols"] == ["AAPL", "MSFT"]
    refused = {symbol: codes(controls, create(symbol)) for symbol in ("AAPL", "MSFT", "TSLA")}
    assert refused == {"AAPL": [], "MSFT": ["SYMBOL_DENIED"], "TSLA": ["SYMBOL_NOT_ALLOWED"]}


def test_a_preview_writes_nothing(setting: Any, controls: Any) -> None:
    before = setting.everything()

    codes(controls)

    assert setting.everything() == before


def test_limits_come_back_as_the_decimals_they_are(setting: Any, controls: Any) -> None:
    controls.call("PUT", "/limits", {"max_quantity": "0.000000001"})

    [row] = setting.rows("account_limits", controls.account_id)

    assert row["max_quantity"] == Decimal("0.000000001")


@pytest.mark.parametrize("path", ["", "/v1/controls/organization"])
def test_a_halt_may_cancel_what_is_open(setting: Any, path: str) -> None:
    organization = setting.identity.organization(entitlements=["controls_premium"])
    account_id = setting.account(organization)
    controls, about = setting.controls(organization, account_id), organization.id if path else account_id

    made = controls.call("PUT", path, {"trading_state": "HALTED", "cancel_open": True})

    event = setting.events(about)[0]
    assert made.status_code == 201
    assert (event["cancel_open"], event["event_id"]) == (True, made.json["bulk_operation_id"])
    assert event["actor"]["type"] in ("user", "api_key")
    shown = controls.call("GET", path).json
    assert "bulk_operation_id" not in shown and "cancel_open" not in shown
    again = controls.call("PUT", path, {"trading_state": "HALTED", "cancel_open": False})
    assert (again.status_code, "bulk_operation_id" in again.json) == (200, False)
    assert "cancel_open" not in setting.events(about)[-1]


@pytest.mark.parametrize("state", ["ACTIVE", "REDUCING"])
def test_only_a_halt_cancels_what_is_open(controls: Any, state: str) -> None:
    refused = controls.call("PUT", "", {"trading_state": state, "cancel_open": True})

    assert (refused.status_code, refused.json["errors"][0]["pointer"]) == (422, "/cancel_open")
    assert controls.call("PUT", "", {"trading_state": "HALTED", "cancel_open": "yes"}).status_code == 422


def test_the_document_allows_a_short_position_among_the_facts_of_a_preview(controls: Any) -> None:
    schemas = controls.client.get("/openapi.json").json["components"]["schemas"]

    for name in ("PreviewFacts", "PreviewUsed"):
        assert re.search(schemas[name]["properties"]["position_quantity"]["pattern"], "-5")
        assert not re.search(schemas[name]["properties"]["open_quantity"]["pattern"], "-5")
