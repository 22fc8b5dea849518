"""A sandbox takes so many calls a minute, and keeps what is left there."""

import time
from collections.abc import Callable, Iterator
from typing import Any

from tip_brokers import Broker, Change, NewOrder, RateLimited

RETRY_SECONDS, ATTEMPTS = 5.0, 5


class Paced:
    """A broker's verbs, below the limit that it claims. Waits when it says later; knows which orders it has sent."""

    def __init__(
        self, broker: Broker, calls_per_minute: int | None, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._broker, self._sleep = broker, sleep
        self._every, self._last = 60 / calls_per_minute if calls_per_minute else 0.0, 0.0
        self.sent: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._broker, name)
        if not callable(found) or name == "listen":
            return found
        return lambda *given: self._call(found, given)

    def _call(self, verb: Callable[..., Any], given: tuple[Any, ...]) -> Any:
        self.sent |= {part.client_order_id for part in given if isinstance(part, NewOrder | Change)}
        for _ in range(ATTEMPTS):
            self._wait()
            try:
                result = verb(*given)
                return list(result) if isinstance(result, Iterator) else result
            except RateLimited as later:
                self._sleep(later.retry_after or RETRY_SECONDS)
        return verb(*given)

    def _wait(self) -> None:
        self._sleep(max(0.0, self._last + self._every - time.monotonic()))
        self._last = time.monotonic()

    def cancel_all_sent(self) -> list[str]:
        """Cancel what is still open of the orders sent; those that could not be canceled."""
        left = [order for order in self.open_orders() if order.client_order_id in self.sent]
        return [order.broker_order_id for order in left if not self._is_canceled(order.broker_order_id)]

    def _is_canceled(self, broker_order_id: str) -> bool:
        try:
            self.cancel(broker_order_id)
        except Exception:  # noqa: BLE001 - whatever it is, the others are canceled all the same
            return False
        return True
