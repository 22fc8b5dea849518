"""POST …/intents/batch."""

import time
from collections.abc import Callable, Iterable
from typing import Any

import psycopg2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from werkzeug.test import TestResponse

from intents import model, usecases
from intents.usecases import PendingSubmit, Policy
from intents.usecases.rests import LONGEST_REST_S, MOST_REST_S, REST_FACTOR
from tip_testing.commands import cancel, create, limit, replace
from tip_testing.identity_fixtures import Organization

from .conftest import Desk
from .test_controls import disable, limits


def submit(desk: Desk, *bodies: Any, atomic: bool | None = None, query: str = "", **headers: str) -> TestResponse:
    body: dict[str, Any] = {"commands": [body.get("command", body) for body in bodies]}
    if atomic is not None:
        body["atomic"] = atomic
    return desk.client.post(f"{desk.path}/batch{query}", json=body, headers={**desk.headers, **headers})


def test_each_command_has_its_own_result(desk: Desk) -> None:
    disable(desk, "MSFT")
    intent_id = desk.created(limit())["intent_id"]

    answer = submit(desk, create(), create(quantity="0"), create(symbol="MSFT"), cancel(intent_id), replace(intent_id))

    assert answer.status_code == 200
    results = answer.json["results"]
    assert [result["status"] for result in results] == [201, 422, 422, 201, 409]
    assert [result["problem"]["code"] for result in results if "problem" in result] == [
        "invalid",
        "control_rejected",
        "intent_busy",
    ]
    assert results[1]["problem"]["errors"][0]["pointer"] == "/commands/1/payload/spec/Market/quantity"
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

    for bad, code in (
        (create(quantity="0"), "invalid"),
        (create(symbol="MSFT"), "control_rejected"),
        (cancel("x"), "invalid"),
    ):
        answer = submit(desk, create(), bad, create(), atomic=True)

        assert (answer.status_code, answer.json["code"]) == (422, "batch_rejected")
        assert [result["status"] for result in answer.json["results"]] == [424, 422, 424]
        assert answer.json["results"][1]["problem"]["code"] == code
    assert desk.rows("action") == desk.rows("intent") == desk.outbox() == []
    assert desk.rows("account_head") == []
    assert len(desk.rows("refusal")) == 1


def test_the_refusal_of_an_atomic_batch_is_hardly_longer_than_the_batch(desk: Desk) -> None:
    unknown = {f"field{number}": 0 for number in range(50)}

    answer = submit(desk, unknown, unknown, atomic=True)

    assert [result["status"] for result in answer.json["results"]] == [422, 424]
    assert len(answer.data) < 1024 + 320, "a request with its head has more than 320 bytes"


def test_the_dry_run_of_an_atomic_batch_is_refused_as_the_batch_is(desk: Desk) -> None:
    bad = create(quantity="0")

    rehearsed, done = (
        submit(desk, create(), bad, create(), bad, bad, atomic=True, query=query) for query in ("?dry_run=true", "")
    )

    assert (rehearsed.status_code, done.status_code) == (422, 422)
    answers = [[result["status"] for result in answer.json["results"]] for answer in (rehearsed, done)]
    assert answers == [[424, 422, 424, 424, 424]] * 2
    assert rehearsed.json["results"][1]["problem"]["errors"] == done.json["results"][1]["problem"]["errors"]
    assert abs(len(rehearsed.data) - len(done.data)) < 10


def test_an_atomic_batch_counts_its_own_commands_against_the_limits(desk: Desk) -> None:
    limits(desk, max_orders_per_minute=2)

    assert submit(desk, create(), create(), create(), atomic=True).status_code == 422
    results = submit(desk, create(), create(), create()).json["results"]
    assert [result["status"] for result in results] == [201, 201, 422]


def test_a_batch_counts_each_order_for_those_after_it(desk: Desk) -> None:
    limits(desk, max_open_orders=3)

    results = submit(desk, *[limit()] * 5).json["results"]

    assert [result["status"] for result in results] == [201, 201, 201, 422, 422]
    assert len(desk.rows("refusal")) == 2


