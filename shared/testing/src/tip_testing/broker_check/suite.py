"""The kit as the command runs it; `plugin.CheckPlugin` gives it its market."""

from decimal import Decimal
from typing import Any

from tip_brokers import NewOrder
from tip_testing.broker_conformance import Conformance
from tip_testing.broker_conformance.orders import Scale


class TestBroker(Conformance):
    def scale(self, market: Any) -> Scale:
        scale: Scale = market.scale
        return scale

    def move(self, market: Any, price: Decimal) -> str | None:
        return market.move(price) if market.move else None

    def went_direct(self, market: Any, sent: NewOrder) -> bool | None:
        return market.went_direct(sent.client_order_id) if market.went_direct else None
