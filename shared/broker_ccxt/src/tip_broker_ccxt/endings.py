"""Orders that an exchange shows as ended before they are filled: believed when it has shown so for a while."""

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from tip_brokers.protocol import OPEN, Order, OrderStatus

SECONDS = 5.0
MOST_ORDERS = 10_000


class Shown(NamedTuple):
    since: float
    order: Order


class Endings:
    """Some exchanges call an order canceled as soon as that was requested, while it may still be filled.

    So an end counts when it has been shown for a while, with as much filled. Until then the order is being canceled.
    `account` says whose order it is: at some exchanges two accounts have orders with the same id.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._shown: dict[tuple[str, str], Shown] = {}
        self._lock = threading.Lock()

    def believed(self, account: str, order: Order) -> Order:
        """The order as it is known to stand."""
        key = account, order.broker_order_id
        with self._lock:
            before = self._shown.pop(key, None)
            if order.status in OPEN or order.status is OrderStatus.FILLED:
                return order
            is_same = before is not None and before.order.filled_quantity == order.filled_quantity
            shown = before if before and is_same else Shown(self._now(), order)
            self._keep(key, shown)
            return order if self._has_stood(shown) else replace(order, status=OrderStatus.PENDING_CANCEL)

    def listed(self, account: str, order: Order) -> Order:
        """The same of an order in the listing of open ones: there nothing has ended."""
        with self._lock:
            self._shown.pop((account, order.broker_order_id), None)
        return order if order.status in OPEN else replace(order, status=OrderStatus.PENDING_CANCEL)

    def remembered(self, account: str, broker_order_id: str) -> Order | None:
        """An order that the exchange does not have any more, and last showed as ended: some forget such orders."""
        with self._lock:
            shown = self._shown.get((account, broker_order_id))
            return shown.order if shown and self._has_stood(shown) else None

    def _has_stood(self, shown: Shown) -> bool:
        return self._now() - shown.since >= SECONDS

    def _keep(self, key: tuple[str, str], shown: Shown) -> None:
        self._shown[key] = shown
        if len(self._shown) > MOST_ORDERS:
            del self._shown[next(iter(self._shown))]
