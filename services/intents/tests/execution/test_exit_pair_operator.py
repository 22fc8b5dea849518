"""What an operator says of the stop of a pair, which the broker may have under a name of its own making."""

from collections.abc import Callable
from contextlib import nullcontext
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from click.testing import CliRunner

from intents.execution import operator
from intents.execution.client_order_id import client_order_id
from intents.execution.model.verdicts import OPERATOR_REQUIRED, RetryLater
from tip import unresolved_orders
from tip_brokers import OrderStatus
from tip_testing.commands import create

from ..broker_side import accept
from .paired_desk import NAME, PairedDesk

NOTE = "seen in the broker's list"


class Stop:
    """A stop of which the broker does not show what became of it."""

    def __init__(self, desk: Any) -> None:
        self.pair = PairedDesk(desk)
        self.pair.reported(self.pair.pair())
        command = self.pair.claim("other")
        self.name = command.client_order_id
        self.pair.answered(command, RetryLater(2.0, "It is not shown.", OPERATOR_REQUIRED, absent=True))

    def resolve(self, shown_as: str | None, status: OrderStatus = OrderStatus.WORKING) -> None:
        found = operator.Found("b2", status, Decimal(0), None, shown_as)
        operator.resolve(self.pair.desk.deps.engine, self.name, found, NOTE)


@pytest.fixture
def stop(new_desk: Callable[..., Any], organization: Any) -> Stop:
    return Stop(new_desk(organization=organization))


def listed(desk: Any) -> list[Any]:
    return [found for found in operator.unresolved(desk.deps.engine) if found.account_id == desk.account_id]


def test_a_stop_is_listed_with_the_order_of_which_it_may_be_a_leg(stop: Stop) -> None:
    [found] = listed(stop.pair.desk)

    assert (found.client_order_id, found.leader) == (stop.name, stop.pair.limit.client_order_id)


def test_a_stop_that_was_found_without_its_name_is_not_settled(stop: Stop) -> None:
    with pytest.raises(operator.NameRequired) as refusal:
        stop.resolve(None)

    assert refusal.value.leader == stop.pair.limit.client_order_id
    assert stop.pair.stop["reason_code"] == OPERATOR_REQUIRED


def test_a_stop_that_an_operator_has_found_as_a_leg_is_that_leg(stop: Stop) -> None:
    stop.resolve(NAME)

    assert (stop.pair.stop["status"], stop.pair.stop["open_actions"], listed(stop.pair.desk)) == ("ACCEPTED", 0, [])
    stop.pair.reported(stop.pair.leg(OrderStatus.FILLED, 10))
    assert stop.pair.stop["status"] == "FILLED" and stop.pair.strangers() == []
    assert stop.pair.names() == {stop.pair.limit.client_order_id, NAME}


def test_a_stop_that_an_operator_has_found_by_itself_has_the_name_of_its_command(stop: Stop) -> None:
    stop.resolve(stop.name)

    assert stop.pair.stop["status"] == "ACCEPTED"
    assert stop.pair.names() == {stop.pair.limit.client_order_id, stop.name}


def test_a_leg_that_has_ended_ends_the_stop(stop: Stop) -> None:
    stop.resolve(NAME, OrderStatus.CANCELED)

    assert (stop.pair.stop["status"], stop.pair.stop["open_actions"]) == ("CANCELED", 0)


def test_the_name_of_another_order_is_refused(stop: Stop) -> None:
    other = accept(stop.pair.desk, stop.pair.desk.created(create("OTHER"))["intent_id"], "b9")

    for name in (stop.pair.limit.client_order_id, other.client_order_id, f"{NAME}#b2"):
        with pytest.raises(operator.OtherOrder):
            stop.resolve(name)
    assert stop.pair.stop["reason_code"] == OPERATOR_REQUIRED


def test_the_command_line_says_what_is_missing_and_takes_it(stop: Stop, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, leader = stop.pair.desk.deps.engine, stop.pair.limit.client_order_id
    monkeypatch.setattr(unresolved_orders, "connected", lambda: nullcontext(engine))
    found = [stop.name, "--broker-order-id", "b2", "--status", "working"]

    assert f"perhaps a leg of {leader}" in CliRunner().invoke(unresolved_orders.unresolved).output
    refused = CliRunner().invoke(unresolved_orders.resolve, found)
    assert refused.exit_code == 1 and f"a leg of {leader}: give --shown-as" in str(refused.exception or refused.output)
    settled = CliRunner().invoke(unresolved_orders.resolve, [*found, "--shown-as", NAME])

    assert (settled.exit_code, stop.pair.stop["status"]) == (0, "ACCEPTED")


def test_only_a_stop_has_another_name_than_its_command(desk: Any) -> None:
    intent = desk.created(create("OTHER"))
    desk.execute(
        "UPDATE intents.intent SET outcome = 'unknown', reason_code = 'OPERATOR_REQUIRED' "
        "WHERE account_id = :account_id"
    )
    found = operator.Found("b9", OrderStatus.WORKING, Decimal(0), None, NAME)

    with pytest.raises(operator.OtherOrder):
        operator.resolve(desk.deps.engine, client_order_id(UUID(intent["id"])), found, NOTE)
