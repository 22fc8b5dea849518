"""A reading of an account: which fills its positions contain, and what it costs the broker."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import uuid4

from intents.execution import recorder, store
from intents.execution.account_reading import READ_TIMES, read_account
from intents.execution.model.inputs import BrokerReport
from intents.execution.model.known_orders import Holdings, KnownOpenOrder, ReadingStart
from intents.execution.reconciliation import AccountReconciliation
from tip_brokers import Balance, Order, OrderStatus, Position
from tip_testing.commands import create

from ..broker_side import accept, fill
from .conftest import give_credential
from .test_other_account import hold, reference

NOW = datetime.now(UTC)
ORDER = Order("tip-1", "b1", OrderStatus.WORKING, "ABC", "BUY", "Limit", Decimal(90), Decimal(0), None, NOW, NOW)
FUNDS = Balance("USD", Decimal(1), Decimal(1), Decimal(1))


class Filling:
    """A broker that fills its order by one at each of the first `fills` calls."""

    def __init__(self, fills: int) -> None:
        self.order_there, self.fills, self.calls = ORDER, fills, Counter[str]()

    def _called(self, name: str) -> None:
        self.calls[name] += 1
        if sum(self.calls.values()) <= self.fills:
            filled = self.order_there.filled_quantity + 1
            self.order_there = replace(self.order_there, filled_quantity=filled, average_price=Decimal(1))

    def positions(self) -> list[Position]:
        self._called("positions")
        return [Position("ABC", self.order_there.filled_quantity, None, None, None, None)]

    def open_orders(self) -> list[Order]:
        self._called("open_orders")
        return [self.order_there]

    def executions(self, _after: datetime) -> list[Any]:
        return []

    def balance(self) -> Balance:
        return FUNDS


def read(broker: Filling, recorded: int = 0) -> Holdings:
    known = [KnownOpenOrder("tip-1", "b1", "WORKING", Decimal(recorded), NOW, key="tip-1")]
    account = AccountReconciliation(uuid4(), broker, known)  # type: ignore[arg-type]
    return read_account(account, ReadingStart(NOW, 0, known))[1]


def test_an_account_of_which_nothing_was_filled_is_read_once():
    broker = Filling(fills=0)

    assert read(broker).filled == {"tip-1": 0}
    assert broker.calls == {"positions": 1, "open_orders": 1}


def test_an_account_of_which_something_was_filled_is_read_until_it_is_clear_what_the_positions_contain():
    holdings = read(Filling(fills=3))

    assert holdings.filled == {"tip-1": 3}
    assert [position.quantity for position in holdings.positions] == [3]


def test_of_an_order_that_is_filled_all_the_time_it_is_not_known_what_the_positions_contain():
    broker = Filling(fills=90)

    assert read(broker).filled == {}
    assert broker.calls["positions"] == READ_TIMES


def test_of_an_order_that_is_shown_as_it_was_before_it_is_not_known_what_the_positions_contain():
    assert read(Filling(fills=0), recorded=1).filled == {}


def test_an_order_in_another_account_at_the_broker_holds_up_no_report(desk):
    hold(desk, "first")
    order = accept(desk, desk.created(create("ABC", "20"))["intent_id"], "b1")
    give_credential(desk, "second")
    hold(desk, "second", reference(desk))
    seen = replace(order, filled_quantity=Decimal(4), average_price=Decimal(1), updated_at=NOW)
    recorder.record(desk.deps.connections, [BrokerReport(desk.account_id, seen, NOW)])

    with desk.deps.engine.begin() as tx:
        start = store.begin_reading(tx, desk.account_id)
        shown = [Position("ABC", Decimal(3), None, None, None, None)]
        in_other = {known.key for known in start.orders}
        store.save_holdings(tx, desk.account_id, Holdings(shown, FUNDS, start.began_at, start.sequence, {}, in_other))

    assert [row["quantity"] for row in desk.rows("position")] == [3]


def test_a_fill_in_a_former_account_is_recorded_and_moves_no_position(desk):
    hold(desk, "first")
    intent = desk.created(create("ABC", "20"))
    order = accept(desk, intent["intent_id"], "b1")
    fill(desk, order, "4", "5", "e1")
    give_credential(desk, "second")
    hold(desk, "second", reference(desk))

    fill(desk, replace(order, filled_quantity=Decimal(4)), "5", "5", "e2")
    ended = replace(order, status=OrderStatus.CANCELED, filled_quantity=Decimal(11), average_price=Decimal(5))
    recorder.record(desk.deps.connections, [BrokerReport(desk.account_id, ended, NOW)])

    assert desk.get(f"/{intent['intent_id']}").json["state"]["filled_quantity"] == "11"
    assert [row["quantity"] for row in desk.rows("position")] == [0]


def test_fills_of_an_order_that_had_ended_before_the_report_move_nothing_however_many_come_late(desk):
    order = accept(desk, desk.created(create("ABC", "20"))["intent_id"], "b1")
    ended = replace(order, status=OrderStatus.CANCELED)
    recorder.record(desk.deps.connections, [BrokerReport(desk.account_id, ended, NOW)])
    with desk.deps.engine.begin() as tx:
        start = store.begin_reading(tx, desk.account_id)
        shown = [Position("ABC", Decimal(3), None, None, None, None)]
        store.save_holdings(tx, desk.account_id, Holdings(shown, FUNDS, start.began_at, start.sequence, {}, ()))

    for filled in (1, 2, 3):
        late = replace(ended, filled_quantity=Decimal(filled), average_price=Decimal(1))
        recorder.record(desk.deps.connections, [BrokerReport(desk.account_id, late, NOW)])

        assert [row["quantity"] for row in desk.rows("position")] == [3], f"after {filled}"
