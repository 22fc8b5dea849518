"""Facts about orders that close one position, of a broker that lets several wait for it, or two as one order."""

from dataclasses import replace
from decimal import ROUND_DOWN, Decimal

import pytest

from tip_brokers.capabilities import Replacement
from tip_brokers.protocol import OPEN, Broker, Change, NewOrder, Order, OrderStatus, StopExit
from tip_testing.broker_conformance.market import Market, new_client_order_id
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


class ExitPairs(SharedExits):
    """Inherited by `Conformance`."""

    @proves("exit_pairs")
    @pytest.mark.parametrize("canceled", ["target", "stop"])
    def test_two_exits_sent_as_one_order_both_rest_until_one_is_canceled(
        self, canceled: str, market: Market, broker: Broker
    ) -> None:
        """For all that is held: of less, a broker that reserves it for each of them might have enough."""
        pair = self.far_pair(market, broker)
        target, stop = self.both(broker, broker.create(pair))

        assert [order.status in OPEN for order in (target, stop)] == [True, True]
        assert (target.kind, stop.kind, stop.quantity) == ("Limit", "Stop", pair.quantity)
        self.is_found(broker, pair, stop)
        broker.cancel((target if canceled == "target" else stop).broker_order_id)
        for order in (target, stop):
            self.ended(broker, order, OrderStatus.CANCELED)

    @proves("exit_pairs")
    @pytest.mark.parametrize("replaced", ["target", "stop"])
    def test_an_exit_is_replaced_in_its_price_and_the_one_sent_with_it_stays(
        self, replaced: str, market: Market, broker: Broker
    ) -> None:
        """And the stop is found with the target that was sent, or with the one in its place."""
        if market.can.replacement is Replacement.NONE:
            pytest.skip("this broker claims no replacement")
        pair = self.far_pair(market, broker)
        target, stop = self.both(broker, broker.create(pair))
        old, other = (target, stop) if replaced == "target" else (stop, target)

        change = self.new_price(pair, replaced)
        new = broker.replace(old.broker_order_id, change)

        self.ended(broker, old, OrderStatus.REPLACED)
        assert [self.shown(broker, order).status in OPEN for order in (new, other)] == [True, True]
        assert self.shown(broker, new).quantity == pair.quantity
        if replaced == "target":
            shown = [broker.find(name, pair.symbol) for name in (pair.client_order_id, change.client_order_id)]
            legs = {leg.broker_order_id for order in shown if order for leg in order.legs or ()}
            assert legs == {stop.broker_order_id}
        broker.cancel(new.broker_order_id)
        for order in (new, other):
            self.ended(broker, order, OrderStatus.CANCELED)

    def new_price(self, pair: NewOrder, replaced: str) -> Change:
        change = Change(new_client_order_id(), pair.quantity, pair.time_in_force, only_prices=True)
        if replaced == "target":
            return replace(change, limit_price=(pair.limit_price or Decimal(0)) + 1)
        stop = pair.stop_exit.stop_price if pair.stop_exit else Decimal(1)
        return replace(change, stop_price=stop + Decimal("0.01"))

    @proves("exit_pairs")
    @pytest.mark.parametrize("filled", ["target", "stop"])
    def test_an_exit_that_is_filled_cancels_the_one_sent_with_it(
        self, filled: str, market: Market, broker: Broker
    ) -> None:
        self.needs_exit_pairs(market)
        symbol = self.moved(market, 100)
        quantity = self.bought(broker, self.marketable(market, symbol))
        pair = self.pair(market, symbol, quantity, Decimal(130), Decimal(70))
        target, stop = self.both(broker, broker.create(pair))

        self.moved(market, 131 if filled == "target" else 69)

        both = [target, stop] if filled == "target" else [stop, target]
        self.ended(broker, both[0], OrderStatus.FILLED)
        self.ended(broker, both[1], OrderStatus.CANCELED)

    def far_pair(self, market: Market, broker: Broker) -> NewOrder:
        """Two exits far above and far below the market, for what is held after a purchase."""
        self.needs_exit_pairs(market)
        _, low, high = self.scale(market)
        if high is None:
            pytest.skip("without a latest price nobody knows what is far above it")
        quantity = self.bought(broker, self.filling(market))
        return self.pair(market, market.filling, quantity, high, low)

    def needs_exit_pairs(self, market: Market) -> None:
        if not market.can.exit_pairs:
            pytest.skip("this broker claims no two exits as one order")

    def bought(self, broker: Broker, order: NewOrder) -> Decimal:
        """How much is held of the symbol after the order, in whole units: what was held before is there as well."""

        def held() -> Decimal:
            return sum((p.quantity for p in broker.positions() if p.symbol == order.symbol), Decimal(0))

        before = held()
        self.ended(broker, broker.create(order), OrderStatus.FILLED)
        eventually(lambda: held() == before + order.quantity, settle_seconds(broker))
        whole = held().to_integral_value(ROUND_DOWN)
        if whole <= 0:
            pytest.skip("what is held is not one whole unit, for which two exits could be")
        return whole

    def pair(self, market: Market, symbol: str, quantity: Decimal, target: Decimal, stop: Decimal) -> NewOrder:
        time = market.can.exit_pairs[0]
        limit = NewOrder(new_client_order_id(), symbol, "SELL", "Limit", quantity, time, target)
        return replace(limit, stop_exit=StopExit(stop))

    def both(self, broker: Broker, made: Order) -> list[Order]:
        """The target and the stop, as the broker shows each of them by itself."""
        assert made.legs is not None, "an order with two exits is shown as an order that is alone"
        assert len(made.legs) == 1, f"an order with two exits is shown with {len(made.legs)} legs"
        return [self.shown(broker, order) for order in (made, *made.legs)]

    def is_found(self, broker: Broker, sent: NewOrder, stop: Order) -> None:
        """How an unknown outcome becomes known, of both."""
        found = broker.find(sent.client_order_id, sent.symbol)
        assert found, "an order with two exits is found by its client order id"
        assert [leg.broker_order_id for leg in found.legs or ()] == [stop.broker_order_id]
