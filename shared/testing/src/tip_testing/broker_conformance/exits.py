"""Facts about orders that close one position, of a broker that claims to let several wait for it."""

from dataclasses import replace

import pytest

from tip_brokers.protocol import OPEN, Broker, NewOrder, OrderStatus
from tip_testing.broker_conformance.market import Market
from tip_testing.broker_conformance.notional import NotionalOrders
from tip_testing.broker_conformance.orders import proves


class SharedExits(NotionalOrders):
    """Inherited by `Conformance`."""

    @proves("shared_exits")
    def test_a_target_and_a_stop_for_one_position_both_rest(self, market: Market, broker: Broker) -> None:
        """For the whole of it each, whichever comes first."""
        for first, second in (self.exits(market), reversed(self.exits(market))):
            self.ended(broker, broker.create(self.filling(market)), OrderStatus.FILLED)
            made = [broker.create(first), broker.create(second)]

            assert [self.shown(broker, order).status in OPEN for order in made] == [True, True]
            for order in made:
                broker.cancel(order.broker_order_id)
                self.ended(broker, order, OrderStatus.CANCELED)

    def exits(self, market: Market) -> tuple[NewOrder, NewOrder]:
        """Far above and far below the market, for as much as `filling` buys."""
        if not market.can.shared_exits:
            pytest.skip("this broker claims no exits that share a position")
        _, low, high = self.scale(market)
        if not {"Limit", "Stop"} <= market.can.kinds.keys() or high is None:
            pytest.skip("without Limit and Stop orders, and a latest price, nothing rests on both sides of it")
        bought = self.filling(market).quantity
        target, stop = (self.of_kind(market, market.filling, kind) for kind in ("Limit", "Stop"))
        target, stop = (replace(order, order_side="SELL", quantity=bought) for order in (target, stop))
        return replace(target, limit_price=high), replace(stop, stop_price=low)
