"""Orders that an exchange shows as ended before they are filled: believed when it has shown so for a while."""

import time
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

from tip_brokers.protocol import OPEN, Order, OrderStatus

SECONDS = 5.0
MOST_ORDERS = 10_000


class Endings:
    """Some exchanges call an order canceled as soon as that was requested, while it may still be filled.

    So an end counts when it is shown again later, with as much filled. Until then the order is working.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._shown: dict[str, tuple[float, Decimal]] = {}

    def believed(self, order: Order) -> Order:
        if order.status in OPEN or order.status is OrderStatus.FILLED:
            return order
        return order if self._has_stood(order) else replace(order, status=OrderStatus.WORKING)

    def _has_stood(self, order: Order) -> bool:
        since, filled = self._shown.get(order.broker_order_id, (self._now(), order.filled_quantity))
        if filled != order.filled_quantity:
            since = self._now()
        self._shown[order.broker_order_id] = (since, order.filled_quantity)
        if len(self._shown) > MOST_ORDERS:
            self._shown.pop(next(iter(self._shown)), None)
        return self._now() - since >= SECONDS
