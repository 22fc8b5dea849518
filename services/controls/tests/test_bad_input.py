"""Hostile bodies: a problem+json that points at the fault, and nothing written."""

import json
from typing import Any

import pytest

MANUAL: list[tuple[Any, str]] = [
    ({}, "/manually_disabled"),
    ({"manually_disabled": "true"}, "/manually_disabled"),
    ({"manually_disabled": "yes"}, "/manually_disabled"),
    ({"manually_disabled": 1}, "/manually_disabled"),
    ({"manually_disabled": 0}, "/manually_disabled"),
    ({"manually_disabled": None}, "/manually_disabled"),
    ({"manually_disabled": []}, "/manually_disabled"),
    ({"manually_disabled": True, "manual_reason": ""}, "/manual_reason"),
    ({"manually_disabled": True, "manual_reason": "x" * 501}, "/manual_reason"),
    ({"manually_disabled": True, "manual_reason": 5}, "/manual_reason"),
    ({"manually_disabled": True, "manual_reason": "a\nb"}, "/manual_reason"),
    ({"manually_disabled": True, "surprise": 1}, "/surprise"),
    ({"manually_disabled": True, "a/b~c": 1}, "/a~1b~0c"),
    ({"manually_disabled": True, "version": 1}, "/version"),
    ([], ""),
    ("text", ""),
    (7, ""),
    (None, ""),
]
BAD_TIMES = [
    "9:30",
    "09:30",
    "24:00:00",
    "09:30:60",
    "09:60:00",
    "09:30:00Z",
    "09:30:00+05:00",
    "+05:00",
    "09:30:00.5",
    "",
    " 09:30:00",
    "09:30:00\n",
    "\u0660\u0669:\u0663\u0660:\u0660\u0660",
    93000,
    9.5,
    True,
    [],
    {},
]
TIME: list[tuple[Any, str]] = [
    *[({"trading_start": bad}, "/trading_start") for bad in BAD_TIMES],
    *[({"trading_end": bad}, "/trading_end") for bad in BAD_TIMES[:6]],
    *[
        ({"stale_order_millis": bad}, "/stale_order_millis")
        for bad in (0, -1, 999, 86_400_001, 10**30, 1000.0, 1500.5, "1000", True, [])
    ],
    ({}, ""),
    ({"clear": []}, ""),
    ({"clear": None}, ""),
    ({"trading_start": None}, ""),
    ({"clear": ["trading_start"], "trading_start": "09:30:00"}, "/clear/0"),
    ({"clear": ["trading_end", "stale_order_millis"], "stale_order_millis": 1000}, "/clear/1"),
    ({"clear": ["manual_reason"]}, "/clear/0"),
    ({"clear": ["trading_start", "TRADING_END"]}, "/clear/1"),
    ({"clear": [None]}, "/clear/0"),
    ({"clear": [["trading_start"]]}, "/clear/0"),
    ({"clear": "trading_start"}, "/clear"),
    ({"clear": {"trading_start": True}}, "/clear"),
    ({"trading_start": "09:30:00", "trading_stop": "10:00:00"}, "/trading_stop"),
    ([], ""),
    (None, ""),
]
SWITCH: list[tuple[Any, str]] = [
    ({}, "/trading_state"),
    ({"trading_state": "active"}, "/trading_state"),
    ({"trading_state": "STOPPED"}, "/trading_state"),
    ({"trading_state": None}, "/trading_state"),
    ({"trading_state": True}, "/trading_state"),
    ({"trading_state": "HALTED", "reason": "x" * 501}, "/reason"),
    ({"trading_state": "HALTED", "why": "x"}, "/why"),
]
LIMITS: list[tuple[Any, str]] = [
    ({}, ""),
    ({"max_quantity": None}, ""),
    *[
        ({"max_quantity": bad}, "/max_quantity")
        for bad in (10, 1.5, "0", "-1", "1e3", "NaN", "Infinity", "1_000", "\uff11", "1" * 16, "0.0000000001", "", True)
    ],
    *[({"max_notional": bad}, "/max_notional") for bad in (10, "0.0", "+1", " 1", "0x10")],
    *[({"price_collar_bps": bad}, "/price_collar_bps") for bad in (0, -1, 10_001, "50", 1.0, True)],
    *[({"max_orders_per_minute": bad}, "/max_orders_per_minute") for bad in (0, -5, 1_000_001, "5")],
    *[({"max_orders_per_day": bad}, "/max_orders_per_day") for bad in (0, 2**31, "5")],
    ({"max_quantity": "1", "max_price": "1"}, "/max_price"),
]
MARKET = {"Market": {"quantity": "1"}}


def create(**changes: Any) -> dict[str, Any]:
    payload = {"symbol": "AAPL", "order_side": "BUY", "spec": MARKET} | changes
    return {"command": {"type": "CREATE", "payload": {k: v for k, v in payload.items() if v is not ...}}}