def codes(problems: Iterable[Any]) -> list[str | None]:
    return [problem.get("code") for problem in problems]


PIECES = {
    "order": create(),
    "another": create(symbol="AAPL", quantity="2"),
    "disabled": create(symbol="MSFT"),
    "unreadable": create(quantity="0"),
    "too large": create(quantity="60"),
    "unknown": cancel("11111111-1111-4111-8111-111111111111"),
}


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(names=st.lists(st.sampled_from(sorted(PIECES)), min_size=1, max_size=8))
def test_a_batch_is_answered_as_its_commands_one_by_one(
    new_desk: Callable[..., Desk], organization: Organization, names: list[str]
) -> None:
    one_by_one, at_once = (new_desk(organization=organization) for _ in range(2))
    for each in (one_by_one, at_once):
        disable(each, "MSFT")
        limits(each, max_position_quantity="50", max_open_orders=4)

    singles = [one_by_one.submit(PIECES[name]) for name in names]
    results = submit(at_once, *(PIECES[name] for name in names)).json["results"]

    assert [result["status"] for result in results] == [answer.status_code for answer in singles]
    assert codes(result.get("problem", {}) for result in results) == codes(answer.json for answer in singles)
    assert len(at_once.rows("action")) == len(one_by_one.rows("action"))
    assert len(at_once.rows("refusal")) == len(one_by_one.rows("refusal"))


def test_a_batch_has_1_to_100_commands(desk: Desk) -> None:
    for bodies in ([], [create()] * 101):
        answer = submit(desk, *bodies)
        assert (answer.status_code, answer.json["errors"][0]["pointer"]) == (422, "/commands")
    wrong = desk.client.post(f"{desk.path}/batch", json={"commands": {"a": 1}}, headers=desk.headers)
    assert wrong.json["errors"][0]["pointer"] == "/commands"
    assert [result["status"] for result in submit(desk, *[create()] * 100).json["results"]] == [201] * 100
    odd = submit(desk, *[{"command": None}, {"command": 1}, {"command": {}}])
    assert [result["status"] for result in odd.json["results"]] == [422] * 3


def test_a_batch_sent_again_with_its_key_is_answered_as_before(desk: Desk) -> None:
    first = submit(desk, create(), create(quantity="2"), **{"Idempotency-Key": "b"}).json["results"]
    again = submit(desk, create(), create(quantity="2"), **{"Idempotency-Key": "b"}).json["results"]

    assert [result["action"] for result in again] == [result["action"] for result in first]
    assert len(desk.rows("action")) == 2


def test_a_dry_run_of_a_batch_writes_nothing(desk: Desk) -> None:
    for atomic in (False, True):
        answer = submit(desk, create(), create(quantity="2"), atomic=atomic, query="?dry_run=true")
        assert [result["status"] for result in answer.json["results"]] == [200, 200]
    assert desk.rows("action") == desk.rows("account_head") == []


def test_two_cancels_of_one_intent_in_an_atomic_batch_are_one_action(desk: Desk) -> None:
    intent_id = desk.created(limit())["intent_id"]

    answer = submit(desk, cancel(intent_id), cancel(intent_id), atomic=True)

    assert answer.status_code == 200, answer.json
    first, second = answer.json["results"]
    assert (first["status"], second["status"]) == (201, 200)
    assert first["action"]["id"] == second["action"]["id"]
    assert len(desk.rows("action")) == 2


def test_an_atomic_batch_sent_again_with_its_key_is_answered_as_before(desk: Desk) -> None:
    first = submit(desk, create(), create(quantity="2"), atomic=True, **{"Idempotency-Key": "b"}).json
    again = submit(desk, create(), create(quantity="2"), atomic=True, **{"Idempotency-Key": "b"}).json

    assert again == first
    assert len(desk.rows("action")) == 2


