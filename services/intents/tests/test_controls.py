"""Controls at the door: evaluated for CREATE and REPLACE, explained, and without a trace in the log."""

from collections.abc import Callable
from typing import Any

import pytest

from intents.store.statement import Statement
from tip_testing.commands import cancel, create, limit, replace

from .conftest import Desk
from .test_chain import as_superuser


def disable(desk: Desk, symbol: str = "AAPL", reason: str = "halted by desk") -> None:
    desk.execute(
        "INSERT INTO controls.symbol_manual (account_id, symbol, organization_id, manually_disabled, manual_reason) "
        "VALUES (:account_id, :symbol, :organization_id, true, :reason)",
        symbol=symbol,
        organization_id=desk.organization.id,
        reason=reason,
    )


def limits(desk: Desk, **values: Any) -> None:
    columns, marks = ", ".join(values), ", ".join(f":{name}" for name in values)
    desk.execute(
        f"INSERT INTO controls.account_limits (account_id, organization_id, {columns}) "
        f"VALUES (:account_id, :organization_id, {marks})",
        organization_id=desk.organization.id,
        **values,
    )


def switch(desk: Desk, state: str) -> None:
    desk.execute(
        "INSERT INTO controls.account_switch (account_id, organization_id, trading_state) "
        "VALUES (:account_id, :organization_id, :state)",
        organization_id=desk.organization.id,
        state=state,
    )


@pytest.mark.parametrize("environment", ["paper", "live"])
def test_a_refused_intent_leaves_no_trace_but_its_refusal(new_desk: Callable[..., Desk], environment: str) -> None:
    desk = new_desk(environment)
    disable(desk)

    answer = desk.submit(create(), Idempotency_Key="k")

    assert (answer.status_code, answer.json["code"]) == (422, "control_rejected")
    [reason] = answer.json["reasons"]
    assert (reason["code"], reason["control"], reason["version"]) == ("SYMBOL_DISABLED", "symbol_manual", 1)
    assert "halted by desk" in reason["message"]
    assert desk.rows("action") == desk.rows("intent") == desk.outbox() == desk.rows("idempotency") == []
    assert [row["reasons"][0]["code"] for row in desk.rows("refusal")] == ["SYMBOL_DISABLED"]
    assert desk.get("/stats").json["refusals"] == {"SYMBOL_DISABLED": 1}


def test_controls_hold_for_replace_and_never_for_cancel(desk: Desk) -> None:
    intent_id = desk.created(limit())["intent_id"]
    disable(desk)

    assert desk.submit(replace(intent_id)).json["reasons"][0]["code"] == "SYMBOL_DISABLED"
    cancelled = desk.created(cancel(intent_id))
    assert {check["outcome"] for check in cancelled["controls"]["checks"]} == {"NOT_APPLICABLE"}


def test_an_action_keeps_the_control_values_and_the_facts_that_decided_it(desk: Desk) -> None:
    limits(desk, max_quantity=100, max_orders_per_day=5)

    first, second = desk.created(limit()), desk.created(limit())

    facts = second["controls"]["facts"]
    assert facts["account_limits"] == {"version": 1, "max_quantity": "100", "max_orders_per_day": 5}
    assert (first["controls"]["facts"]["account_orders"]["last_day"], facts["account_orders"]["last_day"]) == (0, 1)
    assert (facts["now"], facts["time_zone"], facts["account_disabled"]) == (second["created_at"], "UTC", False)
    assert "symbol_limits" not in facts
    assert desk.get().json["data"][1]["controls"] == second["controls"]


def test_the_facts_of_an_action_are_covered_by_its_hash(desk: Desk) -> None:
    desk.created(create())

    as_superuser(
        desk,
        "UPDATE intents.action SET controls = CAST(replace(CAST(controls AS text), 'UTC', 'GMT') AS json) "
        "WHERE account_id = :account_id",
    )

    assert desk.get("/verify").json["first_broken"]["reason"] == "altered"


def test_no_fact_decides_a_cancel(desk: Desk) -> None:
    assert "facts" not in desk.created(cancel(desk.created(limit())["intent_id"]))["controls"]


def test_another_symbol_is_not_touched(desk: Desk) -> None:
    disable(desk, "MSFT")

    assert desk.submit(create(symbol="AAPL")).status_code == 201


def test_a_refusal_in_a_dry_run_is_explained_and_not_counted(desk: Desk) -> None:
    disable(desk)

    assert desk.submit(create(), query="?dry_run=true").json["reasons"][0]["code"] == "SYMBOL_DISABLED"
    assert desk.rows("refusal") == []


def test_a_disabled_account_refuses_and_can_still_cancel(desk: Desk) -> None:
    intent_id = desk.created(limit())["intent_id"]
    desk.execute("UPDATE accounts.account SET disabled = true WHERE id = :account_id")

    assert desk.submit(create()).json["reasons"][0]["code"] == "ACCOUNT_DISABLED"
    assert desk.submit(cancel(intent_id)).status_code == 201


def withdraw_everything(desk: Desk) -> None:
    """Trading Live ends, the account is disabled and halted, its symbol disabled, its limits used up."""
    desk.execute("DELETE FROM identity.entitlement WHERE organization_id = :id", id=desk.organization.id)
    desk.execute("UPDATE accounts.account SET disabled = true WHERE id = :account_id")
    switch(desk, "HALTED")
    disable(desk)
    limits(desk, max_orders_per_minute=1, max_quantity=1)


