"""Order groups: legs are intents of their own; the transaction that records a fill arms, reduces and cancels them."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from intents.execution.order_groups import tend_order_groups
from intents.execution.overfill import reduce_overordered
from tip_brokers import OrderStatus
from tip_testing.commands import cancel, replace
from tip_testing.identity_fixtures import Organization

from .conftest import Desk
from .grouping import Broker, bracket, filled_bracket, one_cancels_other, one_triggers_other


@pytest.fixture
def desk(new_desk: Callable[..., Desk], organization: Organization) -> Desk:
    """At a broker that does not reserve a position for the first order that closes it."""
    return new_desk(organization=organization, broker="fix")


def test_a_bracket_makes_three_intents_of_which_two_wait(desk: Desk) -> None:
    answer = desk.created(bracket())
    broker = Broker(desk)

    legs = broker.legs()
    assert set(legs) == {"entry", "take_profit", "stop_loss"}
    assert answer["state"]["group_role"] == "entry" and UUID(answer["intent_id"]) == legs["entry"]["id"]
    assert {row["group_id"] for row in legs.values()} == {UUID(answer["state"]["group_id"])}
    assert {role: row["order_side"] for role, row in legs.items()} == {
        "entry": "BUY", "take_profit": "SELL", "stop_loss": "SELL",
    }  # fmt: skip
    shown = desk.get(f"/{legs['stop_loss']['id']}").json
    assert shown["state"]["status"] == "PENDING" and shown["state"]["reason_code"] == "WAITING_FOR_PARENT"
    assert shown["state"]["group_role"] == "stop_loss"
    assert shown["spec"] == {"Stop": {"quantity": "10", "stop_price": "90", "time_in_force": "GTC"}}
    assert desk.get("/verify").json["valid"]


def test_the_legs_of_a_group_are_listed(desk: Desk) -> None:
    group_id = desk.created(bracket())["state"]["group_id"]
    desk.created(bracket())

    def listed(query: str) -> Any:
        path = f"/v1/accounts/{desk.account_id}/orders?{query}"
        return desk.client.get(path, headers=desk.headers)

    found = listed(f"group_id={group_id}").json["data"]
    assert sorted(order["state"]["group_role"] for order in found) == ["entry", "stop_loss", "take_profit"]
    newest = listed(f"group_id={group_id}&order=desc&limit=2").json
    assert newest["data"][0]["state"]["group_role"] != "entry" and newest["next_cursor"]
    assert listed(f"group_id={group_id}&status=closed").json["data"] == []
    assert listed("group_id=x").json["code"] == "bad_filter"


def test_children_are_sent_when_the_entry_is_filled_and_not_before(desk: Desk) -> None:
    desk.created(bracket())
    broker = Broker(desk)

    broker.send()
    assert set(broker.orders) == {"entry"}
    broker.fill("entry", "4")
    broker.send()
    assert set(broker.orders) == {"entry"}
    broker.fill("entry", "6")
    assert [row["armed_at"] is not None for row in broker.legs().values() if row["group_role"] != "entry"] == [True] * 2
    broker.send()

    assert broker.statuses() == {"entry": "FILLED", "take_profit": "ACCEPTED", "stop_loss": "ACCEPTED"}
    assert {order.quantity for order in broker.orders.values()} == {10}


def test_an_entry_that_ends_with_a_part_filled_arms_its_children_for_that_part(desk: Desk) -> None:
    desk.created(bracket())
    broker = Broker(desk)
    broker.send()
    broker.fill("entry", "4")

    broker.end("entry")
    broker.send()

    assert broker.statuses() == {"entry": "CANCELED", "take_profit": "ACCEPTED", "stop_loss": "ACCEPTED"}
    assert broker.orders["take_profit"].quantity == broker.orders["stop_loss"].quantity == 4
    assert desk.get(f"/{broker.legs()['stop_loss']['id']}").json["state"]["leaves_quantity"] == "4"


@pytest.mark.parametrize("status", [OrderStatus.CANCELED, OrderStatus.REJECTED, OrderStatus.EXPIRED])
def test_an_entry_that_ends_unfilled_ends_its_children(desk: Desk, status: OrderStatus) -> None:
    desk.created(bracket())
    broker = Broker(desk)
    broker.send()

    broker.end("entry", status)

    legs = broker.legs()
    assert [legs[role]["status"] for role in ("take_profit", "stop_loss")] == ["CANCELED"] * 2
    assert {legs[role]["reason_code"] for role in ("take_profit", "stop_loss")} == {"PARENT_ENDED"}
    assert set(broker.orders) == {"entry"}


def test_the_fill_of_one_exit_cancels_the_other_in_its_transaction(desk: Desk) -> None:
    broker = filled_bracket(desk)

    broker.fill("take_profit", "10")

    assert broker.statuses()["stop_loss"] == "PENDING_CANCEL"
    [action] = [row for row in desk.rows("action") if row["type"] == "CANCEL"]
    assert (action["actor_type"], action["actor_id"], action["reason"]) == ("system", "order-groups", "SIBLING_FILLED")
    broker.send()
    assert broker.statuses() == {"entry": "FILLED", "take_profit": "FILLED", "stop_loss": "CANCELED"}


def test_a_part_filled_of_one_exit_reduces_the_other(desk: Desk) -> None:
    broker = filled_bracket(desk)

    broker.fill("take_profit", "3")
    assert broker.legs()["stop_loss"]["quantity"] == 7
    reduce_overordered(desk.deps)
    broker.send()

    assert broker.orders["stop_loss"].quantity == 7
    broker.fill("stop_loss", "7")
    broker.send()
    assert broker.statuses() == {"entry": "FILLED", "take_profit": "CANCELED", "stop_loss": "FILLED"}


def test_what_an_entry_fills_after_its_cancel_is_closed_too(desk: Desk) -> None:
    desk.created(bracket())
    broker = Broker(desk)
    broker.send()
    broker.fill("entry", "4")
    broker.end("entry")
    broker.send()

    broker.fill("entry", "2")
    reduce_overordered(desk.deps)
    broker.send()

    assert broker.orders["stop_loss"].quantity == broker.orders["take_profit"].quantity == 6


def test_a_cancel_that_the_broker_rejects_is_repeated(desk: Desk) -> None:
    broker = filled_bracket(desk)
    broker.fill("take_profit", "10")
    broker.reject_cancel("stop_loss")
    assert broker.statuses()["stop_loss"] == "ACCEPTED"

    tend_order_groups(desk.deps)
    assert broker.statuses()["stop_loss"] == "ACCEPTED", "not at once"
    desk.execute("SET session_replication_role = replica")  # the log is append-only for everybody else
    desk.execute("UPDATE intents.action SET created_at = created_at - interval '2 minutes' WHERE type = 'CANCEL'")
    desk.execute("SET session_replication_role = DEFAULT")
    tend_order_groups(desk.deps)
    broker.send()

    assert broker.statuses()["stop_loss"] == "CANCELED"
    tend_order_groups(desk.deps)
    assert [row["canceling"] for row in desk.rows("intent_group")] == [False]


def test_a_bracket_is_refused_as_a_whole(desk: Desk) -> None:
    body = bracket()
    body["command"]["payload"]["spec"]["Bracket"]["stop_loss"]["Stop"]["quantity"] = "11"

    answer = desk.submit(body)

    assert answer.status_code == 422
    [error] = answer.json["errors"]
    assert error["pointer"] == "/command/payload/spec/Bracket/stop_loss/Stop/quantity"
    assert desk.rows("intent") == []


def test_a_leg_that_the_broker_cannot_do_is_named(desk: Desk) -> None:
    body = bracket(quantity="0.5")
    answer = desk.submit(body)

    assert answer.status_code == 422 and answer.json["code"] == "broker_cannot", answer.json
    assert answer.json["errors"][0]["pointer"].startswith("/command/payload/spec/Bracket/entry")


def test_one_cancels_other(desk: Desk) -> None:
    desk.created(one_cancels_other())
    broker = Broker(desk)
    broker.send()
    assert broker.statuses() == {"one": "ACCEPTED", "other": "ACCEPTED"}

    broker.fill("other", "10")
    broker.send()

    assert broker.statuses() == {"one": "CANCELED", "other": "FILLED"}


def test_one_triggers_other(desk: Desk) -> None:
    desk.created(one_triggers_other())
    broker = Broker(desk)
    broker.send()
    assert broker.statuses() == {"parent": "ACCEPTED", "child": "PENDING"}

    broker.fill("parent", "10")
    broker.send()

    assert broker.statuses() == {"parent": "FILLED", "child": "ACCEPTED"}


def test_a_group_is_made_once_for_an_idempotency_key(desk: Desk) -> None:
    first = desk.submit(bracket(), Idempotency_Key="once")
    again = desk.submit(bracket(), Idempotency_Key="once")

    assert (first.status_code, again.status_code) == (201, 201)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert first.json == again.json and len(desk.rows("intent")) == 3


def test_a_dry_run_of_a_group_writes_nothing(desk: Desk) -> None:
    answer = desk.submit(bracket(), query="?dry_run=true")

    assert answer.status_code == 200 and answer.json["state"]["group_role"] == "entry"
    assert desk.rows("intent") == [] and desk.rows("intent_group") == [] and desk.rows("account_head") == []


def test_a_leg_that_waits_can_be_canceled_and_not_replaced(desk: Desk) -> None:
    desk.created(bracket())
    broker = Broker(desk)
    stop, profit = broker.legs()["stop_loss"]["id"], broker.legs()["take_profit"]["id"]

    moved = desk.submit(replace(stop, Stop={"quantity": "10", "stop_price": "95"}))
    assert (moved.status_code, moved.json["code"]) == (409, "intent_busy")
    desk.created(cancel(profit))
    broker.send()
    broker.fill("entry", "10")
    broker.send()

    assert broker.statuses() == {"entry": "FILLED", "take_profit": "CANCELED", "stop_loss": "ACCEPTED"}
    assert set(broker.orders) == {"entry", "stop_loss"}


def test_an_armed_leg_can_be_moved_but_not_resized(desk: Desk) -> None:
    broker = filled_bracket(desk)
    stop = broker.legs()["stop_loss"]["id"]

    resized = desk.submit(replace(stop, Stop={"quantity": "9", "stop_price": "95"}))
    assert resized.status_code == 422
    assert resized.json["errors"][0]["pointer"] == "/command/payload/spec/Stop/quantity"
    desk.created(replace(stop, Stop={"quantity": "10", "stop_price": "95"}))
    broker.send()
    assert broker.statuses()["stop_loss"] == "ACCEPTED"


def test_a_cancel_of_the_entry_ends_the_group(desk: Desk) -> None:
    answer = desk.created(bracket())
    desk.created(cancel(answer["intent_id"]))
    broker = Broker(desk)

    broker.send()

    assert set(broker.statuses().values()) == {"CANCELED"} and broker.orders == {}
