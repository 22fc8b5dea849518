"""The specification's symbol controls: PUT and PATCH as it has them, and the reads, list and delete beside them."""

from collections.abc import Callable
from typing import Any

import pytest

MANUAL_FIELDS = {
    "account_id",
    "organization_id",
    "symbol",
    "manually_disabled",
    "created_at",
    "updated_at",
    "version",
}
TIME_FIELDS = {
    "account_id",
    "organization_id",
    "symbol",
    "trading_start",
    "trading_end",
    "stale_order_millis",
    "created_at",
    "updated_at",
    "version",
    "time_zone",
}


def test_put_creates_the_control_with_exactly_the_specified_fields(controls: Any, organization: Any) -> None:
    answer = controls.symbol("PUT", "AAPL", body={"manually_disabled": True, "manual_reason": "earnings"})

    assert answer.status_code == 201
    assert set(answer.json) == MANUAL_FIELDS | {"manual_reason"}
    assert answer.json["account_id"] == str(controls.account_id)
    assert answer.json["organization_id"] == str(organization.id)
    assert (answer.json["symbol"], answer.json["version"]) == ("AAPL", 1)
    assert (answer.json["manually_disabled"], answer.json["manual_reason"]) == (True, "earnings")
    assert answer.json["created_at"].endswith("Z") and answer.json["updated_at"].endswith("Z")
    assert answer.headers["ETag"] == '"1"'
    assert answer.headers["Location"] == f"/v1/controls/accounts/{controls.account_id}/symbols/AAPL"


def test_put_replaces_and_clears_the_reason_that_is_omitted(controls: Any) -> None:
    first = controls.symbol("PUT", "AAPL", body={"manually_disabled": True, "manual_reason": "earnings"})

    answer = controls.symbol("PUT", "AAPL", body={"manually_disabled": False})

    assert (answer.status_code, answer.json["version"], answer.headers["ETag"]) == (200, 2, '"2"')
    assert set(answer.json) == MANUAL_FIELDS
    assert answer.json["created_at"] == first.json["created_at"]
    assert answer.json["updated_at"] > first.json["updated_at"]
    assert "Location" not in answer.headers
    assert controls.symbol("GET", "AAPL").json == answer.json


def test_patch_creates_the_time_control_with_exactly_the_specified_fields(controls: Any) -> None:
    answer = controls.symbol("PATCH", "AAPL", "/time", {"trading_start": "09:30:00"})

    assert answer.status_code == 201
    assert set(answer.json) == TIME_FIELDS - {"trading_end"}
    assert answer.json["trading_start"] == "09:30:00" and answer.json["stale_order_millis"] is None
    assert answer.headers["Location"] == f"/v1/controls/accounts/{controls.account_id}/symbols/AAPL/time"


def test_patch_leaves_what_is_omitted_or_null_and_removes_what_clear_names(controls: Any) -> None:
    first = {"trading_start": "09:30:00", "trading_end": "16:00:00", "stale_order_millis": 60_000}
    controls.symbol("PATCH", "AAPL", "/time", first)

    omitted = controls.symbol("PATCH", "AAPL", "/time", {"trading_end": "17:00:00", "trading_start": None})
    cleared = controls.symbol("PATCH", "AAPL", "/time", {"clear": ["stale_order_millis", "trading_start"]})

    fields = ("trading_start", "trading_end", "stale_order_millis", "version")
    assert (omitted.status_code, cleared.status_code) == (200, 200)
    assert [omitted.json[name] for name in fields] == ["09:30:00", "17:00:00", 60_000, 2]
    assert [cleared.json.get(name) for name in fields] == [None, "17:00:00", None, 3]
    assert set(cleared.json) == TIME_FIELDS - {"trading_start"}
    assert controls.symbol("GET", "AAPL", "/time").json == cleared.json


def test_hours_are_shown_with_the_zone_they_are_in(setting: Any, organization: Any) -> None:
    controls = setting.controls(organization, setting.account(organization, time_zone="America/New_York"))
    made = controls.symbol("PATCH", "AAPL", "/time", {"trading_start": "09:30:00"})
    controls.symbol("PUT", "MSFT", body={"manually_disabled": True})

    listed = controls.call("GET", "/symbols").json["data"]

    assert made.json["time_zone"] == "America/New_York"
    assert [entry["time"] and entry["time"]["time_zone"] for entry in listed] == ["America/New_York", None]


NO_CHANGES: list[dict[str, Any]] = [
    {},
    {"clear": []},
    {"clear": None},
    {"trading_start": None, "trading_end": None, "stale_order_millis": None},
    {"clear": ["trading_end", "stale_order_millis"], "trading_start": None},
]


