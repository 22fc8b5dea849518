"""The orders of one account, and what becomes of them."""

import base64
import threading
import time
from dataclasses import dataclass, field
from decimal import Decimal

KEY = "loopback-key"
SECRET = base64.b64encode(b"loopback secret, long enough for HMAC").decode()
UID = 4711
PRICE = Decimal(20)
STEP, LEAST, LEAST_VALUE = Decimal("0.001"), Decimal("0.002"), Decimal(1)
COINS = ("FILL", "OPEN", "HALF", "REJECT", "SILENT", "CUT", "SLOW", "LIMITED", "MANY")
"""Fills at once; rests; fills half and rests; is refused; is done and never answered; is done and the connection cut;
is done and answered late; is refused because of too many requests, or of too many orders."""
SILENT_SECONDS, SLOW_SECONDS = 30.0, 0.3


class Refusal(Exception):
    """`kind`: duplicate, absent, funds, expired, key or limit."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


@dataclass
class Order:
    id: int
    client_id: str
    coin: str
    side: str
    kind: str
    quantity: Decimal
    limit_price: Decimal | None
    stop_price: Decimal | None
    time_in_force: str
    created: float
    filled: Decimal = Decimal(0)
    status: str = "open"
    changed: float = 0.0

    @property
    def average(self) -> Decimal:
        return PRICE if self.filled else Decimal(0)


@dataclass
class Book:
    key: str = KEY
    uid: int = UID
    orders: list[Order] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    cancels: int = 0
    """How many were requested."""
    lose_next: bool = False
    """Whether the next order is lost on its way: nothing is done, and nobody answers."""

    def create(self, client_id: str, coin: str, side: str, kind: str, **terms: object) -> Order:
        """Ids are unique among open orders only."""
        with self.lock:
            if any(order.client_id == client_id and order.status == "open" for order in self.orders):
                raise Refusal("duplicate")
            if coin == "REJECT":
                raise Refusal("funds")
            if coin in ("LIMITED", "MANY"):
                raise Refusal("limit" if coin == "LIMITED" else "many")
            order = Order(len(self.orders) + 1001, client_id, coin, side, kind, created=time.time(), **terms)  # type: ignore[arg-type]
            order.changed = order.created
            self.orders.append(order)
            self._match(order)
            return order

    def _match(self, order: Order) -> None:
        if order.stop_price is not None:
            return
        crosses = order.limit_price is None or order.limit_price >= PRICE
        if order.coin in ("FILL", "SILENT", "CUT", "SLOW") and crosses:
            order.filled, order.status = order.quantity, "filled"
        elif order.coin == "HALF" and crosses:
            order.filled = order.quantity / 2
        if order.status == "open" and order.time_in_force in ("IOC", "FOK"):
            order.status = "expired"

    def cancel(self, order_id: int) -> Order:
        with self.lock:
            self.cancels += 1
            order = self.by_id(order_id)
            if order.status != "open":
                raise Refusal("absent")
            order.status, order.changed = "canceled", time.time()
            return order

    def by_id(self, order_id: int) -> Order:
        found = [order for order in self.orders if order.id == order_id]
        if not found:
            raise Refusal("absent")
        return found[0]

    def by_client_id(self, client_id: str) -> Order:
        found = [order for order in self.orders if order.client_id == client_id]
        if not found:
            raise Refusal("absent")
        return found[-1]

    def held(self, coin: str) -> Decimal:
        signs = {"BUY": 1, "SELL": -1}
        return sum((signs[order.side] * order.filled for order in self.orders if order.coin == coin), Decimal(0))
