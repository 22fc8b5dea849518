"""Whatever is sent: the documented status and code, nothing written, never 500."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from chassis.strict_json import MAX_BYTES
from tip_testing.commands import cancel, create, limit, replace

from .conftest import Desk

BAD_DECIMALS = [
    *("NaN", "Infinity", "-Infinity", "-1", "0", "0.0", "1e9", "1E+1000000000", "1.0000000000000000001"),
    *("1.1234567890", "1234567890123456", "\uff11\uff10", "\u0661", "1_000", " 1", "1 ", "+1", ".5", "5.", "", "0x10"),
    *(1, 1.5, True, None, [], {}, ["1"]),
]


@pytest.mark.parametrize("value", BAD_DECIMALS, ids=repr)
@pytest.mark.parametrize("term", ["quantity", "limit_price"])
def test_a_decimal_that_is_not_a_plain_string_of_digits_is_named(desk: Desk, term: str, value: Any) -> None:
    body = limit()
    body["command"]["payload"]["spec"]["Limit"][term] = value

    answer = desk.submit(body)

    assert (answer.status_code, answer.json["code"]) == (422, "invalid")
    assert [error["pointer"] for error in answer.json["errors"]] == [f"/command/payload/spec/Limit/{term}"]
    assert desk.rows("action") == desk.outbox() == []


def changed(body: dict[str, Any], *path: str, to: Any) -> dict[str, Any]:
    body = copy.deepcopy(body)
    inner = body
    for key in path[:-1]:
        inner = inner[key]
    if to is ...:
        del inner[path[-1]]
    else:
        inner[path[-1]] = to
    return body


PAYLOAD = ("command", "payload")
SPEC = (*PAYLOAD, "spec")
ID = "8f6a4a3e-0000-4000-8000-000000000000"
BAD_BODIES = [
    (changed(create(), *SPEC, to={"Market": {"quantity": "1"}, "Limit": {}}), "/command/payload/spec", "one_kind"),
    (changed(create(), *SPEC, to={}), "/command/payload/spec", "one_kind"),
    (changed(create(), *SPEC, to=[]), "/command/payload/spec", "one_kind"),
    (changed(create(), *SPEC, to=None), "/command/payload/spec", "null"),
    (changed(create(), *SPEC, to=...), "/command/payload/spec", "required"),
    (changed(create(), *SPEC, to={"market": {"quantity": "1"}}), "/command/payload/spec/market", "choice"),
    (changed(create(), *SPEC, to={"Market": "1"}), "/command/payload/spec/Market", "type"),
    (changed(create(), *SPEC, to={"a/b~": 1}), "/command/payload/spec/a~1b~0", "choice"),
    (changed(create(), *SPEC, "Market", "extra", to="1"), "/command/payload/spec/Market/extra", "unknown_field"),
    (changed(create(), *SPEC, "Market", "quantity", to=...), "/command/payload/spec/Market", "one_of"),
    (changed(limit(), *SPEC, "Limit", "limit_price", to=...), "/command/payload/spec/Limit/limit_price", "required"),
    (
        changed(create(), *SPEC, "Market", "limit_price", to="1"),
        "/command/payload/spec/Market/limit_price",
        "unknown_field",
    ),
    (
        create(Stop={"quantity": "1", "stop_price": "1", "time_in_force": "IOC"}),
        "/command/payload/spec/Stop/time_in_force",
        "choice",
    ),
    (changed(create(), *PAYLOAD, "symbol", to=""), "/command/payload/symbol", "length"),
    (changed(create(), *PAYLOAD, "symbol", to="A" * 33), "/command/payload/symbol", "pattern"),
    (changed(create(), *PAYLOAD, "symbol", to="A B"), "/command/payload/symbol", "pattern"),
    (changed(create(), *PAYLOAD, "symbol", to="\u0410APL"), "/command/payload/symbol", "pattern"),
    (changed(create(), *PAYLOAD, "symbol", to="A'; DROP TABLE x;--"), "/command/payload/symbol", "pattern"),
    (changed(create(), *PAYLOAD, "symbol", to=7), "/command/payload/symbol", "type"),
    (changed(create(), *PAYLOAD, "order_side", to="buy"), "/command/payload/order_side", "choice"),
    (changed(create(), *PAYLOAD, "order_side", to=...), "/command/payload/order_side", "required"),
    (changed(create(), *PAYLOAD, "route_strategy", to="FAST"), "/command/payload/route_strategy", "choice"),
    (changed(create(), *PAYLOAD, "account_id", to=ID), "/command/payload/account_id", "unknown_field"),
    (changed(create(), *PAYLOAD, "ref_intent_id", to=ID), "/command/payload/ref_intent_id", "unknown_field"),
    (changed(create(), *PAYLOAD, to=[]), "/command/payload", "type"),
    (changed(create(), *PAYLOAD, to=None), "/command/payload", "null"),
    (changed(create(), *PAYLOAD, to=...), "/command/payload", "required"),
    (changed(create(), "command", "type", to="create"), "/command/type", "choice"),
    (changed(create(), "command", "type", to=...), "/command/type", "required"),
    (changed(create(), "command", "status", to="FILLED"), "/command/status", "unknown_field"),
    (changed(create(), "command", to="CREATE"), "/command", "type"),
    (changed(create(), "organization_id", to=ID), "/organization_id", "unknown_field"),
    ({}, "/command", "required"),
    ([], "", "type"),
    ("x", "", "type"),
    (replace("{" + ID + "}"), "/command/payload/ref_intent_id", "uuid"),
    (cancel("x"), "/command/payload/ref_intent_id", "uuid"),
    (changed(cancel(ID), *PAYLOAD, "spec", to={"Market": {"quantity": "1"}}), "/command/payload/spec", "unknown_field"),
    (changed(replace(ID), *PAYLOAD, "symbol", to="MSFT"), "/command/payload/symbol", "unknown_field"),
]


@pytest.mark.parametrize(("body", "pointer", "code"), BAD_BODIES)
def test_what_is_wrong_with_a_body_is_named_by_pointer_and_code(desk: Desk, body: Any, pointer: str, code: str) -> None:
    answer = desk.submit(body)

    assert (answer.status_code, answer.json["code"]) == (422, "invalid")
    assert [(error["pointer"], error["code"]) for error in answer.json["errors"]] == [(pointer, code)]
    assert desk.rows("action") == desk.rows("intent") == desk.outbox() == []


RAW = [
    (b"", "application/json", 400, "malformed_json"),
    (b"{", "application/json", 400, "malformed_json"),
    (b'{"command": NaN}', "application/json", 400, "malformed_json"),
    (b'{"command": 1, "command": 2}', "application/json", 400, "malformed_json"),
    (b"[" * 100_000, "application/json", 413, "body_too_large"),
    (b"[" * 5_000, "application/json", 400, "malformed_json"),
    (b'{"command": "\\ud800"}', "application/json", 400, "malformed_json"),
    (b'{"command": "\\u0000"}', "application/json", 400, "malformed_json"),
    (b"\xff\xfe{}", "application/json", 400, "malformed_json"),
    (b"{}", "text/plain", 415, "not_json"),
    (b"{}", "application/x-www-form-urlencoded", 415, "not_json"),
    (b"{}", "application/vnd.api+json", 415, "not_json"),
    (b"{}", "application/json; charset=utf-16", 415, "not_json"),
]


@pytest.mark.parametrize(("body", "content_type", "status", "code"), RAW)
def test_what_is_not_json_as_we_take_it_is_refused(
    desk: Desk, body: bytes, content_type: str, status: int, code: str
) -> None:
    for path in (desk.path, f"{desk.path}/batch"):
        answer = desk.client.post(path, data=body, content_type=content_type, headers=desk.headers)

        assert (answer.status_code, answer.json["code"]) == (status, code)
    assert desk.rows("action") == []


@pytest.mark.parametrize(("length", "status"), [(MAX_BYTES, 201), (MAX_BYTES + 1, 413), (2 * MAX_BYTES, 413)])
def test_a_body_that_comes_in_chunks_has_the_same_limit(desk: Desk, length: int, status: int) -> None:
    body = json.dumps(create()).encode().ljust(length)

    answer = desk.client.post(
        desk.path,
        data=body,
        content_type="application/json",
        headers={**desk.headers, "Transfer-Encoding": "chunked"},
    )

    assert answer.status_code == status
    assert len(desk.rows("action")) == (status == 201)


@pytest.mark.parametrize("limit_", ["-1", "0", "501", "1e9", "abc", "", "\uff15", "1.0", " 5", "99999999999999999999"])
@pytest.mark.parametrize("list_", ["", "/{intent_id}/actions"])
def test_a_limit_outside_1_to_500_is_refused(desk: Desk, list_: str, limit_: str) -> None:
    intent_id = desk.created(create())["intent_id"]

    answer = desk.client.get(
        desk.path + list_.format(intent_id=intent_id), query_string={"limit": limit_}, headers=desk.headers
    )

    assert (answer.status_code, answer.json["code"]) == (400, "bad_limit")


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("/stats?time_window=last_year", "bad_time_window"),
        ("/stats?time_window=", "bad_time_window"),
        ("/stats?time_window=last_day&time_window=all", "repeated_query"),
        ("/stats?window=all", "unknown_query"),
        ("?offset=5", "unknown_query"),
        ("?next_cursor=", "bad_cursor"),
        ("?next_cursor=%00", "bad_cursor"),
        ("/not-a-uuid", "bad_id"),
        ("/%7B8f6a4a3e-0000-4000-8000-000000000000%7D", "bad_id"),
        ("/verify?limit=5", "unknown_query"),
        (f"/{ID}?x=1", "unknown_query"),
    ],
)
def test_a_query_that_is_not_understood_is_refused(desk: Desk, query: str, code: str) -> None:
    answer = desk.get(query)

    assert (answer.status_code, answer.json["code"]) == (400, code)


@pytest.mark.parametrize("key", ["", "k" * 256, "caf\u00e9", "a\tb"])
def test_an_idempotency_key_must_be_1_to_255_printable_characters(desk: Desk, key: str) -> None:
    answer = desk.submit(create(), Idempotency_Key=key)

    assert (answer.status_code, answer.json["code"]) == (400, "bad_idempotency_key")
    assert desk.rows("action") == []


def test_bad_ids_in_the_path_are_reported_to_callers_and_not_to_strangers(desk: Desk) -> None:
    caller = desk.client.post("/v1/accounts/nonsense/intents", json=create(), headers=desk.headers)
    stranger = desk.client.post("/v1/accounts/nonsense/intents", json=create())

    assert (caller.status_code, caller.json["code"]) == (400, "bad_id")
    assert stranger.status_code == 401


@pytest.mark.parametrize("method", ["put", "patch", "delete"])
def test_other_methods_are_not_there(desk: Desk, method: str) -> None:
    answer = getattr(desk.client, method)(desk.path, headers=desk.headers)

    assert (answer.status_code, answer.json["code"]) == (405, "method_not_allowed")


def test_every_byte_of_a_cursor_counts(desk: Desk, new_desk: Callable[..., Desk]) -> None:
    for _ in range(3):
        desk.created(create())
    cursor = desk.get("?limit=1").json["next_cursor"]
    assert desk.get(f"?limit=1&next_cursor={cursor}").status_code == 200

    for place, character in enumerate(cursor):
        for other in {"A", "B", "_", chr(ord(character) ^ 1)} - {character}:
            forged = cursor[:place] + other + cursor[place + 1 :]
            answer = desk.client.get(desk.path, query_string={"next_cursor": forged}, headers=desk.headers)
            assert (answer.status_code, answer.json["code"]) == (400, "bad_cursor")
    for forged in (cursor[:-1], cursor + "A", cursor + "=", "=" * 8):
        answer = desk.client.get(desk.path, query_string={"next_cursor": forged}, headers=desk.headers)
        assert answer.status_code == 400


def test_a_cursor_belongs_to_its_account_and_its_list(desk: Desk, new_desk: Callable[..., Desk]) -> None:
    intent_id, _ = (desk.created(create())["intent_id"] for _ in range(2))
    cursor = desk.get("?limit=1").json["next_cursor"]

    assert new_desk().get(f"?next_cursor={cursor}").json["code"] == "bad_cursor"
    assert desk.get(f"/{intent_id}/actions?next_cursor={cursor}").json["code"] == "bad_cursor"
    assert desk.get(f"/verify?next_cursor={cursor}").json["code"] == "bad_cursor"