@pytest.mark.parametrize("body", NO_CHANGES)
def test_a_patch_that_sets_and_removes_nothing_is_200_and_changes_nothing(
    setting: Any, controls: Any, body: dict[str, Any]
) -> None:
    first = controls.symbol("PATCH", "AAPL", "/time", {"trading_start": "09:30:00"})
    before = setting.everything()

    answer = controls.symbol("PATCH", "AAPL", "/time", body, If_Match='"1"')

    assert (answer.status_code, answer.json, answer.headers["ETag"]) == (200, first.json, '"1"')
    assert setting.everything() == before
    assert controls.symbol("PATCH", "AAPL", "/time", body, If_Match='"2"').status_code == 412


@pytest.mark.parametrize("body", NO_CHANGES)
def test_a_patch_that_sets_nothing_creates_nothing(setting: Any, controls: Any, body: dict[str, Any]) -> None:
    controls.symbol("PATCH", "GONE", "/time", {"trading_start": "09:30:00"})
    controls.symbol("DELETE", "GONE", "/time")
    before = setting.everything()

    for symbol in ("AAPL", "GONE"):
        answer = controls.symbol("PATCH", symbol, "/time", body)
        assert (answer.status_code, answer.json["code"]) == (422, "invalid")
        assert [error["code"] for error in answer.json["errors"]] == ["nothing_to_do"]
    assert setting.everything() == before


def test_the_two_controls_of_a_symbol_never_touch_each_other(controls: Any) -> None:
    manual = controls.symbol("PUT", "AAPL", body={"manually_disabled": True})
    time = controls.symbol("PATCH", "AAPL", "/time", {"stale_order_millis": 1000})
    controls.symbol("PUT", "AAPL", body={"manually_disabled": False})

    assert controls.symbol("GET", "AAPL", "/time").json == time.json
    assert controls.symbol("DELETE", "AAPL", "/time").status_code == 204
    assert controls.symbol("GET", "AAPL").json["version"] == manual.json["version"] + 1


SYMBOL_RESOURCES = [
    ("PUT", "", {"manually_disabled": True}),
    ("PATCH", "/time", {"trading_start": "09:30:00"}),
    ("PUT", "/limits", {"max_quantity": "10"}),
]


@pytest.mark.parametrize(("method", "part", "body"), SYMBOL_RESOURCES)
def test_if_match_guards_every_change(controls: Any, method: str, part: str, body: dict[str, Any]) -> None:
    def write(tag: str) -> int:
        return controls.symbol(method, "AAPL", part, body, If_Match=tag).status_code

    assert write('"1"') == 412, "there is nothing to match yet"
    assert controls.symbol(method, "AAPL", part, body).status_code == 201
    assert write('"2"') == 412
    assert write('"1"') == 200
    assert [write(tag) for tag in ('"1"', "banana", 'W/"2"')] == [412, 412, 412]
    assert controls.symbol("DELETE", "AAPL", part, If_Match='"1"').status_code == 412
    assert controls.symbol("DELETE", "AAPL", part, If_Match='"2"').status_code == 204


@pytest.mark.parametrize(("method", "part", "body"), SYMBOL_RESOURCES)
def test_a_deleted_control_is_gone_and_its_versions_are_never_used_again(
    controls: Any, method: str, part: str, body: dict[str, Any]
) -> None:
    first = controls.symbol(method, "AAPL", part, body)
    assert controls.symbol("DELETE", "AAPL", part).status_code == 204

    assert controls.symbol("GET", "AAPL", part).status_code == 404
    assert controls.symbol("GET", "AAPL", part).json["code"] == "not_found"
    assert controls.symbol("DELETE", "AAPL", part).status_code == 404
    again = controls.symbol(method, "AAPL", part, body)
    assert (again.status_code, again.json["version"]) == (201, 3)
    assert again.json["created_at"] > first.json["created_at"]


def test_patch_after_delete_starts_from_nothing(controls: Any) -> None:
    controls.symbol("PATCH", "AAPL", "/time", {"trading_start": "09:30:00", "stale_order_millis": 5000})
    controls.symbol("DELETE", "AAPL", "/time")

    answer = controls.symbol("PATCH", "AAPL", "/time", {"trading_end": "16:00:00"})

    assert set(answer.json) == TIME_FIELDS - {"trading_start"} and answer.json["stale_order_millis"] is None


@pytest.mark.parametrize(
    ("first", "then", "pointer"),
    [
        (None, {"trading_start": "09:30:00", "trading_end": "09:30:00"}, "/trading_end"),
        ({"trading_start": "09:30:00"}, {"trading_end": "09:30:00"}, "/trading_end"),
        ({"trading_end": "09:30:00"}, {"trading_start": "09:30:00"}, "/trading_start"),
        (None, {"trading_end": "00:00:00"}, "/trading_end"),
        ({"trading_start": "09:30:00", "trading_end": "00:00:00"}, {"clear": ["trading_start"]}, "/clear"),
    ],
)
def test_a_window_without_a_moment_is_refused_whatever_it_was_before(
    controls: Any, setting: Any, first: dict[str, Any] | None, then: dict[str, Any], pointer: str
) -> None:
    if first:
        controls.symbol("PATCH", "AAPL", "/time", first)
    before = setting.everything()

    answer = controls.symbol("PATCH", "AAPL", "/time", then)

    assert answer.status_code == 422
    assert (answer.json["errors"][0]["pointer"], answer.json["errors"][0]["code"]) == (pointer, "empty_window")
    assert setting.everything() == before


