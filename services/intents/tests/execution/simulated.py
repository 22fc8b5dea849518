"""A broker in memory on a bad line: requests come late, never, or unanswered; updates out of order or never."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from tip_brokers import (
    OPEN,
    Change,
    ClientIds,
    DuplicateClientOrderId,
    Execution,
    NewOrder,
    Order,
    OrderStatus,
    OrderUpdate,
    OutcomeUnknown,
    RateLimited,
    Refused,
    RejectionNotice,
)

START = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
REPLACEABLE = (OrderStatus.PENDING, OrderStatus.WORKING)
NOBODY: Any = lambda: None  # noqa: E731 - a check that passes


@dataclass
class Simulated:
    """`calm`: nothing goes wrong any more and nothing is filled. `lags`: reads may show what was a little earlier."""

    dice: random.Random
    say: Callable[[str], None]
    lags: bool = False
    takes_duplicates: bool = False
    calm: bool = False
    now: datetime = START
    orders_by_id: dict[str, Order] = field(default_factory=dict)
    limits: dict[str, Decimal | None] = field(default_factory=dict)
    history: dict[str, list[Order]] = field(default_factory=dict)
    fills: list[Execution] = field(default_factory=list)
    updates: list[OrderUpdate] = field(default_factory=list)
    on_their_way: list[tuple[str, Callable[[], Order | None]]] = field(default_factory=list)
    client_ids = ClientIds.UNIQUE
    call_seconds = 4.0

    # ---- what the platform calls

    def create(self, order: NewOrder, check: Callable[[], None] = NOBODY) -> Order:
        check()

        def do() -> Order:
            return self._make(order.client_order_id, order.quantity, order.limit_price)

        made = self._sent(f"POST {order.client_order_id[-4:]} for {order.quantity}", do)
        assert made
        return made

    def replace(self, broker_order_id: str, change: Change, check: Callable[[], None] = NOBODY) -> Order:
        check()

        def do() -> Order:
            self._refuse_unless(self.orders_by_id[broker_order_id].status in REPLACEABLE)
            made = self._make(change.client_order_id, change.quantity, change.limit_price, replaces=broker_order_id)
            if made.status is OrderStatus.PENDING and self.dice.random() < 0.5:
                self.move(broker_order_id, status=OrderStatus.PENDING_REPLACE)
            else:
                self.move(broker_order_id, status=OrderStatus.REPLACED, replaced_by=made.broker_order_id)
            return made

        made = self._sent(f"PATCH {broker_order_id} {change.client_order_id[-4:]} for {change.quantity}", do)
        assert made
        return made

    def cancel(self, broker_order_id: str, check: Callable[[], None] = NOBODY) -> None:
        check()

        def do() -> None:
            self._refuse_unless(self.orders_by_id[broker_order_id].status in OPEN - {OrderStatus.PENDING_REPLACE})
            slowly = self.dice.random() < 0.3
            self.move(broker_order_id, status=OrderStatus.PENDING_CANCEL if slowly else OrderStatus.CANCELED)

        self._sent(f"DELETE {broker_order_id}", do)

    def find(self, client_order_id: str, symbol: str) -> Order | None:
        self._read()
        found = [order for order in self.orders_by_id.values() if order.client_order_id == client_order_id]
        return self._shown(found[0]) if found else None

    def order(self, broker_order_id: str) -> Order | None:
        self._read()
        return self._shown(self.orders_by_id[broker_order_id])

    def open_orders(self) -> list[Order]:
        self._read()
        shown = [self._shown(order) for order in self.orders_by_id.values()]
        return [order for order in shown if order and order.status in OPEN]

    def executions(self, _after: datetime) -> list[Execution]:
        self._read()
        return list(self.fills)

    # ---- what happens there

    def live(self) -> None:
        """A moment passes: orders come to the market, fill, and are canceled or not."""
        for order in list(self.orders_by_id.values()):
            if order.status is OrderStatus.PENDING_CANCEL and self.dice.random() < 0.5:
                self._end_cancel(order)
            elif order.status is OrderStatus.PENDING and self.dice.random() < 0.5:
                self._enter(order)
            elif order.status is OrderStatus.PENDING_REPLACE and not self._is_being_replaced(order):
                self.move(order.broker_order_id, status=OrderStatus.WORKING)
            elif order.status in OPEN - {OrderStatus.PENDING} and self.dice.random() < 0.12:
                self._fill(order)

    def somebody_acts(self) -> None:
        """An order ends, or is replaced, by nothing that we have done."""
        ours = [order for order in self.orders_by_id.values() if order.status in REPLACEABLE and is_ours(order)]
        if not ours:
            return
        order = self.dice.choice(ours)
        rejected = OrderStatus.EXPIRED if order.filled_quantity else OrderStatus.REJECTED
        status = self.dice.choice([OrderStatus.EXPIRED, OrderStatus.CANCELED, OrderStatus.REPLACED, rejected])
        self.say(f"the broker: {order.broker_order_id} is {status}")
        made = None
        if status is OrderStatus.REPLACED:
            left = (order.quantity or Decimal(0)) - order.filled_quantity
            made = self._make(f"theirs {order.broker_order_id}", left, Decimal(99)).broker_order_id
        self.move(order.broker_order_id, status=status, replaced_by=made)

    def deliver_late(self) -> None:
        if not self.on_their_way:
            return
        what, do = self.on_their_way.pop(self.dice.randrange(len(self.on_their_way)))
        self.say(f"late: {what}")
        try:
            do()
        except Refused as refusal:
            self.say(f"  {refusal}")

    def next_update(self) -> OrderUpdate | None:
        """The next of the stream, sometimes a later one; None if there is none or it is lost."""
        if not self.updates:
            return None
        update = self.updates.pop(self.dice.randrange(len(self.updates)) if self.dice.random() < 0.3 else 0)
        return None if not self.calm and self.dice.random() < 0.25 else update

    def move(
        self,
        broker_order_id: str,
        execution: Execution | None = None,
        rejection: RejectionNotice | None = None,
        **to: Any,
    ) -> None:
        moved = replace(self.orders_by_id[broker_order_id], updated_at=self.now, **to)
        self.orders_by_id[broker_order_id] = moved
        self.history[broker_order_id].append(moved)
        self.updates.append(OrderUpdate(moved, self.now, execution, rejection))

    def _make(self, name: str, quantity: Decimal, limit: Decimal | None, replaces: str | None = None) -> Order:
        if not self.takes_duplicates and any(order.client_order_id == name for order in self.orders_by_id.values()):
            raise DuplicateClientOrderId("DUPLICATE", "client_order_id must be unique")
        number, status = f"b{len(self.orders_by_id) + 1}", self.dice.choice(REPLACEABLE)
        made = Order(
            name, number, status, "ABC", "BUY", "Limit", quantity, Decimal(0), None, self.now, self.now, replaces
        )  # fmt: skip
        self.orders_by_id[number], self.limits[number], self.history[number] = made, limit, []
        self.move(number)
        return made

    def _is_being_replaced(self, old: Order) -> bool:
        others = self.orders_by_id.values()
        return any(order.replaces == old.broker_order_id and order.status is OrderStatus.PENDING for order in others)

    def _enter(self, order: Order) -> None:
        """It comes to the market; in the place of another only if that is still open, and not always then."""
        old = self.orders_by_id.get(order.replaces or "")
        if old is None or old.status is OrderStatus.REPLACED:
            self.move(order.broker_order_id, status=OrderStatus.WORKING)
        elif old.status is OrderStatus.PENDING_REPLACE and (self.calm or self.dice.random() < 0.7):
            self.move(old.broker_order_id, status=OrderStatus.REPLACED, replaced_by=order.broker_order_id)
            self.move(order.broker_order_id, status=OrderStatus.WORKING)
        else:
            self.move(order.broker_order_id, status=OrderStatus.REJECTED)
            if old.status is OrderStatus.PENDING_REPLACE:
                self.move(old.broker_order_id, rejection=RejectionNotice.REPLACE_REJECTED, status=OrderStatus.WORKING)

    def _fill(self, order: Order) -> None:
        left = (order.quantity or Decimal(0)) - order.filled_quantity
        if self.calm or left <= 0:
            return
        quantity = min(Decimal(self.dice.randint(1, 4)), left)
        execution = Execution(f"e{len(self.fills)}", order.broker_order_id, quantity, Decimal(5), self.now)
        self.fills.append(execution)
        status = OrderStatus.FILLED if quantity == left else order.status
        total = order.filled_quantity + quantity
        self.move(order.broker_order_id, execution, status=status, filled_quantity=total, average_price=Decimal(5))

    def _end_cancel(self, order: Order) -> None:
        if self.calm or self.dice.random() < 0.5:
            self.move(order.broker_order_id, status=OrderStatus.CANCELED)
        else:
            self.move(order.broker_order_id, rejection=RejectionNotice.CANCEL_REJECTED, status=OrderStatus.WORKING)

    # ---- the line

    def _sent(self, what: str, do: Callable[[], Order | None]) -> Order | None:
        ways, weights = ("answered", "not answered", "lost", "late", "turned away"), (6, 1, 1, 2, 0.5)
        way = "answered" if self.calm else self.dice.choices(ways, weights)[0]
        self.say(f"{what}: {way}")
        if way == "turned away":
            raise RateLimited("rate_limited", 1.0)
        if way == "late":
            self.on_their_way.append((what, do))
        if way == "not answered":
            try:
                do()
            except Refused:
                self.say("  refused")
        if way != "answered":
            raise OutcomeUnknown(way)
        return do()

    def _read(self) -> None:
        if not self.calm and self.dice.random() < 0.15:
            raise self.dice.choice([OutcomeUnknown("timeout"), RateLimited("rate_limited", 1.0)])

    def _shown(self, order: Order) -> Order | None:
        before = self.history[order.broker_order_id]
        if self.calm or not self.lags or self.dice.random() > 0.3:
            return order
        return self.dice.choice(before[-3:] if len(before) > 2 else [None, *before])

    def _refuse_unless(self, possible: bool) -> None:
        if not possible:
            raise Refused("REFUSED", "the order is not open")


def is_ours(order: Order) -> bool:
    return order.client_order_id.startswith("tip-")
