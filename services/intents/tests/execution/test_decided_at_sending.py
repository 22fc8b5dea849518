"""What was accepted is decided again when it is sent: nothing leaves against a control, a limit or the entitlement."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tip_testing.commands import cancel, create, limit, replace
from tip_testing.waiting import eventually

from ..test_controls import disable, limits, switch
from .conftest import give_credential

SYMBOL = "SIM.OPEN"


@pytest.fixture(scope="module", autouse=True)
def executors(start: Callable[..., Any]) -> None:
    for _ in range(2):
        start("executor")


def _close_window(desk: Any) -> None:
    start = datetime.now(UTC) + timedelta(hours=2)
    desk.execute(
        "INSERT INTO controls.symbol_time (account_id, symbol, organization_id, trading_start, trading_end) "
        "VALUES (:account_id, :symbol, :organization_id, :start, :end)",
        symbol=SYMBOL,
        organization_id=desk.organization.id,
        start=start.time(),
        end=(start + timedelta(hours=1)).time(),
    )


def _disable_account(desk: Any) -> None:
    desk.execute("UPDATE accounts.account SET disabled = true WHERE id = :account_id")


def _halt_organization(desk: Any) -> None:
    desk.execute(
        "INSERT INTO controls.organization_switch (organization_id, trading_state) VALUES (:organization_id, 'HALTED')",
        organization_id=desk.organization.id,
    )


def _withdraw_trading_live(desk: Any) -> None:
    desk.execute(
        "DELETE FROM identity.entitlement WHERE organization_id = :organization_id AND name = 'trading_live'",
        organization_id=desk.organization.id,
    )


AGAINST: dict[str, tuple[Callable[[Any], None], str]] = {
    "symbol disabled": (lambda desk: disable(desk, SYMBOL), "SYMBOL_DISABLED"),
    "window closed": (_close_window, "OUTSIDE_TRADING_WINDOW"),
    "account disabled": (_disable_account, "ACCOUNT_DISABLED"),
    "account halted": (lambda desk: switch(desk, "HALTED"), "TRADING_HALTED"),
    "organization halted": (_halt_organization, "TRADING_HALTED"),
    "account reducing": (lambda desk: switch(desk, "REDUCING"), "TRADING_REDUCING"),
    "quantity above": (lambda desk: limits(desk, max_quantity=9), "QUANTITY_ABOVE_LIMIT"),
    "notional above": (lambda desk: limits(desk, max_notional=900), "NOTIONAL_ABOVE_LIMIT"),
    "trading_live withdrawn": (_withdraw_trading_live, "ENTITLEMENT_REQUIRED"),
}
ALL_TOGETHER = (
    "symbol disabled",
    "window closed",
    "account disabled",
    "account halted",
    "quantity above",
    "trading_live withdrawn",
)


@pytest.fixture
def desk(new_desk: Callable[..., Any]) -> Any:
    """A live account of an organization of its own."""
    return new_desk("live")


@pytest.fixture
def waiting(desk: Any) -> Any:
    """An intent that waits, because the broker refused the credential."""
    give_credential(desk, f"first of {desk.account_id}")
    desk.execute("UPDATE accounts.credential SET status = 'invalid' WHERE account_id = :account_id")
    intent = desk.created(limit(SYMBOL))
    eventually(lambda: desk.rows("intent")[0]["reason_code"] == "CREDENTIAL_INVALID")
    return intent


def _rotate(desk: Any) -> None:
    give_credential(desk, f"second of {desk.account_id}", version=2)


def _last_event(desk: Any) -> Any:
    return max(desk.rows("account_event"), key=lambda row: row["sequence"])["payload"]


@pytest.mark.parametrize("what", AGAINST)
def test_an_intent_that_waited_is_denied_by_what_was_set_meanwhile(what, desk, waiting, orders, reaches):
    set_control, code = AGAINST[what]

    set_control(desk)
    _rotate(desk)

    assert reaches(waiting, "DENIED")["reason_code"] == code and orders() == []
    denial = _last_event(desk)
    codes = [reason["code"] for reason in denial.get("reasons", ())]
    assert denial["reason_code"] == code and codes == ([] if code == "ENTITLEMENT_REQUIRED" else [code])
    assert [row["open_actions"] for row in desk.rows("intent")] == [0]


def test_a_denial_lists_every_control_against_it(desk, waiting, reaches):
    for what in ("symbol disabled", "window closed", "account disabled", "account reducing"):
        AGAINST[what][0](desk)

    reaches(waiting, "DENIED")

    codes = [reason["code"] for reason in _last_event(desk)["reasons"]]
    assert codes == ["ACCOUNT_DISABLED", "TRADING_REDUCING", "SYMBOL_DISABLED", "OUTSIDE_TRADING_WINDOW"]
    assert _last_event(desk)["reason_code"] == "ACCOUNT_DISABLED"


def test_an_intent_that_waited_is_sent_when_nothing_speaks_against_it(desk, waiting, orders, reaches):
    """It is the one order that the limit allows, and does not count itself."""
    limits(desk, max_orders_per_minute=1, max_orders_per_day=1)

    _rotate(desk)

    reaches(waiting, "ACCEPTED")
    assert [order["posts"] for order in orders()] == [1]


@pytest.mark.parametrize("what", ["symbol disabled", "quantity above", "trading_live withdrawn"])
def test_a_replacement_is_rejected_by_what_was_set_before_it_was_sent(what, desk, hold_back, orders, reaches):
    set_control, code = AGAINST[what]
    intent = desk.created(limit(SYMBOL))
    before = reaches(intent, "ACCEPTED")

    with hold_back():
        desk.created(replace(intent["intent_id"]))
        set_control(desk)

    after = reaches(intent, "ACCEPTED")
    assert (after["reason_code"], after["broker_order_id"]) == (code, before["broker_order_id"])
    assert [order["status"] for order in orders()] == ["new"] and _last_event(desk)["reason_code"] == code


def test_a_cancel_is_sent_whatever_was_set_before(desk, hold_back, orders, reaches):
    intent = desk.created(limit(SYMBOL))
    reaches(intent, "ACCEPTED")

    with hold_back():
        desk.created(cancel(intent["intent_id"]))
        for what in ALL_TOGETHER:
            AGAINST[what][0](desk)

    reaches(intent, "CANCELED")
    assert [order["status"] for order in orders()] == ["canceled"]


def _hold(desk: Any, quantity: int) -> None:
    desk.execute(
        "INSERT INTO intents.position (account_id, symbol, quantity, updated_at) "
        "VALUES (:account_id, :symbol, :quantity, now())",
        symbol=SYMBOL,
        quantity=quantity,
    )


def test_what_closes_the_position_is_sent_in_the_state_reducing(desk, hold_back, orders, reaches):
    _hold(desk, 10)
    with hold_back():
        intent = desk.created(create(SYMBOL, side="SELL"))
        switch(desk, "REDUCING")

    reaches(intent, "ACCEPTED", "REJECTED")  # the broker itself does not hold it

    assert desk.rows("intent")[0]["reason_code"] != "TRADING_REDUCING"


def test_of_two_orders_that_fit_only_alone_no_two_executors_send_both(desk, hold_back, orders, reaches):
    """Each is open for the other until one is denied."""
    with hold_back():
        limits(desk, max_orders_per_minute=2)
        intents = [desk.created(create(SYMBOL)) for _ in range(2)]
        desk.execute("UPDATE controls.account_limits SET max_orders_per_minute = 1 WHERE account_id = :account_id")

    ends = {reaches(intent, "ACCEPTED", "DENIED")["status"] for intent in intents}

    assert "DENIED" in ends and len(orders()) <= 1


def test_of_two_sales_that_close_a_position_only_alone_at_most_one_is_sent(desk, hold_back, orders, reaches):
    _hold(desk, 10)
    with hold_back():
        intents = [desk.created(create(SYMBOL, side="SELL")) for _ in range(2)]
        switch(desk, "REDUCING")

    for intent in intents:
        reaches(intent, "ACCEPTED", "REJECTED", "DENIED")

    reasons = [row["reason_code"] for row in desk.rows("intent")]
    assert "TRADING_REDUCING" in reasons and len(orders()) <= 1
