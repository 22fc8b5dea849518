"""POST /v1/accounts/{account_id}/intents."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from werkzeug.test import TestResponse

from intents import model
from tip_testing.commands import cancel, create, limit, replace

from .conftest import Desk
from .test_controls import disable

KINDS = {
    "Market": {"quantity": "10"},
    "Limit": {"quantity": "10", "limit_price": "99.5", "time_in_force": "GTC"},
    "Stop": {"quantity": "10", "stop_price": "101"},
    "StopLimit": {"quantity": "10", "stop_price": "101", "limit_price": "102"},
    "TrailingStop": {"quantity": "10", "trail_percent": "2.5", "time_in_force": "GTC"},
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_order_kind_is_accepted_recorded_and_queued(desk: Desk, kind: str) -> None:
    answer = desk.submit(create(**{kind: KINDS[kind]}))

    assert answer.status_code == 201
    assert answer.headers["Location"] == f"{desk.path}/{answer.json['intent_id']}"
    assert answer.json["command"]["payload"]["spec"] == {kind: KINDS[kind]}
    assert answer.json["spec"] == {kind: {"time_in_force": "DAY", **KINDS[kind]}}
    assert desk.get().json["data"] == [answer.json]
    assert len(desk.rows("action")) == len(desk.rows("intent")) == len(desk.outbox()) == 1


def test_the_action_says_who_requested_what_and_what_was_checked(desk: Desk) -> None:
    action = desk.created(create(quantity="10", symbol=" aapl ", side="SELL"))

    assert set(action) == {
        *("id", "sequence", "intent_id", "account_id", "organization_id", "environment", "command", "symbol"),
        *("order_side", "spec", "route_strategy", "ref_intent_id", "actor", "reason", "controls", "created_at"),
        *("state", "previous_hash", "hash"),
    }
    assert (action["symbol"], action["order_side"], action["route_strategy"]) == ("AAPL", "SELL", "AUTO")
    assert action["actor"]["type"] == "api_key"
    assert action["controls"]["decision"] == "ALLOWED"
    assert action["controls"]["checks"] == [{"control": "account", "version": 1, "outcome": "PASSED"}]
    assert action["state"]["status"] == "PENDING"
    assert action["state"]["leaves_quantity"] == "10"
    assert (action["sequence"], action["organization_id"]) == (1, str(desk.organization.id))


def test_the_outbox_row_rings_with_ids_only_and_carries_the_trace(desk: Desk) -> None:
    trace = "0af7651916cd43dd8448eb211c80319c"
    action = desk.submit(create(), traceparent=f"00-{trace}-b7ad6b7169203331-01").json

    [row] = desk.outbox()
    assert row["event_type"] == "intent.submitted"
    assert set(row["payload"]) == {
        *("event_id", "event_type", "occurred_at", "organization_id", "account_id", "intent_id", "action_id"),
    }
    assert row["payload"]["action_id"] == action["id"]
    assert trace in row["traceparent"]
    assert trace in desk.rows("action")[0]["traceparent"]


DECIMALS = st.from_regex(r"\A[0-9]{1,15}(\.[0-9]{1,9})?\Z").filter(lambda text: text.isascii() and Decimal(text) > 0)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(quantity=DECIMALS, price=DECIMALS)
def test_decimals_are_kept_to_the_last_digit_as_they_were_sent(desk: Desk, quantity: str, price: str) -> None:
    action = desk.created(limit(quantity=quantity, price=price))

    read = desk.get(f"/{action['intent_id']}").json
    assert read["spec"]["Limit"]["quantity"] == read["command"]["payload"]["spec"]["Limit"]["quantity"] == quantity
    assert read["spec"]["Limit"]["limit_price"] == price
    assert Decimal(read["state"]["leaves_quantity"]) == Decimal(quantity)


def test_a_replacement_keeps_the_intent_and_waits_for_the_broker(desk: Desk) -> None:
    first = desk.created(limit(quantity="10"))

    second = desk.created(replace(first["intent_id"]))

    assert second["intent_id"] == second["ref_intent_id"] == first["intent_id"]
    assert (second["symbol"], second["order_side"]) == ("AAPL", "BUY")
    assert second["state"]["status"] == "PENDING_REPLACE"
    assert second["spec"] == {"Limit": {"quantity": "20", "limit_price": "98", "time_in_force": "DAY"}}
    history = desk.get(f"/{first['intent_id']}/actions").json["data"]
    assert [action["command"]["type"] for action in history] == ["CREATE", "REPLACE"]
    assert len(desk.outbox()) == 2
    assert desk.rows("intent")[0]["open_actions"] == 2


def test_a_second_replacement_must_wait_for_the_first(desk: Desk) -> None:
    intent_id = desk.created(limit())["intent_id"]
    desk.created(replace(intent_id))

    answer = desk.submit(replace(intent_id))

    assert (answer.status_code, answer.json["code"]) == (409, "intent_busy")
    assert len(desk.rows("action")) == 2


def test_a_cancel_repeated_while_pending_answers_the_first_one(desk: Desk) -> None:
    intent_id = desk.created(limit())["intent_id"]
    first = desk.created(cancel(intent_id))

    again = desk.submit(cancel(intent_id))

    assert again.status_code == 200
    assert again.json == first
    assert first["state"]["status"] == "PENDING_CANCEL"
    assert len(desk.rows("action")) == 2


def test_a_cancel_passes_while_a_replacement_is_pending_and_not_the_other_way_round(desk: Desk) -> None:
    intent_id = desk.created(limit())["intent_id"]
    desk.created(replace(intent_id))
    desk.created(cancel(intent_id))

    answer = desk.submit(replace(intent_id))

    assert (answer.status_code, answer.json["code"]) == (409, "intent_busy")


@pytest.mark.parametrize("command", [replace, cancel])
@pytest.mark.parametrize("status", sorted(model.TERMINAL))
def test_nothing_changes_an_intent_that_has_ended(desk: Desk, command: Callable[..., Any], status: str) -> None:
    intent_id = desk.created(limit())["intent_id"]
    desk.execute("UPDATE intents.intent SET status = :status WHERE account_id = :account_id", status=status)

    answer = desk.submit(command(intent_id))

    assert (answer.status_code, answer.json["code"]) == (409, "intent_terminal")
    assert len(desk.rows("action")) == len(desk.outbox()) == 1


def test_a_replacement_cannot_take_back_what_is_filled_nor_change_the_kind(desk: Desk) -> None:
    intent_id = desk.created(limit(quantity="10"))["intent_id"]
    desk.execute("UPDATE intents.intent SET filled_quantity = 4 WHERE account_id = :account_id")

    for quantity in ("3.9", "4"):
        answer = desk.submit(replace(intent_id, Limit={"quantity": quantity, "limit_price": "1"}))
        assert (answer.status_code, answer.json["code"]) == (422, "invalid")
        assert answer.json["errors"][0]["pointer"] == "/command/payload/spec/Limit/quantity"
    other_kind = desk.submit(replace(intent_id, Market={"quantity": "20"}))
    assert other_kind.json["errors"][0] == {
        "pointer": "/command/payload/spec",
        "code": "kind",
        "message": "must be Limit, as the intent is",
    }
    assert len(desk.rows("action")) == 1


@pytest.mark.parametrize("command", [replace, cancel])
def test_unknown_and_foreign_intents_are_not_found_alike(
    desk: Desk, new_desk: Callable[..., Desk], command: Callable[..., Any]
) -> None:
    foreign = new_desk().created(limit())["intent_id"]

    bodies = []
    for intent_id in (uuid4(), foreign):
        answer = desk.submit(command(intent_id))
        assert answer.status_code == 404
        bodies.append({name: value for name, value in answer.json.items() if name != "request_id"})

    assert bodies[0] == bodies[1]
    assert desk.rows("action") == desk.outbox() == []


def test_a_dry_run_checks_everything_and_writes_nothing(desk: Desk) -> None:
    intent_id = desk.created(limit())["intent_id"]

    would_be = desk.submit(replace(intent_id), query="?dry_run=true", Idempotency_Key="a")
    invalid = desk.submit(create(quantity="0"), query="?dry_run=true")

    assert (would_be.status_code, would_be.json["sequence"]) == (200, 0)
    assert would_be.json["state"]["status"] == "PENDING_REPLACE"
    assert invalid.status_code == 422
    assert len(desk.rows("action")) == len(desk.outbox()) == 1
    assert desk.rows("idempotency") == []
    assert desk.submit(create(), query="?dry_run=yes").json["code"] == "bad_dry_run"


@pytest.mark.parametrize(("command", "status"), [("CREATE", 201), ("CANCEL", 201), ("refused", 422)])
def test_a_connection_lost_between_requests_is_not_noticed_by_the_caller(desk: Desk, command: str, status: int) -> None:
    disable(desk, "MSFT")

    intent_ids = [desk.created(limit())["intent_id"] for _ in range(2)]

    def send() -> TestResponse:
        bodies = {"CREATE": create(), "refused": create(symbol="MSFT")}
        return desk.submit(bodies.get(command) or cancel(intent_ids.pop()))

    assert send().status_code == status
    desk.execute(
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name = 'intents' "
        "AND datname = current_database() AND :account_id IS NOT NULL"
    )

    assert send().status_code == status
