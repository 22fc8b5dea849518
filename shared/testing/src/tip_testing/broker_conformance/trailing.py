"""Facts about trailing stops, of a broker that claims them."""

from dataclasses import replace
from decimal import Decimal

import pytest

from tip_brokers.capabilities import Replacement
from tip_brokers.protocol import OPEN, Broker, Change, NewOrder, OrderStatus
from tip_testing.broker_conformance.market import Market, new_client_order_id
from tip_testing.broker_conformance.orders import proves, time_for
from tip_testing.broker_conformance.reads import Reads

KIND = "TrailingStop"


class TrailingStops(Reads):
    """Inherited by `Conformance`."""

    def trailing(self, market: Market, symbol: str, side: str, **trail: Decimal) -> NewOrder:
        if KIND not in market.can.kinds:
            pytest.skip("this broker claims no TrailingStop")
        unit = self.scale(market).unit
        made = NewOrder(new_client_order_id(), symbol, side, KIND, unit, time_for(market, KIND))
        return replace(made, trail_amount=trail.get("trail_amount"), trail_percent=trail.get("trail_percent"))

    def moved(self, market: Market, price: int) -> str:
        symbol = self.move(market, Decimal(price))
        if symbol is None:
            pytest.skip("nobody can set a price at this broker")
        return symbol

    @proves("kinds")
    @pytest.mark.parametrize("name", ["trail_amount", "trail_percent"])
    def test_a_trailing_stop_is_accepted_as_one(self, name: str, market: Market, broker: Broker) -> None:
        wanted = self.trailing(market, market.resting, "BUY", **{name: Decimal(5)})

        shown = self.shown(broker, broker.create(wanted))

        assert (shown.kind, shown.status in OPEN) == (KIND, True), f"it is shown as {shown.kind} {shown.status}"

    @proves("kinds")
    @pytest.mark.parametrize(("name", "trail"), [("trail_amount", 13), ("trail_percent", 10)])
    def test_a_trailing_stop_follows_the_price_and_sells_when_it_turns(
        self, name: str, trail: int, market: Market, broker: Broker
    ) -> None:
        """The stop of a SELL is at 117 once the price was at 130: one that stays where it was does not fill there."""
        wanted = self.trailing(market, market.resting, "SELL", **{name: Decimal(trail)})
        symbol = self.moved(market, 100)
        made = broker.create(replace(wanted, symbol=symbol))
        self.moved(market, 130)
        self.moved(market, 118)
        shown = self.shown(broker, made)
        assert shown.status in OPEN, f"it is {shown.status} before the price was reached"

        self.moved(market, 117)

        assert self.ended(broker, made, OrderStatus.FILLED)

    @proves("kinds")
    def test_the_trail_of_a_trailing_stop_is_replaced(self, market: Market, broker: Broker) -> None:
        """It goes on from the best price of the order that it replaces."""
        wanted = self.trailing(market, market.resting, "SELL", trail_amount=Decimal(40))
        if market.can.replacement is Replacement.NONE:
            pytest.skip("this broker claims no replacement")
        symbol = self.moved(market, 100)
        made = broker.create(replace(wanted, symbol=symbol))
        self.moved(market, 130)
        self.moved(market, 118)

        change = Change(new_client_order_id(), wanted.quantity, wanted.time_in_force, trail_amount=Decimal(13))
        new = broker.replace(made.broker_order_id, change)
        self.moved(market, 117)

        assert self.ended(broker, new, OrderStatus.FILLED)
