"""An order that no credential can query any more waits for an operator, who says what became of it."""

from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from intents.execution import operator, recorder
from intents.execution.client_order_id import client_order_id
from tip_brokers import OrderStatus
from tip_testing.commands import create
from tip_testing.waiting import eventually

from .conftest import give_credential
from .hands import executor, make_due, of_desk, reconciler, state_of  # noqa: F401 - fixtures


@pytest.fixture
def out_of_reach(new_desk: Any) -> tuple[Any, Any]:
    """A desk with a command whose outcome is unknown, and a credential that now opens another account."""
    desk = new_desk(broker="alpaca")
    give_credential(desk, f"first of {desk.account_id}")
    intent = desk.created(create("SIM.TIMEOUT_AFTER_ACCEPT"))
    eventually(lambda: state_of(desk, intent)["status"] == "SUBMITTED")
    give_credential(desk, f"second of {desk.account_id}", version=2)
    make_due(desk)
    eventually(lambda: state_of(desk, intent)["reason_code"] == "OPERATOR_REQUIRED", 60)
    return desk, intent


def test_what_no_credential_can_query_waits_for_an_operator_and_is_sent_to_no_other_account(out_of_reach, paper):
    desk, intent = out_of_reach

    assert [order["posts"] for order in of_desk(desk, paper)] == [1]
    assert state_of(desk, intent)["outcome"] == "unknown"
    [listed] = [found for found in operator.unresolved(desk.deps.engine) if found.account_id == desk.account_id]
    assert listed.client_order_id == client_order_id(UUID(intent["id"])) and listed.broker_account


def test_an_operator_says_what_became_of_the_order(out_of_reach, paper):
    desk, intent = out_of_reach
    [order] = of_desk(desk, paper)
    found = operator.Found(order["order_id"], OrderStatus.FILLED, Decimal(10), Decimal("100.01"))

    operator.resolve(desk.deps.engine, client_order_id(UUID(intent["id"])), found, "seen in the broker's list")

    settled = state_of(desk, intent)
    assert settled["status"] == "FILLED" and settled["filled_quantity"] == "10" and settled["outcome"] is None
    assert settled["broker_order_id"] == order["order_id"]
    with pytest.raises(operator.NotUnresolved):
        operator.resolve(desk.deps.engine, client_order_id(UUID(intent["id"])), None, "again")


def test_a_command_is_settled_also_if_its_order_waits_for_an_operator_at_once(out_of_reach, paper, monkeypatch):
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

    assert (resolved.type, state_of(desk, intent)["status"]) == ("CREATE", "ACCEPTED")
    with pytest.raises(operator.StillUnresolved):
        operator.resolve(desk.deps.engine, client_order_id(UUID(intent["id"])), found, "the same again")


def test_an_operator_says_that_there_is_no_order(out_of_reach):
    desk, intent = out_of_reach

    operator.resolve(desk.deps.engine, client_order_id(UUID(intent["id"])), None, "not in the broker's list")

    settled = state_of(desk, intent)
    assert settled["status"] == "FAILED" and settled["reason_code"] == "RESOLVED_BY_OPERATOR"
    assert [row["open_actions"] for row in desk.rows("intent")] == [0]


@pytest.mark.usefixtures("reconciler")
def test_an_accepted_order_that_no_credential_can_query_waits_for_an_operator(new_desk, paper):
    desk = new_desk(broker="alpaca")
    give_credential(desk, f"first of {desk.account_id}")
    intent = desk.created(create("SIM.OPEN"))
    eventually(lambda: state_of(desk, intent)["status"] == "ACCEPTED")
    give_credential(desk, f"second of {desk.account_id}", version=2)
    eventually(lambda: state_of(desk, intent)["reason_code"] == "OPERATOR_REQUIRED", 60)
    name, [order] = client_order_id(UUID(intent["id"])), of_desk(desk, paper)

    with pytest.raises(operator.WasAccepted):
        operator.resolve(desk.deps.engine, name, None, "no")
    found = operator.Found(order["order_id"], OrderStatus.CANCELED, Decimal(4), Decimal(100))
    operator.resolve(desk.deps.engine, name, found, "canceled by telephone")

    assert state_of(desk, intent)["status"] == "CANCELED" and state_of(desk, intent)["filled_quantity"] == "4"


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
