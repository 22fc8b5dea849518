"""Facts about orders that close one position, of a broker that claims to let several wait for it."""

from dataclasses import replace
from decimal import Decimal

import pytest

from tip_brokers.protocol import OPEN, Broker, NewOrder, OrderStatus
from tip_testing.broker_conformance.market import Market
from tip_testing.broker_conformance.notional import NotionalOrders
from tip_testing.broker_conformance.orders import proves
from tip_testing.broker_conformance.reads import settle_seconds
from tip_testing.waiting import eventually


class SharedExits(NotionalOrders):
    """Inherited by `Conformance`."""

    @proves("shared_exits")
    @pytest.mark.parametrize("first", ["target", "stop"])
    def test_a_target_and_a_stop_for_one_position_both_rest(self, first: str, market: Market, broker: Broker) -> None:
        """Each for all that is held: of less, a broker that reserves what an order closes might have enough."""
        self.needs_shared_exits(market)
        before, bought = self.held(market), self.filling(market)
        self.ended(broker, broker.create(bought), OrderStatus.FILLED)
        eventually(lambda: self.held(market) == before + bought.quantity, settle_seconds(broker))

        made = [broker.create(order) for order in self.exits(market, before + bought.quantity, first)]

        assert [self.shown(broker, order).status in OPEN for order in made] == [True, True]
        for order in made:
            broker.cancel(order.broker_order_id)
            self.ended(broker, order, OrderStatus.CANCELED)

    def needs_shared_exits(self, market: Market) -> None:
        if not market.can.shared_exits:
            pytest.skip("this broker claims no exits that share a position")
        if not {"Limit", "Stop"} <= market.can.kinds.keys() or self.scale(market).high is None:
            pytest.skip("without Limit and Stop orders, and a latest price, nothing rests on both sides of it")

    def exits(self, market: Market, held: Decimal, first: str) -> list[NewOrder]:
        """Far above and far below the market."""
        _, low, high = self.scale(market)
        target, stop = (
            replace(self.of_kind(market, market.filling, kind), order_side="SELL", quantity=held)
            for kind in ("Limit", "Stop")
        )
        both = [replace(target, limit_price=high), replace(stop, stop_price=low)]
        return both if first == "target" else both[::-1]