PREVIEW: list[tuple[Any, str]] = [
    ({}, "/command"),
    ({"command": {"type": "CREATE"}}, "/command/payload"),
    ({"command": {"type": "MODIFY", "payload": {}}}, "/command/type"),
    ({"command": {"type": "CREATE", "payload": {}}}, "/command/payload/symbol"),
    ({"command": {"type": "REPLACE", "payload": {"spec": MARKET}}}, "/command/payload/symbol"),
    ({"command": {"type": "CREATE", "payload": []}}, "/command/payload"),
    (create(symbol="A B"), "/command/payload/symbol"),
    (create(order_side="LONG"), "/command/payload/order_side"),
    (create(order_side=...), "/command/payload/order_side"),
    (create(spec={}), "/command/payload/spec"),
    (create(spec={**MARKET, "Limit": {"quantity": "1", "limit_price": "1"}}), "/command/payload/spec"),
    (create(spec={"market": {"quantity": "1"}}), "/command/payload/spec/market"),
    (create(spec={"Market": {"quantity": 1}}), "/command/payload/spec/Market/quantity"),
    (create(spec={"Limit": {"quantity": "1"}}), "/command/payload/spec/Limit/limit_price"),
    *[
        (create() | {"at": bad}, "/at")
        for bad in ("now", "2026-07-01", "2026-07-01T12:00:00", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", 5)
    ],
    (create() | {"facts": {"position_quantity": 5}}, "/facts/position_quantity"),
    (create() | {"facts": {"open_quantity": "-5"}}, "/facts/open_quantity"),
    (create() | {"facts": {"reference_price": "0"}}, "/facts/reference_price"),
    (create() | {"facts": {"account_orders_last_day": -1}}, "/facts/account_orders_last_day"),
    (create() | {"facts": {"account_disabled": False}}, "/facts/account_disabled"),
]
BODIES = [
    *[("PUT", "/symbols/AAPL", body, pointer) for body, pointer in MANUAL],
    *[("PATCH", "/symbols/AAPL/time", body, pointer) for body, pointer in TIME],
    *[("PUT", "", body, pointer) for body, pointer in SWITCH],
    *[("PUT", "/v1/controls/organization", body, pointer) for body, pointer in SWITCH],
    *[("PUT", path, body, pointer) for path in ("/limits", "/symbols/AAPL/limits") for body, pointer in LIMITS],
    *[("POST", "/preview", body, pointer) for body, pointer in PREVIEW],
]


def test_hostile_bodies_are_refused_with_a_pointer_and_nothing_is_written(setting: Any, controls: Any) -> None:
    before = setting.everything()

    for method, path, body, pointer in BODIES:
        answer = controls.client.open(
            path if path.startswith("/v1") else f"/v1/controls/accounts/{controls.account_id}{path}",
            method=method,
            data=json.dumps(body),
            content_type="application/json",
            headers=controls.credential,
        )

        assert (path, body, answer.status_code) == (path, body, 422)
        assert answer.content_type == "application/problem+json"
        assert (path, body, answer.json["errors"][0]["pointer"]) == (path, body, pointer)
        assert answer.json["errors"][0]["code"] and answer.json["errors"][0]["message"]
    assert setting.everything() == before


@pytest.mark.parametrize(
    ("data", "content_type", "status"),
    [
        (b'{"manually_disabled": true', "application/json", 400),
        (b'{"manually_disabled": true, "manually_disabled": false}', "application/json", 400),
        (b'{"manually_disabled": NaN}', "application/json", 400),
        (b'{"manually_disabled": true} x', "application/json", 400),
        (b'{"manual_reason": "\\u0000", "manually_disabled": true}', "application/json", 400),
        (b'{"manual_reason": "\\ud800", "manually_disabled": true}', "application/json", 400),
        (b"[" * 5000, "application/json", 400),
        (b"\xff\xfe", "application/json", 400),
        (b"", "application/json", 400),
        (b'{"manually_disabled": true}', "text/plain", 415),
        (b"manually_disabled=true", "application/x-www-form-urlencoded", 415),
        (b'{"manual_reason": "' + b"x" * 70_000 + b'"}', "application/json", 413),
    ],
)
def test_what_is_not_json_is_refused_before_it_is_validated(
    setting: Any, controls: Any, data: bytes, content_type: str, status: int
) -> None:
    before = setting.everything()

    answer = controls.client.put(
        f"/v1/controls/accounts/{controls.account_id}/symbols/AAPL",
        data=data,
        content_type=content_type,
        headers=controls.credential,
    )

    assert (answer.status_code, answer.content_type) == (status, "application/problem+json")
    assert setting.everything() == before


@pytest.mark.parametrize(
    ("path", "limits", "pointer"),
    [
        ("/limits", {"allowed_symbols": []}, "/allowed_symbols"),
        ("/limits", {"denied_symbols": ["A B"]}, "/denied_symbols/0"),
        ("/limits", {"allowed_symbols": "AAPL"}, "/allowed_symbols"),
        ("/limits", {"allowed_symbols": [f"S{number}" for number in range(501)]}, "/allowed_symbols"),
        ("/limits", {"allow_short": "no"}, "/allow_short"),
        ("/limits", {"max_daily_loss": "0"}, "/max_daily_loss"),
        ("/limits", {"max_open_orders": 0}, "/max_open_orders"),
        ("/symbols/AAPL/limits", {"max_gross_exposure": "1"}, "/max_gross_exposure"),
        ("/symbols/AAPL/limits", {"allowed_symbols": ["AAPL"]}, "/allowed_symbols"),
    ],
)
def test_a_limit_that_makes_no_sense_is_refused_by_its_name(
    controls: Any, path: str, limits: dict[str, Any], pointer: str
) -> None:
    answer = controls.call("PUT", path, limits)

    assert answer.status_code == 422
    assert [error["pointer"] for error in answer.json["errors"]] == [pointer]
