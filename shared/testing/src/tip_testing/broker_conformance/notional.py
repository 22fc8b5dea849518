"""Facts about orders by their notional, of a broker that claims them."""

from decimal import Decimal

import pytest

from tip_brokers.protocol import OPEN, Broker, NewOrder, OrderStatus
from tip_testing.broker_conformance.market import Market, new_client_order_id
from tip_testing.broker_conformance.orders import proves
from tip_testing.broker_conformance.trailing import TrailingStops

NOTIONAL = Decimal("33.33")
"""Of no whole quantity at a price of cents."""
_NEAR = Decimal("0.01")


class NotionalOrders(TrailingStops):
    """Inherited by `Conformance`."""

    def by_notional(self, market: Market, symbol: str, time_in_force: str | None = None) -> NewOrder:
        times = market.can.notional_orders
        if not times:
            pytest.skip("this broker claims no order by its notional")
        wanted = NOTIONAL * self.scale(market).unit
        return NewOrder(
            new_client_order_id(), symbol, "BUY", "Market", Decimal(0), time_in_force or times[0], notional=wanted
        )

    @proves("notional_orders")
    def test_an_order_by_its_notional_fills_for_that_much_money(self, market: Market, broker: Broker) -> None:
        """With every time in force that is claimed."""
        for time in market.can.notional_orders or (None,):
            wanted = self.by_notional(market, market.filling, time)

            filled = self.ended(broker, broker.create(wanted), OrderStatus.FILLED)

            value = filled.filled_quantity * (filled.average_price or 0)
            assert wanted.notional and abs(value - wanted.notional) <= _NEAR * wanted.notional, f"it bought for {value}"

    @proves("notional_orders")
    def test_an_order_by_its_notional_is_open_until_the_broker_says_that_it_is_filled(
        self, market: Market, broker: Broker
    ) -> None:
        if market.halving is None:
            pytest.skip("this broker has no symbol for it")
        made = broker.create(self.by_notional(market, market.halving))

        shown = self.shown(broker, made)

        assert shown.status in OPEN and shown.filled_quantity > 0, f"it is {shown.status}"
        assert shown.quantity is None or shown.quantity > shown.filled_quantity