def test_symbols_are_one_however_they_are_written(controls: Any) -> None:
    controls.symbol("PUT", " brk.b ", body={"manually_disabled": True})

    assert controls.symbol("GET", "BRK.B").json["symbol"] == "BRK.B"
    assert controls.symbol("PUT", "Brk.B", body={"manually_disabled": True}).json["version"] == 2


def test_the_list_pages_through_every_symbol_once_in_order(controls: Any) -> None:
    for name in ("MSFT", "BTC/USD", "AAPL", "A.B", "ZZZ"):
        controls.symbol("PUT", name, body={"manually_disabled": True})
    controls.symbol("PATCH", "AAPL", "/time", {"trading_start": "09:30:00"})
    controls.symbol("PATCH", "TSLA", "/time", {"stale_order_millis": 1000})
    controls.symbol("PUT", "NVDA", "/limits", {"max_quantity": "1"})
    controls.symbol("DELETE", "ZZZ")

    pages, cursor = [], ""
    while cursor is not None:
        answer = controls.call("GET", f"/symbols?limit=2{cursor and '&next_cursor=' + cursor}")
        pages.append([item["symbol"] for item in answer.json["data"]])
        cursor = answer.json["next_cursor"]

    assert pages == [["A.B", "AAPL"], ["BTC/USD", "MSFT"], ["NVDA", "TSLA"]]
    everything = {item["symbol"]: item for item in controls.call("GET", "/symbols").json["data"]}
    assert everything["AAPL"]["manual"] == controls.symbol("GET", "AAPL").json
    assert everything["AAPL"]["time"] == controls.symbol("GET", "AAPL", "/time").json
    assert everything["AAPL"]["limits"] is None and everything["TSLA"]["manual"] is None
    assert everything["NVDA"]["limits"] == controls.symbol("GET", "NVDA", "/limits").json


def test_a_cursor_of_another_account_or_changed_by_hand_is_refused(
    setting: Any, organization: Any, controls: Any
) -> None:
    for name in ("A", "B"):
        controls.symbol("PUT", name, body={"manually_disabled": True})
    cursor = controls.call("GET", "/symbols?limit=1").json["next_cursor"]
    other = setting.controls(organization, setting.account(organization))

    refused = [
        other.call("GET", f"/symbols?next_cursor={cursor}"),
        controls.call("GET", f"/symbols?next_cursor=x{cursor}"),
        controls.call("GET", "/symbols?limit=0"),
        controls.call("GET", "/symbols?limit=501"),
        controls.call("GET", "/symbols?limit=1&limit=2"),
        controls.call("GET", "/symbols?order=up"),
    ]

    assert [answer.status_code for answer in refused] == [400] * 6


CHANGES: list[tuple[str, Callable[[Any], Any]]] = [
    ("symbol_manual", lambda it: it.symbol("PUT", "AAPL", body={"manually_disabled": True, "manual_reason": "s3cret"})),
    ("symbol_time", lambda it: it.symbol("PATCH", "AAPL", "/time", {"stale_order_millis": 1000})),
    ("symbol_limits", lambda it: it.symbol("PUT", "AAPL", "/limits", {"max_quantity": "1"})),
    ("account_switch", lambda it: it.call("PUT", "", {"trading_state": "HALTED", "reason": "s3cret"})),
    ("account_limits", lambda it: it.call("PUT", "/limits", {"max_quantity": "1"})),
]


@pytest.mark.parametrize(("control", "change"), CHANGES)
def test_every_change_is_published_with_ids_and_no_values(
    setting: Any, controls: Any, organization: Any, control: str, change: Callable[[Any], Any]
) -> None:
    first = change(controls)
    path = first.headers["Location"]
    change(controls)
    controls.call("DELETE", path)

    published = setting.events(controls.account_id)

    assert [event["version"] for event in published] == [1, 2, 3]
    assert [event["deleted"] for event in published] == [False, False, True]
    for event in published:
        named = {"symbol": "AAPL"} if control.startswith("symbol") else {}
        assert event.pop("event_id") and event.pop("occurred_at")
        assert event.pop("version") and event.pop("deleted") in (True, False)
        assert event.pop("actor")["type"] == "user"
        assert event == {
            "event_type": "control.updated",
            "organization_id": str(organization.id),
            "account_id": str(controls.account_id),
            "control": control,
            **named,
        }
