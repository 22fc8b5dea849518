"""GET …/history: what changed about a control, from what to what, by whom."""

from typing import Any

import psycopg2
import pytest
from sqlalchemy import exc, text

from controls import store

from .conftest import Controls, Setting


def history(controls: Controls, path: str = "/history") -> list[dict[str, Any]]:
    answer = controls.call("GET", path)
    assert answer.status_code == 200, answer.get_data(as_text=True)
    found: list[dict[str, Any]] = answer.json["data"]
    return found


def test_every_control_keeps_its_history_with_the_actor(controls: Controls) -> None:
    controls.call("PUT", "", {"trading_state": "REDUCING", "reason": "news"}, X_Request_Id="request-1")
    controls.call("PUT", "", {"trading_state": "HALTED"}, X_Request_Id="request-2")
    controls.call("DELETE", "")
    controls.call("PUT", "/limits", {"max_quantity": "10.50", "max_orders_per_day": 7})
    controls.symbol("PUT", "BTC/USD", "", {"manually_disabled": True})
    controls.symbol("PATCH", "BTC/USD", "/time", {"trading_start": "09:30:00"})

    changes = history(controls)

    assert [(change["control"], change["symbol"], change["version"]) for change in changes] == [
        ("symbol_time", "BTC/USD", 1),
        ("symbol_manual", "BTC/USD", 1),
        ("account_limits", None, 1),
        ("account_switch", None, 3),
        ("account_switch", None, 2),
        ("account_switch", None, 1),
    ]
    assert changes[5]["from"] is None and changes[3]["to"] is None
    assert changes[5]["to"] == changes[4]["from"] == {"trading_state": "REDUCING", "reason": "news"}
    assert changes[4]["to"] == changes[3]["from"] == {"trading_state": "HALTED", "reason": None}
    assert changes[2]["to"]["max_quantity"] == "10.50" and changes[2]["to"]["max_notional"] is None
    assert changes[0]["to"]["trading_start"] == "09:30:00"
    assert [change["request_id"] for change in changes[4:]] == ["request-2", "request-1"]
    assert {change["actor"]["type"] for change in changes} == {"user"} and all(c["actor"]["id"] for c in changes)


def test_an_api_key_is_the_actor_of_what_it_changes(controls: Controls, setting: Setting, organization: Any) -> None:
    key = setting.identity.key(organization.id, "paper", ["control:edit", "control:read"])
    by_key = Controls(controls.client, {"x-api-key": key}, controls.account_id)

    by_key.call("PUT", "", {"trading_state": "HALTED"})

    assert history(controls)[0]["actor"]["type"] == "api_key"
    assert setting.events(controls.account_id)[-1]["actor"] == history(controls)[0]["actor"]


def test_a_change_that_was_refused_is_not_in_the_history(controls: Controls) -> None:
    controls.call("PUT", "", {"trading_state": "HALTED"})

    assert controls.call("PUT", "", {"trading_state": "ACTIVE"}, If_Match='"9"').status_code == 412
    assert controls.call("PUT", "", {"trading_state": "OFF"}).status_code == 422
    assert controls.call("DELETE", "/limits").status_code == 404

    assert len(history(controls)) == 1


def test_the_history_of_a_symbol_is_a_filter(controls: Controls) -> None:
    for symbol in ("AAPL", "MSFT", "AAPL"):
        controls.symbol("PUT", symbol, "", {"manually_disabled": True})

    assert [change["version"] for change in history(controls, "/history?symbol=aapl")] == [2, 1]
    assert controls.call("GET", "/history?symbol=A%20B").status_code == 422


def test_the_organizations_history_is_its_own(controls: Controls) -> None:
    controls.call("PUT", "/v1/controls/organization", {"trading_state": "REDUCING"})

    [change] = history(controls, "/v1/controls/organization/history?limit=1")

    assert (change["control"], change["account_id"]) == ("organization_switch", None)
    assert change["to"]["trading_state"] == "REDUCING"
    assert history(controls) == []


def test_pages_follow_each_other(controls: Controls) -> None:
    for reason in "abcde":
        controls.call("PUT", "", {"trading_state": "ACTIVE", "reason": reason})
    seen, cursor = [], ""
    while cursor is not None:
        answer = controls.call("GET", "/history?limit=2" + (f"&next_cursor={cursor}" if cursor else ""))
        seen += [change["to"]["reason"] for change in answer.json["data"]]
        cursor = answer.json["next_cursor"]

    assert seen == list("edcba")
    other = controls.call("GET", "/history?limit=2").json["next_cursor"]
    assert controls.call("GET", f"/history?symbol=AAPL&next_cursor={other}").json["code"] == "bad_cursor"


def test_nobody_can_change_the_history(controls: Controls, setting: Setting) -> None:
    controls.call("PUT", "", {"trading_state": "HALTED"})

    for statement in ("UPDATE controls.control_change SET actor_id = 'x'", "DELETE FROM controls.control_change"):
        with setting.platform.admin() as admin, pytest.raises(exc.ProgrammingError, match="append-only"):
            admin.execute(text(statement))


def test_the_history_is_written_with_the_change_or_not_at_all(
    controls: Controls, setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: Any, **__: Any) -> None:
        raise exc.OperationalError("append", None, psycopg2.OperationalError())

    monkeypatch.setattr(store, "append_change", failing)

    assert controls.call("PUT", "", {"trading_state": "HALTED"}).status_code == 503
    assert setting.rows("account_switch", controls.account_id) == setting.events(controls.account_id) == []


def test_another_organization_sees_no_history(controls: Controls, setting: Setting) -> None:
    controls.call("PUT", "", {"trading_state": "HALTED"})
    stranger = setting.controls(setting.identity.organization(entitlements=["controls_premium"]), controls.account_id)

    assert stranger.call("GET", "/history").status_code == 404
    assert history(stranger, "/v1/controls/organization/history") == []