def test_an_outage_in_an_atomic_batch_is_an_outage_and_no_refusal(desk: Desk) -> None:
    desk.created(create())
    other = psycopg2.connect(desk.platform.admin_url)
    other.cursor().execute(
        "SELECT 1 FROM intents.account_head WHERE account_id = %s FOR UPDATE", (str(desk.account_id),)
    )

    answer = submit(desk, create(), create(), atomic=True)
    other.close()

    assert (answer.status_code, answer.json["code"]) == (503, "unavailable")
    assert len(desk.rows("action")) == 1


def test_a_batch_that_is_to_leave_room_for_others_rests_between_its_commands(desk: Desk) -> None:
    command = model.Create({}, "AAPL", "BUY", "AUTO", model.Spec("Market", {"quantity": "10"}))
    owner = model.Owner(desk.organization.id, "paper", frozenset())
    pending = [PendingSubmit(model.Submission(desk.account_id, command, model.Actor("api_key", "x"), owner))] * 20

    def seconds(*, leaves_room: bool) -> float:
        began = time.monotonic()
        outcomes = usecases.submit(desk.deps, pending, Policy.EACH, leaves_room=leaves_room)
        assert all(isinstance(outcome, usecases.Result) for outcome in outcomes), outcomes
        return time.monotonic() - began

    in_one_go = min(seconds(leaves_room=False) for _ in range(3))
    with_rests = seconds(leaves_room=True)

    least = min(REST_FACTOR * in_one_go / 2, LONGEST_REST_S * (len(pending) - 2))
    assert least < with_rests < in_one_go * 3 * REST_FACTOR + MOST_REST_S


def test_after_an_outage_the_rest_of_a_batch_is_not_tried(desk: Desk, statements: list[str]) -> None:
    desk.created(create())
    statements.clear()
    other = psycopg2.connect(desk.platform.admin_url)
    other.cursor().execute(
        "SELECT 1 FROM intents.account_head WHERE account_id = %s FOR UPDATE", (str(desk.account_id),)
    )

    answer = submit(desk, create(quantity="0"), create(), create(), create(quantity="0"))
    other.close()

    assert [result["status"] for result in answer.json["results"]] == [422, 503, 503, 503]
    assert statements.count("intents_create") == 1
    assert len(desk.rows("action")) == 1


@pytest.mark.parametrize(("key", "status"), [("", 400), ("k" * 256, 400), ("caf\u00e9", 400), ("k" * 255, 200)])
def test_the_key_of_a_batch_is_taken_or_refused_as_a_whole(desk: Desk, key: str, status: int) -> None:
    answer = submit(desk, create(), create(quantity="2"), **{"Idempotency-Key": key})

    assert answer.status_code == status
    assert status == 200 or answer.json["code"] == "bad_idempotency_key"
    assert len(desk.rows("action")) == (2 if status == 200 else 0)


def test_no_other_request_can_have_the_keys_of_a_batch(desk: Desk) -> None:
    submit(desk, create(), create(quantity="2"), **{"Idempotency-Key": "b"})

    kept = [row["key"] for row in desk.rows("idempotency")]
    single = desk.submit(create(quantity="3"), Idempotency_Key="b 1")

    assert single.status_code == 201
    assert all("\n" in key for key in kept) and len(kept) == 2


@pytest.mark.parametrize("atomic", [False, True])
def test_pointers_lead_into_the_body_of_the_batch(desk: Desk, atomic: bool) -> None:
    intent_id = desk.created(limit())["intent_id"]
    market = replace(intent_id, Market={"quantity": "1"})

    for bad, pointer in (
        (create(quantity="0"), "/commands/1/payload/spec/Market/quantity"),
        ({"command": 7}, "/commands/1"),
        (market, "/commands/1/payload/spec"),
    ):
        result = submit(desk, create(), bad, atomic=atomic).json["results"][1]
        assert [error["pointer"] for error in result["problem"]["errors"]] == [pointer]
