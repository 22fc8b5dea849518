"""Order groups under limits and switches: exits are no further exposure, and a halt takes none away."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from tip_testing.commands import cancel
from tip_testing.identity_fixtures import Organization

from .conftest import Desk
from .grouping import Broker, bracket, filled_bracket, switch


@pytest.fixture
def desk(new_desk: Callable[..., Desk], organization: Organization) -> Desk:
    """At a broker that does not reserve a position for the first order that closes it."""
    return new_desk(organization=organization, broker="fix")


def totals(desk: Desk) -> tuple[Any, Any, Any]:
    [row] = [row for row in desk.rows("order_total") if row["symbol"] == "AAPL"]
    return row["open_orders"], row["open_buy_quantity"], row["open_sell_quantity"]


def test_limits_count_what_is_open_of_a_group_once(desk: Desk) -> None:
    desk.created(bracket())
    broker = Broker(desk)
    assert totals(desk) == (3, 10, 0)

    broker.send()
    broker.fill("entry", "10")
    assert totals(desk) == (2, 0, 10)
    broker.send()
    desk.created(cancel(broker.legs()["take_profit"]["id"]))
    broker.send()
    assert totals(desk) == (1, 0, 10)
    broker.fill("stop_loss", "10")
    assert totals(desk) == (0, 0, 0)


def limits(desk: Desk, **columns: Any) -> None:
    names = ", ".join(columns)
    values = ", ".join(f":{name}" for name in columns)
    desk.execute(
        f"INSERT INTO controls.account_limits (account_id, organization_id, {names}) "
        f"VALUES (:account_id, :organization_id, {values})",
        organization_id=desk.organization.id,
        **columns,
    )


def test_exits_are_no_further_exposure(desk: Desk) -> None:
    limits(desk, max_position_quantity=Decimal(10), allow_short=False)

    broker = filled_bracket(desk)

    assert broker.statuses() == {"entry": "FILLED", "take_profit": "ACCEPTED", "stop_loss": "ACCEPTED"}


def test_exits_of_a_filled_entry_pass_while_the_account_only_reduces(desk: Desk) -> None:
    desk.created(bracket())
    broker = Broker(desk)
    broker.send()
    switch(desk, "REDUCING")

    assert desk.submit(bracket()).status_code == 422
    broker.fill("entry", "10")
    broker.send()

    assert broker.statuses() == {"entry": "FILLED", "take_profit": "ACCEPTED", "stop_loss": "ACCEPTED"}


def test_a_halt_delays_exits_and_does_not_take_them_away(desk: Desk) -> None:
    desk.created(bracket())
    broker = Broker(desk)
    broker.send()
    switch(desk, "HALTED")

    broker.fill("entry", "10")
    broker.send()
    assert {row["reason_code"] for row in broker.legs().values()} == {None, "TRADING_HALTED"}
    assert set(broker.orders) == {"entry"}
    switch(desk, "ACTIVE")
    desk.execute("UPDATE intents.intent SET next_attempt_at = now() WHERE account_id = :account_id")
    broker.send()

    assert broker.statuses() == {"entry": "FILLED", "take_profit": "ACCEPTED", "stop_loss": "ACCEPTED"}
