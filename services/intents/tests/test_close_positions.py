"""Closing positions: open orders are canceled, then a market order takes what the broker reports to zero."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pytest

from intents.model import Update
from intents.usecases import bulk_runner, closing, run_bulk_operations
from tip_testing.commands import create, limit
from tip_testing.identity_fixtures import IdentityFixtures

from .broker_side import accept, fill, report
from .conftest import Desk
from .test_bulk_operations import open_intents, operation, run


def close(desk: Desk, body: Any = None, **headers: str) -> Any:
    path = f"/v1/accounts/{desk.account_id}/positions/close"
    return desk.client.post(path, json=body or {}, headers={**desk.headers, **headers})


def hold(desk: Desk, **positions: int) -> None:
    """The broker reports these positions now."""
    for symbol, quantity in positions.items():
        desk.execute("INSERT INTO intents.position (account_id, symbol, quantity, updated_at, reconciled_at) "
                     "VALUES (:account_id, :symbol, :quantity, now(), now())",
                     symbol=symbol, quantity=quantity)  # fmt: skip
    reconciled(desk)


def reconciled(desk: Desk) -> None:
    desk.execute("INSERT INTO intents.broker_account (account_id, reconciled_at) "
                 "VALUES (:account_id, clock_timestamp()) ON CONFLICT (account_id) DO UPDATE "
                 "SET reconciled_at = excluded.reconciled_at")  # fmt: skip
    desk.execute("UPDATE intents.position SET reconciled_at = clock_timestamp() WHERE account_id = :account_id")


def switch(desk: Desk, state: str) -> None:
    desk.execute("INSERT INTO controls.account_switch (account_id, organization_id, trading_state) "
                 "VALUES (:account_id, :organization_id, :state) ON CONFLICT (account_id) DO UPDATE "
                 "SET trading_state = excluded.trading_state",
                 organization_id=desk.organization.id, state=state)  # fmt: skip


def closing_orders(desk: Desk) -> list[tuple[str, str, Any, str]]:
    found = [row for row in desk.rows("action") if row["type"] == "CREATE" and row["reason"] is not None]
    return sorted((row["symbol"], row["order_side"], row["spec"], row["reason"]) for row in found)


def market(quantity: str) -> Any:
    return {"Market": {"time_in_force": "DAY", "quantity": quantity}}


def test_open_orders_end_first_then_what_the_broker_reports_is_closed(desk: Desk) -> None:
    hold(desk, AAPL=10, MSFT=-3)
    [intent_id] = open_intents(desk, limit())

    answer = close(desk)

    assert (answer.status_code, answer.json["type"]) == (202, "CLOSE_POSITIONS")
    run(desk)
    assert operation(desk, answer)["status"] == "CANCELING" and closing_orders(desk) == []
    report(desk, intent_id, Update.CANCELED)
    run(desk)
    run(desk)
    assert operation(desk, answer)["status"] == "CLOSING" and closing_orders(desk) == []
    reconciled(desk)
    run(desk)
    assert closing_orders(desk) == [
        ("AAPL", "SELL", market("10"), "CLOSE_POSITIONS"),
        ("MSFT", "BUY", market("3"), "CLOSE_POSITIONS"),
    ]
    found = operation(desk, answer)
    assert (found["status"], found["total"], found["done"]) == ("CLOSING", 3, 1)
    desk.execute("UPDATE intents.intent SET status = 'FILLED' WHERE account_id = :account_id")
    run(desk)
    found = operation(desk, answer)
    assert (found["status"], found["total"], found["done"], found["refusals"]) == ("COMPLETED", 3, 3, [])


def until_closing(desk: Desk) -> None:
    run(desk)
    reconciled(desk)
    run(desk)


def test_one_symbol_leaves_the_others_alone(desk: Desk) -> None:
    hold(desk, AAPL=10, MSFT=5)
    [other] = open_intents(desk, limit("MSFT"))
    close(desk, {"symbol": "aapl"})

    until_closing(desk)

    assert [symbol for symbol, *_ in closing_orders(desk)] == ["AAPL"]
    assert {str(row["id"]): row["status"] for row in desk.rows("intent")}[other] == "ACCEPTED"


def test_without_a_position_it_is_completed(desk: Desk) -> None:
    answer = close(desk)

    until_closing(desk)

    assert (operation(desk, answer)["status"], closing_orders(desk)) == ("COMPLETED", [])


def test_reducing_lets_it_pass_and_a_halt_is_answered(desk: Desk) -> None:
    hold(desk, AAPL=10)
    switch(desk, "HALTED")
    refused = close(desk)
    assert (refused.status_code, refused.json["code"]) == (422, "control_rejected")
    assert [reason["code"] for reason in refused.json["reasons"]] == ["TRADING_HALTED"]
    assert desk.rows("bulk_operation") == []

    switch(desk, "REDUCING")
    assert close(desk).status_code == 202
    until_closing(desk)

    assert closing_orders(desk) == [("AAPL", "SELL", market("10"), "CLOSE_POSITIONS")]


def test_a_halt_that_comes_meanwhile_is_shown_with_the_operation(desk: Desk) -> None:
    hold(desk, AAPL=10)
    answer = close(desk)
    run(desk)
    switch(desk, "HALTED")

    until_closing(desk)

    found = operation(desk, answer)
    assert found["status"] == "COMPLETED" and closing_orders(desk) == []
    [refusal] = found["refusals"]
    assert (refusal["symbol"], refusal["reasons"][0]["code"]) == ("AAPL", "TRADING_HALTED")


def test_a_scheduler_killed_after_its_orders_makes_none_twice(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    hold(desk, AAPL=10)
    close(desk)
    run(desk)
    reconciled(desk)

    def dies(*arguments: Any) -> Any:
        closing.submit_closing_orders(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as doomed:
        doomed.setattr(bulk_runner, "submit_closing_orders", dies)
        with pytest.raises(KeyboardInterrupt):
            run(desk)
    desk.execute("UPDATE intents.bulk_operation SET lease_until = now() WHERE account_id = :account_id")
    desk.execute("UPDATE intents.position SET quantity = 7 WHERE account_id = :account_id")
    run(desk)

    assert closing_orders(desk) == [("AAPL", "SELL", market("10"), "CLOSE_POSITIONS")]
    assert [len(row["closing_intents"]) for row in desk.rows("bulk_operation")] == [1]


def closed(desk: Desk) -> dict[str, Decimal]:
    """How much all closing orders together take off each position."""
    totals: dict[str, Decimal] = {}
    for symbol, _, spec, _ in closing_orders(desk):
        totals[symbol] = totals.get(symbol, Decimal(0)) + Decimal(spec["Market"]["quantity"])
    return totals


def test_closes_that_overlap_close_a_position_once(desk: Desk) -> None:
    hold(desk, AAPL=6, MSFT=-4)
    answers = [close(desk), close(desk), close(desk, {"symbol": "AAPL"})]

    until_closing(desk)

    assert closed(desk) == {"AAPL": 6, "MSFT": 4}
    desk.execute("UPDATE intents.intent SET status = 'FILLED' WHERE account_id = :account_id")
    run(desk)
    found = [operation(desk, answer) for answer in answers]
    assert [(done["status"], done["refusals"]) for done in found] == [("COMPLETED", [])] * 3


def test_schedulers_that_close_at_the_same_moment_close_a_position_once(new_desk: Callable[..., Desk]) -> None:
    desks = [new_desk() for _ in range(4)]
    for desk in desks:
        hold(desk, AAPL=6)
        [close(desk) for _ in range(3)]
        run(desk)
        reconciled(desk)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: [run_bulk_operations(desks[0].deps) for _ in range(8)], range(4)))
    for desk in desks:
        run(desk)

    assert [closed(desk) for desk in desks] == [{"AAPL": 6}] * 4


def test_what_an_open_order_of_the_closing_side_may_fill_is_left_to_it(desk: Desk) -> None:
    hold(desk, AAPL=10)
    close(desk)
    run(desk)
    desk.created(create("AAPL", "4", "SELL"))

    until_closing(desk)

    assert closing_orders(desk) == [("AAPL", "SELL", market("6"), "CLOSE_POSITIONS")]


def test_a_position_that_other_orders_close_gets_no_order(desk: Desk) -> None:
    hold(desk, AAPL=10)
    answer = close(desk)
    run(desk)
    desk.created(create("AAPL", "10", "SELL"))

    until_closing(desk)

    found = operation(desk, answer)
    assert (found["status"], found["refusals"], closing_orders(desk)) == ("COMPLETED", [], [])


def test_a_position_that_the_broker_has_not_reported_since_is_waited_for(desk: Desk) -> None:
    hold(desk, AAPL=10, MSFT=1)
    close(desk)
    run(desk)
    reconciled(desk)
    desk.execute("UPDATE intents.position SET reconciled_at = now() - interval '1 hour' WHERE symbol = 'AAPL' "
                 "AND account_id = :account_id")  # fmt: skip
    run(desk)
    assert closing_orders(desk) == []

    until_closing(desk)

    assert closed(desk) == {"AAPL": 10, "MSFT": 1}


def test_a_fill_that_the_broker_has_reported_is_waited_for_until_it_is_recorded(desk: Desk) -> None:
    """Till then it counts twice: it is off the position, and open."""
    hold(desk, AAPL=10)
    close(desk)
    run(desk)
    order = accept(desk, desk.created(create("AAPL", "4", "SELL"))["intent_id"], "b1")
    desk.execute("UPDATE intents.position SET quantity = 6, unrecorded_fills = jsonb_build_object(:key ::text, 4) "
                 "WHERE account_id = :account_id", key=order.client_order_id)  # fmt: skip
    reconciled(desk)
    run(desk)
    assert closing_orders(desk) == []

    fill(desk, order, "4", "1", "e1")
    run(desk)

    assert closing_orders(desk) == [("AAPL", "SELL", market("6"), "CLOSE_POSITIONS")]


def test_on_a_live_account_it_needs_trading_live(identity: IdentityFixtures, new_desk: Callable[..., Desk]) -> None:
    answer = close(new_desk("live", identity.organization(entitlements=())))

    assert (answer.status_code, answer.json["code"]) == (403, "entitlement_required")


def test_the_same_key_is_one_operation_and_a_cancel_is_another_request(desk: Desk) -> None:
    first, again = (close(desk, {}, **{"Idempotency-Key": "k"}) for _ in range(2))
    other = desk.client.post(f"{desk.path}/cancel", json={}, headers={**desk.headers, "Idempotency-Key": "k"})

    assert first.json["id"] == again.json["id"]
    assert other.json["code"] == "idempotency_key_reused"
