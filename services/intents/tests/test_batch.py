"""POST …/intents/batch."""

from typing import Any

from werkzeug.test import TestResponse

from .conftest import Desk, cancel, create, limit, replace
from .test_controls import disable, limits


def submit(desk: Desk, *bodies: Any, atomic: bool | None = None, query: str = "", **headers: str) -> TestResponse:
    body: dict[str, Any] = {"commands": [each.get("command", each) for each in bodies]}
    if atomic is not None:
        body["atomic"] = atomic
    return desk.client.post(f"{desk.path}/batch{query}", json=body, headers={**desk.headers, **headers})


def test_each_command_has_its_own_result(desk: Desk) -> None:
    disable(desk, "MSFT")
    intent_id = desk.created(limit())["intent_id"]

    answer = submit(desk, create(), create("0"), create(symbol="MSFT"), cancel(intent_id), replace(intent_id))

    assert answer.status_code == 200
    results = answer.json["results"]
    assert [result["status"] for result in results] == [201, 422, 422, 201, 409]
    assert [result["problem"]["code"] for result in results if "problem" in result] == [
        "invalid",
        "control_rejected",
        "intent_busy",
    ]
    assert results[1]["problem"]["errors"][0]["pointer"] == "/command/payload/spec/Market/quantity"
    assert [result["action"]["sequence"] for result in results if "action" in result] == [2, 3]
    assert len(desk.rows("action")) == len(desk.outbox()) == 3


def test_an_atomic_batch_is_done_as_a_whole(desk: Desk) -> None:
    intent_id = desk.created(limit())["intent_id"]

    answer = submit(desk, create(), replace(intent_id), cancel(intent_id), create(), atomic=True)

    assert [result["status"] for result in answer.json["results"]] == [201] * 4
    assert [result["action"]["sequence"] for result in answer.json["results"]] == [2, 3, 4, 5]
    assert desk.get("/verify").json["valid"] is True


def test_an_atomic_batch_with_one_refusal_does_nothing_and_says_which(desk: Desk) -> None:
    disable(desk, "MSFT")

    for bad, code in ((create("0"), "invalid"), (create(symbol="MSFT"), "control_rejected"), (cancel("x"), "invalid")):
        answer = submit(desk, create(), bad, create(), atomic=True)

        assert (answer.status_code, answer.json["code"]) == (422, "batch_rejected")
        assert [result["status"] for result in answer.json["results"]] == [424, 422, 424]
        assert answer.json["results"][1]["problem"]["code"] == code
    assert desk.rows("action") == desk.rows("intent") == desk.outbox() == []
    assert desk.rows("account_head") == []
    assert len(desk.rows("refusal")) == 1


def test_an_atomic_batch_counts_its_own_commands_against_the_limits(desk: Desk) -> None:
    limits(desk, max_orders_per_minute=2)

    assert submit(desk, create(), create(), create(), atomic=True).status_code == 422
    assert [one["status"] for one in submit(desk, create(), create(), create()).json["results"]] == [201, 201, 422]


def test_a_batch_has_1_to_100_commands(desk: Desk) -> None:
    for bodies in ([], [create()] * 101):
        answer = submit(desk, *bodies)
        assert (answer.status_code, answer.json["errors"][0]["pointer"]) == (422, "/commands")
    wrong = desk.client.post(f"{desk.path}/batch", json={"commands": {"a": 1}}, headers=desk.headers)
    assert wrong.json["errors"][0]["pointer"] == "/commands"
    assert [one["status"] for one in submit(desk, *[create()] * 100).json["results"]] == [201] * 100
    odd = submit(desk, *[{"command": None}, {"command": 1}, {"command": {}}])
    assert [one["status"] for one in odd.json["results"]] == [422] * 3


def test_a_batch_sent_again_with_its_key_is_answered_as_before(desk: Desk) -> None:
    first = submit(desk, create(), create("2"), **{"Idempotency-Key": "b"}).json["results"]
    again = submit(desk, create(), create("2"), **{"Idempotency-Key": "b"}).json["results"]

    assert [one["action"] for one in again] == [one["action"] for one in first]
    assert len(desk.rows("action")) == 2


def test_a_dry_run_of_a_batch_writes_nothing(desk: Desk) -> None:
    for atomic in (False, True):
        answer = submit(desk, create(), create("2"), atomic=atomic, query="?dry_run=true")
        assert [one["status"] for one in answer.json["results"]] == [200, 200]
    assert desk.rows("action") == desk.rows("account_head") == []
