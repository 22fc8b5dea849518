"""An order stays in the account at the broker where it was sent; without a usable credential a command waits."""

from typing import Any
from uuid import UUID, uuid5

import pytest
import requests

from intents.execution.client_order_id import client_order_id
from intents.execution.credentials import derived
from tip_testing.commands import cancel, create, limit
from tip_testing.waiting import eventually

from .conftest import PAPER_SECRET, give_credential
from .hands import executor, make_due, of_desk, reconciler, state_of  # noqa: F401 - fixtures


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


def test_a_former_credential_that_was_revoked_keeps_nothing_of_todays_account_from_being_seen(new_desk, paper, request):
    paper.quote("TODAY", "9", "10")
    desk = new_desk(broker="alpaca")
    give_credential(desk, f"first of {desk.account_id}")
    former = desk.created(create("SIM.OPEN"))
    eventually(lambda: state_of(desk, former)["status"] == "ACCEPTED")
    give_credential(desk, f"second of {desk.account_id}", name="next credential")
    today = desk.created(limit("TODAY", "5", "8", time_in_force="GTC"))
    eventually(lambda: state_of(desk, today)["status"] == "ACCEPTED")
    give_credential(desk, f"INVALID since {desk.account_id}")

    paper.quote("TODAY", "7", "8")
    request.getfixturevalue("reconciler")

    eventually(lambda: state_of(desk, today)["status"] == "FILLED", 60)
    eventually(lambda: state_of(desk, former)["reason_code"] == "OPERATOR_REQUIRED", 60)
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


def test_a_cancel_waits_for_a_credential_that_is_on_its_way_into_the_vault(new_desk, paper):
    desk = new_desk(broker="alpaca")
    give_credential(desk, f"first of {desk.account_id}")
    intent = desk.created(create("SIM.OPEN"))
    eventually(lambda: state_of(desk, intent)["status"] == "ACCEPTED")
    desk.execute("UPDATE accounts.credential SET status = 'pending' WHERE account_id = :account_id")

    desk.created(cancel(intent["intent_id"]))
    eventually(lambda: state_of(desk, intent)["reason_code"] == "CREDENTIAL_MISSING")
    desk.execute("UPDATE accounts.credential SET status = 'active' WHERE account_id = :account_id")

    eventually(lambda: state_of(desk, intent)["status"] == "CANCELED", 60)
    assert [order["status"] for order in of_desk(desk, paper)] == ["canceled"]


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
