"""Canceling all open intents of an account: one durable request, carried out once whoever dies meanwhile."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import Connection, text

from intents.model import Update
from intents.model.bulk_operations import MOST_UNFINISHED
from intents.usecases import bulk_runner, run_bulk_operations, run_maintenance
from tip_testing.commands import Body, cancel, create, limit
from tip_testing.identity_fixtures import IdentityFixtures

from .broker_side import accepted, report
from .conftest import Desk
from .filling import held_row


@pytest.fixture(autouse=True)
def nothing_left(admin: Connection) -> None:
    """Of the tests before."""
    admin.execute(text("DELETE FROM intents.bulk_operation"))


def cancel_all(desk: Desk, body: Any = None, **headers: str) -> Any:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return desk.client.post(f"{desk.path}/cancel", json=body or {}, headers={**desk.headers, **named})


def open_intents(desk: Desk, *bodies: Body) -> list[str]:
    """Intents whose orders are open at the broker."""
    made = [desk.created(body)["intent_id"] for body in bodies or (limit(),)]
    for intent_id in made:
        accepted(desk, intent_id, f"b-{intent_id}")
    return made


def run(desk: Desk) -> None:
    """What the scheduler does until nothing more can be done at once."""
    desk.execute("UPDATE intents.bulk_operation SET next_attempt_at = now() WHERE account_id = :account_id")
    while run_bulk_operations(desk.deps):
        pass


def operation(desk: Desk, answer: Any) -> Any:
    found = desk.client.get(answer.headers["Location"], headers=desk.headers)
    assert found.status_code == 200
    return found.json


def statuses(desk: Desk) -> dict[str, str]:
    return {str(row["id"]): row["status"] for row in desk.rows("intent")}


def cancels(desk: Desk) -> Counter[str]:
    return Counter(str(row["intent_id"]) for row in desk.rows("action") if row["type"] == "CANCEL")


def test_all_open_intents_are_canceled_and_the_operation_ends_with_the_last(desk: Desk) -> None:
    first, second = open_intents(desk, limit(), limit("MSFT"))

    answer = cancel_all(desk, {"reason": "END_OF_DAY"})

    assert answer.status_code == 202
    shown = [answer.json[name] for name in ("status", "type", "reason", "total", "done")]
    assert shown == ["PENDING", "CANCEL_ORDERS", "END_OF_DAY", 2, 0]
    run(desk)
    assert statuses(desk) == {first: "PENDING_CANCEL", second: "PENDING_CANCEL"}
    found = operation(desk, answer)
    assert (found["status"], found["total"], found["done"]) == ("CANCELING", 2, 0)

    report(desk, first, Update.CANCELED)
    run(desk)
    assert operation(desk, answer)["done"] == 1

    report(desk, second, Update.EXPIRED)
    run(desk)
    found = operation(desk, answer)
    assert (found["status"], found["total"], found["done"]) == ("COMPLETED", 2, 2)
    assert found["completed_at"] is not None


def test_an_operation_names_the_orders_that_it_waits_for_and_why(desk: Desk) -> None:
    stuck, ended = open_intents(desk, limit(), limit())
    answer = cancel_all(desk)
    run(desk)
    report(desk, ended, Update.CANCELED)
    desk.execute(
        "UPDATE intents.intent SET outcome = 'unknown', reason_code = 'OPERATOR_REQUIRED' "
        "WHERE account_id = :account_id AND id = :id",
        id=stuck,
    )

    waiting = operation(desk, answer)["waiting_for"]

    assert waiting == [
        {"intent_id": stuck, "status": "PENDING_CANCEL", "reason_code": "OPERATOR_REQUIRED", "outcome": "unknown"}
    ]
    report(desk, stuck, Update.CANCELED)
    run(desk)
    assert operation(desk, answer)["waiting_for"] == []


def test_the_cancels_are_the_callers_with_the_reason(desk: Desk) -> None:
    [intent_id] = open_intents(desk)
    answer = cancel_all(desk)

    run(desk)

    [action] = [row for row in desk.rows("action") if row["type"] == "CANCEL"]
    assert str(action["intent_id"]) == intent_id
    assert (action["actor_type"], action["actor_id"]) == ("api_key", answer.json["actor"]["id"])
    assert action["reason"] == "CANCEL_ALL"
    assert desk.get("/verify").json["valid"] is True


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [({"symbol": "aapl"}, {"AAPL BUY", "AAPL SELL"}), ({"order_side": "SELL"}, {"AAPL SELL", "MSFT SELL"}),
     ({"symbol": "AAPL", "order_side": "BUY"}, {"AAPL BUY"}), ({"symbol": "TSLA"}, set())],
)  # fmt: skip
def test_a_symbol_or_side_restricts_what_is_canceled(desk: Desk, chosen: Body, expected: set[str]) -> None:
    open_intents(desk, *(create(symbol, side=side) for symbol in ("AAPL", "MSFT") for side in ("BUY", "SELL")))
    answer = cancel_all(desk, chosen)

    run(desk)

    canceled = {f"{row['symbol']} {row['order_side']}" for row in desk.rows("action") if row["type"] == "CANCEL"}
    assert canceled == expected
    assert operation(desk, answer)["total"] == len(expected)


def test_an_intent_submitted_after_the_answer_is_left_alone(desk: Desk) -> None:
    [before] = open_intents(desk)
    cancel_all(desk)
    [after] = open_intents(desk)

    run(desk)

    assert statuses(desk) == {before: "PENDING_CANCEL", after: "ACCEPTED"}


def test_what_is_being_canceled_already_is_not_canceled_again(desk: Desk) -> None:
    first, second = open_intents(desk, limit(), limit())
    desk.submit(cancel(first))
    answers = [cancel_all(desk), cancel_all(desk)]

    run(desk)
    run(desk)

    assert cancels(desk) == {first: 1, second: 1}
    for intent_id in (first, second):
        report(desk, intent_id, Update.CANCELED)
    run(desk)
    assert [operation(desk, answer)["status"] for answer in answers] == ["COMPLETED"] * 2


def test_a_cancel_that_the_broker_rejected_is_repeated_after_a_minute(desk: Desk) -> None:
    [intent_id] = open_intents(desk)
    cancel_all(desk)
    run(desk)
    report(desk, intent_id, Update.CANCEL_REJECTED)

    run(desk)
    assert cancels(desk) == {intent_id: 1}

    desk.execute("ALTER TABLE intents.action DISABLE TRIGGER USER")
    desk.execute("UPDATE intents.action SET created_at = now() - interval '2 minutes' WHERE account_id = :account_id")
    run(desk)
    assert cancels(desk) == {intent_id: 2}


def test_many_schedulers_cancel_each_intent_once(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_runner, "STEP_BATCH", 3)
    made = open_intents(desk, *[limit() for _ in range(20)])
    cancel_all(desk)
    cancel_all(desk, {"symbol": "AAPL"})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: [run_bulk_operations(desk.deps) for _ in range(20)], range(4)))
    run(desk)

    assert cancels(desk) == dict.fromkeys(made, 1)


def test_an_operation_whose_scheduler_was_killed_goes_on_when_its_lease_ends(desk: Desk) -> None:
    [intent_id] = open_intents(desk)
    cancel_all(desk)
    desk.execute("UPDATE intents.bulk_operation SET lease_token = gen_random_uuid(), lease_until = now() + '1 hour' "
                 "WHERE account_id = :account_id")  # fmt: skip
    run(desk)
    assert cancels(desk) == {}

    desk.execute("UPDATE intents.bulk_operation SET lease_until = now() WHERE account_id = :account_id")
    run(desk)

    assert cancels(desk) == {intent_id: 1}


def test_an_intent_whose_row_is_held_keeps_no_other_from_being_canceled(desk: Desk) -> None:
    held, free = open_intents(desk, limit(), limit())
    answer = cancel_all(desk)

    with held_row(desk, held):
        run_bulk_operations(desk.deps)
        assert statuses(desk) == {held: "ACCEPTED", free: "PENDING_CANCEL"}

    run(desk)
    assert cancels(desk) == {held: 1, free: 1}
    assert operation(desk, answer)["total"] == 2


def test_the_same_key_and_body_is_one_operation(desk: Desk) -> None:
    first = cancel_all(desk, {"symbol": "AAPL"}, Idempotency_Key="k")
    again = cancel_all(desk, {"symbol": " aapl"}, Idempotency_Key="k")
    other = cancel_all(desk, {}, Idempotency_Key="k")

    assert (again.status_code, again.json["id"]) == (202, first.json["id"])
    assert again.headers["Idempotent-Replayed"] == "true" and "Idempotent-Replayed" not in first.headers
    assert (other.status_code, other.json["code"]) == (422, "idempotency_key_reused")
    assert len(desk.rows("bulk_operation")) == 1


def test_the_same_key_at_once_is_one_operation(desk: Desk) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: cancel_all(desk, {}, Idempotency_Key="at once"), range(8)))

    assert {answer.status_code for answer in answers} <= {202, 409}
    assert len({answer.json["id"] for answer in answers if answer.status_code == 202}) == 1
    assert len(desk.rows("bulk_operation")) == 1


@pytest.mark.parametrize("body", [{"symbol": ""}, {"order_side": "LONG"}, {"reason": "x" * 65}, {"all": True}, []])
def test_a_body_that_says_something_else_is_refused(desk: Desk, body: Any) -> None:
    answer = desk.client.post(f"{desk.path}/cancel", json=body, headers=desk.headers)

    assert (answer.status_code, answer.json["code"]) == (422, "invalid")
    assert desk.rows("bulk_operation") == []


def test_a_bad_key_is_refused(desk: Desk) -> None:
    assert cancel_all(desk, {}, Idempotency_Key="x" * 256).json["code"] == "bad_idempotency_key"


def test_it_needs_no_trading_live(identity: IdentityFixtures, new_desk: Callable[..., Desk]) -> None:
    desk = new_desk("live", identity.organization(entitlements=()))

    assert cancel_all(desk).status_code == 202


def test_unfinished_operations_of_an_account_are_limited(desk: Desk) -> None:
    desk.execute("INSERT INTO intents.bulk_operation (account_id, id, organization_id, type, reason, actor_type, "
                 "actor_id, lease_until) SELECT :account_id, gen_random_uuid(), :organization_id, 'CANCEL_ORDERS', "
                 "'x', 'system', 'x', now() + '1 hour' FROM generate_series(1, :most)",
                 organization_id=desk.organization.id, most=MOST_UNFINISHED)  # fmt: skip

    answer = cancel_all(desk)

    assert (answer.status_code, answer.json["code"]) == (409, "limit_reached")
    desk.execute("DELETE FROM intents.bulk_operation WHERE account_id = :account_id")


def test_one_organizations_many_operations_do_not_hold_up_anothers(
    new_desk: Callable[..., Desk], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_runner, "CLAIMED_AT_ONCE", 2)
    busy, other = new_desk(), new_desk()
    for _ in range(20):
        cancel_all(busy)
    [intent_id] = open_intents(other)
    cancel_all(other)

    for _ in range(5):
        run_bulk_operations(other.deps)

    assert cancels(other) == {intent_id: 1}


def test_an_operation_of_another_organization_is_not_found(desk: Desk, new_desk: Callable[..., Desk]) -> None:
    foreign = new_desk()
    answer = cancel_all(foreign)
    mixed = f"/v1/accounts/{desk.account_id}/bulk-operations/{answer.json['id']}"

    for path in (answer.headers["Location"], mixed):
        assert desk.client.get(path, headers=desk.headers).status_code == 404


def test_completed_operations_are_forgotten_after_a_week(desk: Desk) -> None:
    answer = cancel_all(desk)
    run(desk)
    assert operation(desk, answer)["status"] == "COMPLETED"
    desk.execute("UPDATE intents.bulk_operation SET completed_at = now() - interval '8 days'")

    run_maintenance(desk.deps)

    assert desk.rows("bulk_operation") == []
