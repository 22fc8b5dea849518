"""Commands become orders at the broker, once, and their fate is known."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
import requests

from intents.execution.client_order_id import client_order_id
from intents.execution.credentials import derived
from tip_testing.commands import cancel, create, limit, replace
from tip_testing.waiting import eventually

from ..test_controls import switch, withdraw_everything


@pytest.fixture(scope="module", autouse=True)
def processes(start: Callable[..., Any]) -> None:
    for kind in ("reconciler", "scheduler", "executor"):
        start(kind)


def test_an_intent_is_one_order_at_the_broker(desk, orders, events, reaches):
    intent = desk.created(create("SIM.OPEN"))

    state = reaches(intent, "ACCEPTED")

    [order] = orders()
    assert order["client_order_id"] == client_order_id(UUID(intent["id"])) and order["posts"] == 1
    assert order["order_id"] == state["broker_order_id"]
    assert [(event["from_status"], event["to_status"]) for event in events()] == [("PENDING", "ACCEPTED")]


def test_what_the_broker_says_carries_the_trace_of_the_command(desk, events, reaches):
    trace = "0af7651916cd43dd8448eb211c80319c"
    intent = desk.submit(create("SIM.OPEN"), traceparent=f"00-{trace}-b7ad6b7169203331-01").json
    reaches(intent, "ACCEPTED")

    assert [trace in event["traceparent"] for event in events()] == [True]


def test_a_fill_is_logged_as_order_trade_and_position(desk, paper, events, reaches):
    paper.quote("FILLS", "9.99", "10.01")

    state = reaches(desk.created(create("FILLS", "3")), "FILLED")

    assert state["filled_quantity"] == "3" and state["leaves_quantity"] == "0"
    assert float(state["average_fill_price"]) == 10.01
    types = [
        event["type"] for event in events() if event["type"] != "BROKER_POSITION"
    ]  # which comes with it or by reconciliation
    assert types == ["BROKER_ORDER", "BROKER_TRADE", "BROKER_ORDER"]
    position = eventually(lambda: [event["payload"] for event in events() if event["type"] == "BROKER_POSITION"])[-1]
    assert (position["symbol"], position["quantity"]) == ("FILLS", "3")
    assert [row["quantity"] for row in desk.rows("position")] == [3]


def test_a_fill_that_the_stream_reports_first_bears_the_brokers_execution_id(desk, paper, orders, events, reaches):
    paper.quote("FILLS", "9.99", "10.01")

    def named_trades() -> list[str]:
        """Of one order more: a reading of the account, which names no execution, may report any fill first."""
        reaches(desk.created(create("FILLS")), "FILLED")
        named = [event["broker_execution_id"] for event in events() if event["type"] == "BROKER_TRADE"]
        return [execution_id for execution_id in named if execution_id is not None]

    executions = eventually(named_trades)

    assert set(executions) <= {execution["id"] for order in orders() for execution in order["executions"]}


def test_sequences_of_actions_and_events_have_no_gap(desk, events, reaches):
    intent = desk.created(create("SIM.PARTIAL50"))
    reaches(intent, "PARTIALLY_FILLED")
    desk.created(cancel(intent["intent_id"]))
    reaches(intent, "CANCELED")

    sequences = sorted(row["sequence"] for table in ("action", "account_event") for row in desk.rows(table))
    assert sequences == list(range(1, len(sequences) + 1))


def test_a_refused_order_is_rejected_with_the_brokers_words(desk, orders, events, reaches):
    state = reaches(desk.created(create("SIM.REJECT")), "REJECTED")

    assert state["reason_code"] == "BROKER_REFUSED" and orders() == []
    assert events()[-1]["payload"]["reason"] == "order rejected by script"


def test_an_order_rejected_after_it_was_accepted_is_rejected(desk, reaches):
    assert reaches(desk.created(create("SIM.REJECT_LATER")), "REJECTED")["reason_code"] == "BROKER_REJECTED"


def test_a_cancel_before_sending_never_reaches_the_broker(desk, hold_back, orders, reaches):
    with hold_back():
        intent = desk.created(create("SIM.OPEN"))
        desk.created(cancel(intent["intent_id"]))

    assert reaches(intent, "CANCELED")["reason_code"] == "CANCELED_BEFORE_SENT"
    assert orders() == []


def test_a_cancel_reaches_the_order(desk, orders, reaches):
    intent = desk.created(create("SIM.OPEN"))
    reaches(intent, "ACCEPTED")

    desk.created(cancel(intent["intent_id"]))

    reaches(intent, "CANCELED")
    assert [order["status"] for order in orders()] == ["canceled"]


def test_a_cancel_reaches_the_order_though_nothing_else_may_be_sent_any_more(new_desk, paper):
    desk = new_desk("live")
    intent = desk.created(limit(price="0.01", time_in_force="GTC"))
    eventually(lambda: [row["status"] for row in desk.rows("intent")] == ["ACCEPTED"])
    withdraw_everything(desk)

    desk.created(cancel(intent["intent_id"]))

    eventually(lambda: [row["status"] for row in desk.rows("intent")] == ["CANCELED"])
    ours = [order for order in paper.ledger() if order["client_order_id"] == client_order_id(UUID(intent["id"]))]
    assert [order["status"] for order in ours] == ["canceled"]


def test_a_fill_may_overtake_a_cancel(desk, reaches):
    intent = desk.created(create("SIM.LATE_FILL"))
    reaches(intent, "ACCEPTED")

    desk.created(cancel(intent["intent_id"]))

    assert reaches(intent, "FILLED")["filled_quantity"] == "10"


def test_a_cancel_of_what_was_filled_meanwhile_ends_as_filled(desk, paper, orders, reaches):
    paper.quote("GONE", "9", "10")
    intent = desk.created(limit("GONE", "5", "8", time_in_force="GTC"))
    state = reaches(intent, "ACCEPTED")
    # No executor may take the cancel to the broker before the fill is there.
    desk.execute("UPDATE intents.intent SET lease_until = now() + interval '1 minute' WHERE account_id = :account_id")

    desk.created(cancel(intent["intent_id"]))
    paper.quote("GONE", "7", "8")
    desk.execute("UPDATE intents.intent SET lease_until = now() WHERE account_id = :account_id")

    assert reaches(intent, "FILLED")["broker_order_id"] == state["broker_order_id"]
    assert [row["open_actions"] for row in desk.rows("intent")] == [0]


def test_a_refused_cancel_leaves_the_order_working(desk, events, reaches):
    intent = desk.created(create("SIM.CANCEL_REJECT"))
    reaches(intent, "ACCEPTED")

    desk.created(cancel(intent["intent_id"]))

    assert reaches(intent, "ACCEPTED")["reason_code"] in ("CANCEL_REJECTED", "CANCEL_NOT_DONE")


def test_a_replacement_keeps_the_intent_and_gets_a_new_order(desk, paper, orders, reaches):
    paper.quote("SWAP", "9", "10")
    intent = desk.created(limit("SWAP", "5", "8", time_in_force="GTC"))
    before = reaches(intent, "ACCEPTED")

    desk.created(replace(intent["intent_id"], Limit={"quantity": "7", "limit_price": "8.50", "time_in_force": "GTC"}))
    reaches(intent, "PENDING_REPLACE", "ACCEPTED")
    paper.quote("SWAP", "8", "8.50")
    after = reaches(intent, "FILLED")

    assert after["filled_quantity"] == "7" and after["broker_order_id"] != before["broker_order_id"]
    assert sorted(order["status"] for order in orders()) == ["filled", "replaced"]


def test_a_replacement_counts_what_was_filled_before(desk, paper, orders, reaches):
    paper.quote("PART", "9", "10", ask_size="2", bid_size="2")
    intent = desk.created(limit("PART", "5", "10", time_in_force="GTC"))
    reaches(intent, "PARTIALLY_FILLED")

    desk.created(replace(intent["intent_id"], Limit={"quantity": "8", "limit_price": "9.50", "time_in_force": "GTC"}))
    paper_orders = lambda: [order for order in orders() if order["status"] == "new"]  # noqa: E731
    reaches(intent, "PARTIALLY_FILLED")
    assert [order["qty"] for order in eventually(paper_orders)] == ["6"]
    paper.quote("PART", "9", "9.50")

    state = reaches(intent, "FILLED")
    assert state["filled_quantity"] == "8" and state["leaves_quantity"] == "0"


def test_a_refused_replacement_leaves_the_order_as_it_was(desk, reaches):
    intent = desk.created(limit("SIM.REPLACE_REJECT", "5", "8", time_in_force="GTC"))
    before = reaches(intent, "ACCEPTED")

    desk.created(replace(intent["intent_id"], Limit={"quantity": "7", "limit_price": "8.50", "time_in_force": "GTC"}))
    after = reaches(intent, "ACCEPTED")

    assert after["broker_order_id"] == before["broker_order_id"] and after["leaves_quantity"] == "5"


def test_a_replacement_that_took_effect_although_it_answered_an_error_is_seen(desk, orders, reaches):
    intent = desk.created(limit("SIM.ERROR500_AFTER_ACCEPT", "5", "8", time_in_force="GTC"))
    before = reaches(intent, "ACCEPTED")

    desk.created(replace(intent["intent_id"], Limit={"quantity": "7", "limit_price": "8.50", "time_in_force": "GTC"}))
    state = eventually(
        lambda: (state := reaches(intent, "PENDING_REPLACE", "ACCEPTED"))["leaves_quantity"] == "7" and state
    )

    assert state["broker_order_id"] != before["broker_order_id"]
    assert sorted(order["status"] for order in orders()) == ["new", "replaced"]


def test_a_rate_limit_is_waited_for(desk, orders, reaches):
    reaches(desk.created(create("SIM.RATE_LIMIT")), "ACCEPTED", "FILLED")

    assert [order["posts"] for order in orders()] == [3]


def test_every_update_twice_changes_nothing(desk, events, reaches):
    state = reaches(desk.created(create("SIM.DUPLICATE_EVENT")), "FILLED")

    assert state["filled_quantity"] == "10"
    assert len([event for event in events() if event["type"] == "BROKER_TRADE"]) == 1


def test_a_halt_between_accepting_and_sending_stops_the_order(desk, hold_back, orders, reaches):
    with hold_back():
        intent = desk.created(create("SIM.OPEN"))
        switch(desk, "HALTED")

    assert reaches(intent, "DENIED")["reason_code"] == "TRADING_HALTED"
    assert orders() == []


def _stale(desk: Any, millis: int, symbol: str = "SIM.OPEN") -> None:
    into = "INSERT INTO controls.symbol_time (account_id, symbol, organization_id, stale_order_millis) "
    values = {"organization_id": desk.organization.id, "millis": millis, "symbol": symbol}
    desk.execute(f"{into} VALUES (:account_id, :symbol, :organization_id, :millis)", **values)


def test_an_intent_too_old_to_be_sent_expires(desk, hold_back, orders, reaches):
    _stale(desk, 1000)
    with hold_back():
        intent = desk.created(create("SIM.OPEN"))
        desk.execute(
            "UPDATE intents.intent SET created_at = created_at - interval '2 seconds' WHERE account_id = :account_id"
        )

    assert reaches(intent, "EXPIRED")["reason_code"] == "STALE_ORDER"
    assert orders() == []


def test_an_order_open_for_too_long_is_canceled_by_the_system(desk, reaches):
    reaches(intent := desk.created(create("SIM.OPEN")), "ACCEPTED")
    _stale(desk, 1000)

    reaches(intent, "CANCELED")

    latest = desk.get(f"/{intent['intent_id']}").json
    assert latest["command"]["type"] == "CANCEL" and latest["reason"] == "STALE_ORDER"
    assert latest["actor"]["type"] == "system"


def test_external_orders_are_shown_and_not_made_into_intents(desk, paper, events, reaches):
    reaches(desk.created(create("SIM.OPEN")), "ACCEPTED")
    keys = derived(desk.account_id, "for-tests-only")
    headers = {"APCA-API-KEY-ID": keys["key_id"], "APCA-API-SECRET-KEY": keys["secret_key"]}
    body = {"symbol": "SIM.OPEN", "side": "buy", "type": "market", "qty": "2", "time_in_force": "day"}
    requests.post(paper.url + "/v2/orders", json=body, headers=headers, timeout=60).raise_for_status()

    def shown() -> list[Any]:
        return [event for event in events() if event["payload"].get("reason_code") == "PLACED_ELSEWHERE"]

    found = eventually(shown)
    assert {event["intent_id"] for event in found} == {None} and found[0]["payload"]["quantity"] == "2"
    assert len(desk.rows("intent")) == 1


def test_positions_and_balances_are_what_the_broker_says(desk, paper, reaches):
    paper.quote("HELD", "9", "10")
    reaches(desk.created(create("HELD", "4")), "FILLED")

    def shown(what: str) -> Any:
        return desk.client.get(f"/v1/accounts/{desk.account_id}/{what}", headers=desk.headers).json

    def held() -> Any:
        [position] = shown("positions")["data"] or [{}]
        return position if position.get("reconciled_at") and position["average_entry_price"] else None

    position = eventually(held)
    assert (position["symbol"], position["quantity"], position["average_entry_price"]) == ("HELD", "4", "10")
    balances = eventually(lambda: (found := shown("balances"))["cash"] == "999999960" and found)
    assert balances["currency"] == "USD" and balances["updated_at"].endswith("Z")


def test_a_command_for_a_deleted_account_ends_in_a_refusal(desk, hold_back, orders):
    with hold_back():
        desk.created(create("SIM.OPEN"))
        desk.execute("UPDATE accounts.account SET deleted_at = now() WHERE id = :account_id")

    eventually(lambda: [row["status"] for row in desk.rows("intent")] == ["DENIED"])
    assert [row["reason_code"] for row in desk.rows("intent")] == ["ACCOUNT_NOT_FOUND"] and orders() == []