@pytest.mark.parametrize("query", ["", "?dry_run=false"], ids=["fast path", "Flask"])
def test_a_cancel_passes_whatever_entitlement_controls_and_account_say(
    new_desk: Callable[..., Desk], query: str
) -> None:
    desk = new_desk("live")
    intent_id = desk.created(limit())["intent_id"]
    withdraw_everything(desk)

    assert desk.submit(create(), query=query).json["code"] == "entitlement_required"
    assert desk.submit(replace(intent_id), query=query).json["code"] == "entitlement_required"
    assert desk.submit(cancel(intent_id), query=query).status_code == 201
    assert desk.submit(cancel(intent_id), query=query).status_code == 200


def test_the_cancels_of_a_batch_pass_without_the_entitlement_of_their_siblings(new_desk: Callable[..., Desk]) -> None:
    desk = new_desk("live")
    intents = [desk.created(limit())["intent_id"] for _ in range(3)]
    withdraw_everything(desk)

    def send(*bodies: Any, atomic: bool) -> Any:
        body = {"commands": [body["command"] for body in bodies], "atomic": atomic}
        return desk.client.post(f"{desk.path}/batch", json=body, headers=desk.headers)

    each = send(create(), cancel(intents[0]), replace(intents[1]), atomic=False)
    mixed = send(cancel(intents[1]), create(), atomic=True)
    all_cancels = send(cancel(intents[1]), cancel(intents[2]), atomic=True)

    assert [result["status"] for result in each.json["results"]] == [403, 201, 403]
    assert (mixed.status_code, [result["status"] for result in mixed.json["results"]]) == (422, [424, 403])
    assert [result["status"] for result in all_cancels.json["results"]] == [201, 201]


def test_a_halted_account_refuses(desk: Desk) -> None:
    switch(desk, "HALTED")

    assert desk.submit(create()).json["reasons"][0]["code"] == "TRADING_HALTED"


def test_a_reducing_account_passes_what_closes_its_position_and_no_more(desk: Desk) -> None:
    desk.execute(
        "INSERT INTO intents.position (account_id, symbol, quantity, updated_at) "
        "VALUES (:account_id, 'AAPL', 10, now())"
    )
    switch(desk, "REDUCING")

    assert desk.submit(create(quantity="1", side="BUY")).json["reasons"][0]["code"] == "TRADING_REDUCING"
    assert desk.submit(create(quantity="6", side="SELL")).status_code == 201
    assert desk.submit(create(quantity="5", side="SELL")).json["reasons"][0]["code"] == "TRADING_REDUCING"
    assert desk.submit(create(quantity="4", side="SELL")).status_code == 201


def test_a_replacement_on_its_way_counts_with_the_greater_quantity(desk: Desk) -> None:
    desk.execute(
        "INSERT INTO intents.position (account_id, symbol, quantity, updated_at) "
        "VALUES (:account_id, 'AAPL', 10, now())"
    )
    order = create(side="SELL", Limit={"quantity": "2", "limit_price": "99"})
    intent_id = desk.created(order)["intent_id"]
    desk.created(replace(intent_id, Limit={"quantity": "8", "limit_price": "99"}))
    switch(desk, "REDUCING")

    assert desk.submit(create(quantity="3", side="SELL")).json["reasons"][0]["code"] == "TRADING_REDUCING"
    assert desk.submit(create(quantity="2", side="SELL")).status_code == 201


def test_a_smaller_replacement_on_its_way_does_not_free_anything_yet(desk: Desk) -> None:
    desk.execute(
        "INSERT INTO intents.position (account_id, symbol, quantity, updated_at) "
        "VALUES (:account_id, 'AAPL', 10, now())"
    )
    order = create(side="SELL", Limit={"quantity": "8", "limit_price": "99"})
    intent_id = desk.created(order)["intent_id"]
    desk.created(replace(intent_id, Limit={"quantity": "1", "limit_price": "99"}))
    switch(desk, "REDUCING")

    assert desk.submit(create(quantity="3", side="SELL")).json["reasons"][0]["code"] == "TRADING_REDUCING"


def test_limits_are_evaluated_with_what_the_log_knows(desk: Desk) -> None:
    limits(desk, max_quantity=100, max_orders_per_minute=2)

    assert desk.submit(create(quantity="101")).json["reasons"][0]["code"] == "QUANTITY_ABOVE_LIMIT"
    assert [desk.submit(create(quantity="1")).status_code for _ in range(3)] == [201, 201, 422]
    assert len(desk.rows("action")) == 2


def test_an_account_deleted_while_its_limits_are_read_is_not_found(
    new_desk: Callable[..., Desk], monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = new_desk()
    limits(desk, max_orders_per_day=5)
    connections = desk.app.extensions["deps"].connections
    execute = connections._execute

    def deleting(statement: Statement, *arguments: Any) -> Any:
        if statement.name in ("intents_lock_account", "intents_lock_accounts"):
            desk.execute("UPDATE accounts.account SET deleted_at = now() WHERE id = :account_id")
        return execute(statement, *arguments)

    monkeypatch.setattr(connections, "_execute", deleting)

    answer = desk.submit(create())

    assert (answer.status_code, answer.json["code"]) == (404, "not_found")
    assert desk.rows("action") == desk.rows("account_head") == []


def test_the_earlier_answer_to_an_idempotent_request_stands_whatever_controls_say_now(desk: Desk) -> None:
    first = desk.submit(create(), Idempotency_Key="k")
    disable(desk)

    again = desk.submit(create(), Idempotency_Key="k")

    assert (again.status_code, again.json) == (201, first.json)
