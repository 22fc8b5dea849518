"""Whatever may be done to orders, in any order."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, rule

from intents.brokers.protocol import (
    OPEN,
    Change,
    NewOrder,
    Order,
    OrderStatus,
    Refused,
    RejectionNotice,
)
from tip_testing.broker_conformance.market import Listener, Market, limit, new_client_order_id, order
from tip_testing.waiting import eventually


@dataclass
class Known:
    """What must be true of an order, from what was done to it."""

    order: Order
    may_be: set[OrderStatus]


def machine(market: Market) -> type[RuleBasedStateMachine]:
    """Creates, cancels and replaces at will. Invariant: open orders, single reads and remembered facts agree."""
    broker = market.broker

    class Orders(RuleBasedStateMachine):
        made: Any = Bundle("made")

        def __init__(self) -> None:
            super().__init__()
            self.known: dict[str, Known] = {}
            self.listener = Listener(broker)

        @rule(target=made, quantity=st.integers(1, 50))
        def rest(self, quantity: int) -> Any:
            return self._create(limit(market.resting, "1", str(quantity)), set(OPEN))

        @rule(target=made, quantity=st.integers(1, 5))
        def fill(self, quantity: int) -> Any:
            return self._create(order(market.filling, str(quantity)), {*OPEN, OrderStatus.FILLED})

        def _create(self, wanted: NewOrder, may_be: set[OrderStatus]) -> str:
            shown = broker.create(wanted)
            self.known[wanted.client_order_id] = Known(shown, may_be)
            return wanted.client_order_id

        @rule(name=made)
        def again(self, name: str) -> None:
            """The same id once more: refused, whatever has become of the first."""
            with pytest.raises(Refused):
                broker.create(NewOrder(name, market.resting, "BUY", "Market", Decimal(1), "DAY"))

        @rule(name=made)
        def cancel(self, name: str) -> None:
            known = self.known[name]
            try:
                broker.cancel(known.order.broker_order_id)
                known.may_be |= {OrderStatus.CANCELED}
                if known.order.symbol == market.resting:
                    known.may_be -= {OrderStatus.PENDING, OrderStatus.WORKING}
            except Refused:
                assert self._shown(name).status not in OPEN

        @rule(target=made, name=made, quantity=st.integers(1, 50))
        def replace(self, name: str, quantity: int) -> Any:
            known = self.known[name]
            change = Change(new_client_order_id(), Decimal(quantity), "GTC", Decimal(1))
            if known.order.kind != "Limit":
                return multiple()
            try:
                shown = broker.replace(known.order.broker_order_id, change)
            except Refused:
                assert self._shown(name).status not in OPEN and broker.find(change.client_order_id) is None
                return multiple()
            known.may_be = {OrderStatus.REPLACED, OrderStatus.PENDING_REPLACE}
            self.known[change.client_order_id] = Known(shown, set(OPEN))
            return change.client_order_id

        def _shown(self, name: str) -> Order:
            shown = broker.find(name)
            assert shown is not None, "what was accepted must be found by its id"
            return shown

        @invariant()
        def one_story(self) -> None:
            open_now = {one.client_order_id: one for one in broker.open_orders()}
            for name, known in self.known.items():
                shown = self._shown(name)
                assert shown.status in known.may_be, f"{name} is {shown.status}"
                assert shown.broker_order_id == known.order.broker_order_id
                assert (shown.status in OPEN) == (name in open_now)
                assert shown.quantity is None or shown.filled_quantity <= shown.quantity

        def teardown(self) -> None:
            for name in self.known:
                shown = self._shown(name)
                self._filled_as_told(name, shown)
                self._ends_as_told(name, shown)
            self.listener.close()

        def _filled_as_told(self, name: str, shown: Order) -> None:
            eventually(lambda: self.listener.filled(name) == shown.filled_quantity)

        def _ends_as_told(self, name: str, shown: Order) -> None:
            """The last word of the stream is the state that is shown."""

            def last() -> bool:
                updates = [
                    one for one in self.listener.of(name) if one.rejection is not RejectionNotice.CANCEL_REJECTED
                ]
                return bool(updates) and (updates[-1].order.status == shown.status or shown.status in OPEN)

            eventually(last)

    return Orders
