"""What the broker shows of an order, now or within a time that it may take."""

from decimal import Decimal

from tip_brokers.protocol import Broker, Order, OrderStatus
from tip_testing.broker_conformance.market import Market
from tip_testing.broker_conformance.orders import Orders
from tip_testing.waiting import eventually


class Reads(Orders):
    """Inherited by `Conformance`."""

    def shown(self, broker: Broker, made: Order) -> Order:
        found = broker.order(made.broker_order_id)
        assert found, "an order that was accepted is found by the broker's id"
        return found

    def ended(self, broker: Broker, made: Order, *statuses: OrderStatus) -> Order:
        def find() -> Order | None:
            found = broker.order(made.broker_order_id)
            return found if found and found.status in statuses else None

        try:
            return eventually(find, settle_seconds(broker))
        except AssertionError:
            shown = self.shown(broker, made).status
            raise AssertionError(f"the order is {shown}, not {' or '.join(statuses)}") from None

    def held(self, market: Market) -> Decimal:
        held = {position.symbol: position.quantity for position in market.broker.positions()}
        return held.get(market.filling, Decimal(0))


def settle_seconds(broker: Broker) -> float:
    """How long a broker may take for something: many times what one call may."""
    return max(15.0, 5 * broker.call_seconds)
