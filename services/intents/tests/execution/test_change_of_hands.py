"""An order stays in the account at the broker where it was sent; without a usable credential a command waits."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid5

import pytest
import requests

from intents.execution import operator, recorder
from intents.execution.client_order_id import client_order_id
from intents.execution.credentials import derived
from tip_brokers import OrderStatus
from tip_testing.commands import cancel, create, limit
from tip_testing.waiting import eventually

from .conftest import PAPER_SECRET, give_credential


@pytest.fixture(scope="module", autouse=True)
def executor(start: Callable[..., Any]) -> None:
    """It queries an unknown outcome only when a test makes it due."""
    start("executor", QUERY_AFTER_SECONDS="3600")


def make_due(desk: Any) -> None:
    desk.execute("UPDATE intents.intent SET next_attempt_at = now() WHERE account_id = :account_id")


@pytest.fixture
def reconciler(start: Callable[..., Any]) -> Any:
    """Only where a test wants it: it would find out what an unknown outcome is before anybody has queried it."""
    worker = start("reconciler")
    yield worker
    worker.end()


@pytest.fixture
def state() -> Callable[..., Any]:
    return lambda desk, intent: desk.get(f"/{intent['intent_id']}").json["state"]


def of_desk(desk: Any, paper: Any) -> list[Any]:
    ours = {client_order_id(row["id"]) for row in desk.rows("action")}
    return [order for order in paper.ledger() if order["client_order_id"] in ours]


def test_an_unknown_outcome_is_queried_under_the_credential_of_the_send(desk, paper, reaches):
    intent = desk.created(create("SIM.TIMEOUT_AFTER_ACCEPT"))
    reaches(intent, "SUBMITTED")

    give_credential(desk, "another-account")
    make_due(desk)
    state = reaches(intent, "ACCEPTED", "FILLED", seconds=60)

    [order] = of_desk(desk, paper)
    assert order["posts"] == 1 and order["order_id"] == state["broker_order_id"]


def test_a_cancel_reaches_the_order_where_it_is(desk, paper, reaches):
    intent = desk.created(create("SIM.OPEN"))
    reaches(intent, "ACCEPTED")
    give_credential(desk, "another-account")

    desk.created(cancel(intent["intent_id"]))

    reaches(intent, "CANCELED", seconds=60)
    assert [order["status"] for order in of_desk(desk, paper)] == ["canceled"]


@pytest.mark.usefixtures("reconciler")
def test_what_is_filled_under_a_former_credential_is_seen(desk, paper, reaches):
    paper.quote("FORMER", "9", "10")
    spec = {"Limit": {"quantity": "5", "limit_price": "8", "time_in_force": "GTC"}}
    payload = {"symbol": "FORMER", "order_side": "BUY", "spec": spec}
    intent = desk.created({"command": {"type": "CREATE", "payload": payload}})
    reaches(intent, "ACCEPTED")
    give_credential(desk, "another-account")

    paper.quote("FORMER", "7", "8")

    assert reaches(intent, "FILLED", seconds=60)["filled_quantity"] == "5"


def test_a_fill_moves_the_position_also_while_the_next_credential_is_not_in_the_vault(desk, paper, reaches, request):
    paper.quote("STILL", "9", "10")
    intent = desk.created(limit("STILL", "5", "8", time_in_force="GTC"))
    reaches(intent, "ACCEPTED")
    give_credential(desk, "another-account", status="pending")
    desk.execute("UPDATE accounts.credential SET version = 2 WHERE account_id = :account_id")

    paper.quote("STILL", "7", "8")
    request.getfixturevalue("reconciler")

    reaches(intent, "FILLED", seconds=60)
    assert [row["quantity"] for row in desk.rows("position")] == [5]


def test_a_former_credential_that_was_revoked_keeps_nothing_of_todays_account_from_being_seen(
    new_desk, paper, state, request
):
    paper.quote("TODAY", "9", "10")
    desk = new_desk(broker="alpaca")
    give_credential(desk, f"first of {desk.account_id}")
    former = desk.created(create("SIM.OPEN"))
    eventually(lambda: state(desk, former)["status"] == "ACCEPTED")
    give_credential(desk, f"second of {desk.account_id}", name="next credential")
    today = desk.created(limit("TODAY", "5", "8", time_in_force="GTC"))
    eventually(lambda: state(desk, today)["status"] == "ACCEPTED")
    give_credential(desk, f"INVALID since {desk.account_id}")

    paper.quote("TODAY", "7", "8")
    request.getfixturevalue("reconciler")

    eventually(lambda: state(desk, today)["status"] == "FILLED", 60)
    eventually(lambda: state(desk, former)["reason_code"] == "OPERATOR_REQUIRED", 60)
    [event] = [row for row in desk.outbox() if row["event_type"] == "credential.invalid"]
    assert event["payload"]["credential_id"] == str(uuid5(desk.account_id, "credential"))


def test_a_credential_under_which_nothing_can_have_been_sent_binds_nothing(new_desk, paper):
    """An executor was killed after its claim, when the account had no usable credential yet."""
    desk = new_desk(broker="alpaca")
    intent = desk.created(create("SIM.OPEN"))
    eventually(lambda: [row["credential"] for row in desk.rows("broker_order")] == ["derived"])
    desk.execute(
        "UPDATE intents.intent SET submit_started_at = now() - interval '1 minute' WHERE account_id = :account_id"
    )

    give_credential(desk, f"first of {desk.account_id}")

    eventually(lambda: [row["status"] for row in desk.rows("intent")] == ["ACCEPTED"], 60)
    assert [order["posts"] for order in of_desk(desk, paper)] == [1] and intent["id"]


def test_a_cancel_waits_for_a_credential_that_is_on_its_way_into_the_vault(new_desk, paper, state):
    desk = new_desk(broker="alpaca")
    give_credential(desk, f"first of {desk.account_id}")
    intent = desk.created(create("SIM.OPEN"))
    eventually(lambda: state(desk, intent)["status"] == "ACCEPTED")
    desk.execute("UPDATE accounts.credential SET status = 'pending' WHERE account_id = :account_id")

    desk.created(cancel(intent["intent_id"]))
    eventually(lambda: state(desk, intent)["reason_code"] == "CREDENTIAL_MISSING")
    desk.execute("UPDATE accounts.credential SET status = 'active' WHERE account_id = :account_id")

    eventually(lambda: state(desk, intent)["status"] == "CANCELED", 60)
    assert [order["status"] for order in of_desk(desk, paper)] == ["canceled"]


@pytest.fixture
def out_of_reach(new_desk: Any, state: Any) -> tuple[Any, Any]:
    """A desk with a command whose outcome is unknown, and a credential that now opens another account."""
    desk = new_desk(broker="alpaca")
    give_credential(desk, f"first of {desk.account_id}")
    intent = desk.created(create("SIM.TIMEOUT_AFTER_ACCEPT"))
    eventually(lambda: state(desk, intent)["status"] == "SUBMITTED")
    give_credential(desk, f"second of {desk.account_id}", version=2)
    make_due(desk)
    eventually(lambda: state(desk, intent)["reason_code"] == "OPERATOR_REQUIRED", 60)
    return desk, intent


def test_what_no_credential_can_query_waits_for_an_operator_and_is_sent_to_no_other_account(out_of_reach, paper, state):
    desk, intent = out_of_reach

    assert [order["posts"] for order in of_desk(desk, paper)] == [1]
    assert state(desk, intent)["outcome"] == "unknown"
    [listed] = [found for found in operator.unresolved(desk.deps.engine) if found.account_id == desk.account_id]
    assert listed.client_order_id == client_order_id(UUID(intent["id"])) and listed.broker_account


def test_an_operator_says_what_became_of_the_order(out_of_reach, paper, state):
    desk, intent = out_of_reach
    [order] = of_desk(desk, paper)
    found = operator.Found(order["order_id"], OrderStatus.FILLED, Decimal(10), Decimal("100.01"))

    operator.resolve(desk.deps.engine, client_order_id(UUID(intent["id"])), found, "seen in the broker's list")

    settled = state(desk, intent)
    assert settled["status"] == "FILLED" and settled["filled_quantity"] == "10" and settled["outcome"] is None
    assert settled["broker_order_id"] == order["order_id"]
    with pytest.raises(operator.NotUnresolved):
        operator.resolve(desk.deps.engine, client_order_id(UUID(intent["id"])), None, "again")


def test_a_command_is_settled_also_if_its_order_waits_for_an_operator_at_once(out_of_reach, paper, monkeypatch, state):
    """The reconciler may have found meanwhile that nobody can query the order that now works."""
    desk, intent = out_of_reach
    [order] = of_desk(desk, paper)
    record = recorder.record

    def record_and_check(*arguments: Any) -> Any:
        recorded = record(*arguments)
        desk.execute("UPDATE intents.intent SET reason_code = 'OPERATOR_REQUIRED' WHERE account_id = :account_id")
        return recorded

    monkeypatch.setattr(recorder, "record", record_and_check)
    found = operator.Found(order["order_id"], OrderStatus.WORKING, Decimal(0), None)

    resolved = operator.resolve(
        desk.deps.engine, client_order_id(UUID(intent["id"])), found, "seen in the broker's list"
    )

    assert (resolved.type, state(desk, intent)["status"]) == ("CREATE", "ACCEPTED")
    with pytest.raises(operator.StillUnresolved):
        operator.resolve(desk.deps.engine, client_order_id(UUID(intent["id"])), found, "the same again")


def test_an_operator_says_that_there_is_no_order(out_of_reach, state):
    desk, intent = out_of_reach

    operator.resolve(desk.deps.engine, client_order_id(UUID(intent["id"])), None, "not in the broker's list")

    settled = state(desk, intent)
    assert settled["status"] == "FAILED" and settled["reason_code"] == "RESOLVED_BY_OPERATOR"
    assert [row["open_actions"] for row in desk.rows("intent")] == [0]


@pytest.mark.usefixtures("reconciler")
def test_an_accepted_order_that_no_credential_can_query_waits_for_an_operator(new_desk, paper, state):
    desk = new_desk(broker="alpaca")
    give_credential(desk, f"first of {desk.account_id}")
    intent = desk.created(create("SIM.OPEN"))
    eventually(lambda: state(desk, intent)["status"] == "ACCEPTED")
    give_credential(desk, f"second of {desk.account_id}", version=2)
    eventually(lambda: state(desk, intent)["reason_code"] == "OPERATOR_REQUIRED", 60)
    name, [order] = client_order_id(UUID(intent["id"])), of_desk(desk, paper)

    with pytest.raises(operator.WasAccepted):
        operator.resolve(desk.deps.engine, name, None, "no")
    found = operator.Found(order["order_id"], OrderStatus.CANCELED, Decimal(4), Decimal(100))
    operator.resolve(desk.deps.engine, name, found, "canceled by telephone")

    assert state(desk, intent)["status"] == "CANCELED" and state(desk, intent)["filled_quantity"] == "4"


@pytest.mark.usefixtures("reconciler")
def test_an_open_order_of_a_deleted_account_waits_for_an_operator(desk, reaches):
    intent = desk.created(create("SIM.OPEN"))
    reaches(intent, "ACCEPTED")

    desk.execute("UPDATE accounts.account SET deleted_at = now() WHERE id = :account_id")

    eventually(lambda: [row["reason_code"] for row in desk.rows("intent")] == ["OPERATOR_REQUIRED"], 60)
    [listed] = [found for found in operator.unresolved(desk.deps.engine) if found.account_id == desk.account_id]
    assert listed.type == "ORDER" and listed.broker_order_id


def test_an_open_order_of_an_ended_intent_is_listed_until_it_has_ended(desk, reaches):
    intent = desk.created(create("SIM.OPEN"))
    accepted = reaches(intent, "ACCEPTED")
    desk.execute("UPDATE intents.intent SET status = 'CANCELED' WHERE account_id = :account_id")

    [listed] = [found for found in operator.unresolved(desk.deps.engine) if found.account_id == desk.account_id]
    assert listed.type == "UNWANTED" and listed.broker_order_id == accepted["broker_order_id"]
    found = operator.Found(accepted["broker_order_id"], OrderStatus.CANCELED, Decimal(4), Decimal(100))
    operator.resolve(desk.deps.engine, listed.client_order_id, found, "canceled by telephone")

    assert reaches(intent, "CANCELED")["filled_quantity"] == "4"
    assert desk.account_id not in [found.account_id for found in operator.unresolved(desk.deps.engine)]


@pytest.mark.usefixtures("reconciler")
def test_an_order_that_surfaces_after_its_intent_has_ended_is_logged_and_canceled(desk, paper, hold_back, reaches):
    """Sent by an executor that died, canceled, not found at the broker for long enough, and there all the same."""
    with hold_back():
        intent = desk.created(create("SIM.OPEN"))
        name = client_order_id(UUID(intent["id"]))
        desk.execute(
            "INSERT INTO intents.broker_order (account_id, client_order_id, intent_id, action_sequence, status, "
            "credential) VALUES (:account_id, :name, :intent_id, 1, 'STARTED', 'derived')",
            name=name,
            intent_id=intent["intent_id"],
        )
        desk.execute(
            "UPDATE intents.intent SET submit_started_at = now() - interval '1 minute' WHERE account_id = :account_id"
        )
        desk.created(cancel(intent["intent_id"]))
    assert reaches(intent, "CANCELED", seconds=60)["reason_code"] == "NOT_FOUND_AT_BROKER"

    keys = derived(desk.account_id, PAPER_SECRET)
    headers = {"APCA-API-KEY-ID": keys["key_id"], "APCA-API-SECRET-KEY": keys["secret_key"]}
    body = {"symbol": "SIM.OPEN", "side": "buy", "type": "market", "qty": "10", "time_in_force": "day"}
    body["client_order_id"] = name
    requests.post(paper.url + "/v2/orders", json=body, headers=headers, timeout=60).raise_for_status()

    eventually(lambda: [order["status"] for order in of_desk(desk, paper)] == ["canceled"], 60)

    def events() -> list[Any]:
        return [row for row in desk.rows("account_event") if row["payload"].get("reason_code") == "ORDER_AFTER_END"]

    assert {row["to_status"] for row in eventually(events)} == {"CANCELED"}
    assert reaches(intent, "CANCELED")["reason_code"] == "ORDER_AFTER_END"


def test_a_refused_credential_parks_the_intent_and_is_reported_to_accounts_and_a_new_one_frees_it(new_desk):
    desk = new_desk(broker="alpaca")
    give_credential(desk, "INVALID-key")
    intent = desk.created(create("SIM.OPEN"))

    def state() -> Any:
        return desk.get(f"/{intent['intent_id']}").json["state"]

    eventually(lambda: state()["reason_code"] == "CREDENTIAL_INVALID")
    assert state()["status"] == "PENDING"
    [event] = [row for row in desk.outbox() if row["event_type"] == "credential.invalid"]
    assert event["payload"]["credential_id"] == str(uuid5(desk.account_id, "credential"))
    assert "mine" not in str(event["payload"])

    give_credential(desk, "valid-key", version=2)
    eventually(lambda: state()["status"] == "ACCEPTED")
    assert state()["reason_code"] is None


def test_an_account_without_a_credential_waits_for_one(new_desk):
    desk = new_desk(broker="alpaca")
    intent = desk.created(create("SIM.OPEN"))

    eventually(lambda: desk.get(f"/{intent['intent_id']}").json["state"]["reason_code"] == "CREDENTIAL_MISSING")
    assert desk.get(f"/{intent['intent_id']}").json["state"]["status"] == "PENDING"
