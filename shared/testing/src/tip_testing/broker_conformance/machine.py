"""Whatever may be done to orders, in any order."""

from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, precondition, rule

from tip_brokers.capabilities import Replacement
from tip_brokers.client_ids import ClientIds
from tip_brokers.protocol import (
    OPEN,
    NewOrder,
    Order,
    OrderStatus,
    Refused,
    RejectionNotice,
)
from tip_testing.broker_conformance.market import Market, listen
from tip_testing.broker_conformance.orders import Orders
from tip_testing.waiting import eventually


@dataclass
class ExpectedOrder:
    """What must be true of an order, from what was done to it."""

    order: Order
    may_be: set[OrderStatus]


def machine(market: Market) -> type[RuleBasedStateMachine]:
    """Creates, cancels and replaces at will. Invariant: open orders, single reads and remembered facts agree."""
    broker, orders = market.broker, Orders()

    class OrderMachine(RuleBasedStateMachine):
        made: Any = Bundle("made")

        def __init__(self) -> None:
            super().__init__()
            self.expected: dict[str, ExpectedOrder] = {}
            self.listener = listen(market)

        @rule(target=made, quantity=st.integers(1, 50))
        def rest(self, quantity: int) -> Any:
            return self._create(orders.resting(market, str(quantity)), set(OPEN))

        @rule(target=made, quantity=st.integers(1, 5))
        def fill(self, quantity: int) -> Any:
            return self._create(orders.filling(market, str(quantity)), {*OPEN, OrderStatus.FILLED})

        def _create(self, wanted: NewOrder, may_be: set[OrderStatus]) -> str:
            shown = broker.create(wanted)
            self.expected[wanted.client_order_id] = ExpectedOrder(shown, may_be)
            return wanted.client_order_id

        @precondition(lambda _: market.can.client_ids is ClientIds.UNIQUE)
        @rule(name=made)
        def again(self, name: str) -> None:
            """The same id once more: refused, whatever has become of the first."""
            with pytest.raises(Refused):
                broker.create(replace(orders.resting(market), client_order_id=name))

        @rule(name=made)
        def cancel(self, name: str) -> None:
            expected = self.expected[name]
            try:
                broker.cancel(expected.order.broker_order_id)
                expected.may_be |= {OrderStatus.CANCELED}
                if expected.order.symbol == market.resting:
                    expected.may_be -= {OrderStatus.PENDING, OrderStatus.WORKING}
            except Refused:
                assert self._shown(name).status not in OPEN

        @precondition(lambda _: market.can.replacement is not Replacement.NONE)
        @rule(target=made, name=made, quantity=st.integers(1, 50))
        def replace(self, name: str, quantity: int) -> Any:
            expected = self.expected[name]
            if expected.order.kind != "Limit":
                return multiple()
            change = orders.change(market, "Limit", str(quantity))
            try:
                shown = broker.replace(expected.order.broker_order_id, change)
            except Refused:
                assert (
                    self._shown(name).status not in OPEN
                    and broker.find(change.client_order_id, expected.order.symbol) is None
                )
                return multiple()
            expected.may_be = {OrderStatus.REPLACED, OrderStatus.PENDING_REPLACE}
            self.expected[change.client_order_id] = ExpectedOrder(shown, set(OPEN))
            return change.client_order_id

        def _shown(self, name: str) -> Order:
            shown = broker.find(name, self.expected[name].order.symbol)
            assert shown is not None, "what was accepted must be found by its id"
            return shown

        @invariant()
        def listings_agree(self) -> None:
            open_now = {shown.client_order_id for shown in broker.open_orders()}
            for name, expected in self.expected.items():
                shown = self._shown(name)
                assert shown.status in expected.may_be, f"{name} is {shown.status}"
                assert shown.broker_order_id == expected.order.broker_order_id
                assert (shown.status in OPEN) == (name in open_now)
                assert shown.quantity is None or shown.filled_quantity <= shown.quantity

        def teardown(self) -> None:
            for name in self.expected:
                shown = self._shown(name)
                self._filled_as_reported(shown)
                self._ends_as_reported(shown)
            self.listener.close()

        def _filled_as_reported(self, shown: Order) -> None:
            eventually(lambda: self.listener.filled(shown) == shown.filled_quantity)

        def _ends_as_reported(self, shown: Order) -> None:
            """The last update of the stream has the status that is shown."""

            def last() -> bool:
                updates = [
                    update
                    for update in self.listener.of(shown)
                    if update.rejection is not RejectionNotice.CANCEL_REJECTED
                ]
                return bool(updates) and (updates[-1].order.status == shown.status or shown.status in OPEN)

            eventually(last)

    return OrderMachine
