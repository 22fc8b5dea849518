"""The exchange: commands in, orders and events out."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from heapq import heapify, heappop, heappush

from paper_broker.model import admission, matching
from paper_broker.model.engine import MatchingEngine
from paper_broker.model.matching import Script
from paper_broker.model.orders import REPLACEABLE, ZERO, Change, EventKind, NewOrder, Order, Status, TimeInForce
from paper_broker.model.prices import Prices, Quote, identity
from paper_broker.model.refusals import DuplicateClientOrderId, NotFound, Unprocessable
from paper_broker.model.state import Changes, State

__all__ = ["Changes", "Exchange", "Rules"]


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings of an exchange. A day order lives for `day`, since this market never closes."""

    seed: str
    cash: Decimal = Decimal(100_000)
    day: timedelta = timedelta(hours=24)


class Exchange:
    """One command at a time; each leaves orders, cash and positions consistent."""

    def __init__(self, rules: Rules, prices: Prices) -> None:
        self.rules = rules
        self.prices = prices
        self.state = State(rules.cash)
        self.unique_client_order_ids = True
        self.engine = MatchingEngine(self.state, prices, rules.seed)
        self._expiring: list[tuple[datetime, str]] = []

    def start(self) -> None:
        """After loading: what follows from the state but is not in it."""
        self._expiring = list(self.state.day_orders())
        heapify(self._expiring)
        self.engine.start()

    # ---- commands

    def submit(self, account_id: str, request: NewOrder, now: datetime) -> Order:
        """Accept an order and let it trade. The answer is the order as accepted; events report the rest."""
        matching.check(request)
        self._check_client_id(account_id, request.client_order_id)
        quote = self.quote(request.symbol)
        qty = admission.quantity(request, quote)
        hold = admission.unit_hold(self.state.account(account_id), request, qty, quote)
        if request.stop_loss:
            return self._submit_pair(account_id, request, qty, hold, now)
        accepted = self._accept(account_id, request, qty, hold, now)
        self.engine.enter(accepted, now)
        return accepted

    def _submit_pair(
        self, account_id: str, request: NewOrder, qty: Decimal, hold: Decimal | None, now: datetime
    ) -> Order:
        """Both legs of an `oco` order, of which one holds back what they are for. The answer is the limit leg."""
        admission.check_pair(request)
        stop = admission.stop_leg(request)
        matching.check(stop)
        if hold is not None:
            raise Unprocessable("oco orders must be exit orders")
        oco_id = self._order_id(self.state.sequence + 1)
        limit_leg = self._accept(account_id, request, qty, None, now, oco_id=oco_id)
        stop_leg = self._accept(account_id, stop, qty, ZERO, now, oco_id=oco_id)
        self.engine.enter_pair(limit_leg, stop_leg, now)
        return limit_leg

    def replace(self, account_id: str, order_id: str, change: Change, now: datetime) -> Order:
        """Put a new order in the place of an open one. Without a new quantity it takes over what is unfilled."""
        old = self.order(account_id, order_id)
        if old.status not in REPLACEABLE:
            raise Unprocessable(f'cannot replace order in "{old.status}" status')
        request = admission.replacement(old, change)
        matching.check(request)
        self._check_client_id(account_id, request.client_order_id)
        qty = admission.quantity(request, self.quote(old.symbol))
        account = self.state.account(account_id)
        hold = admission.unit_hold_without(account, old, request, qty, self.quote(old.symbol))
        if old.symbol == Script.REPLACE_REJECT:
            return self._pend_replace(old, request, qty, hold, now)
        new_id = self._order_id(self.state.sequence + 1)
        replaced = replace(old, status=Status.REPLACED, replaced_by=new_id, replaced_at=now, updated_at=now)
        self.state.record(EventKind.REPLACED, replaced, now)
        accepted = self._accept(account_id, request, qty, hold, now, replaces=old.id, oco_id=old.oco_id)
        self.engine.enter(accepted, now)
        return accepted

    def cancel(self, account_id: str, order_id: str, now: datetime) -> Order:
        order = self.order(account_id, order_id)
        if order.status is Status.PENDING_CANCEL:
            return order
        if order.status not in REPLACEABLE:
            raise Unprocessable(f'order is already in "{order.status}" state')
        if order.symbol in (Script.LATE_FILL, Script.CANCEL_REJECT):
            return self.state.record(EventKind.PENDING_CANCEL, order.with_status(Status.PENDING_CANCEL, now), now)
        return self.engine.cancel(order, now)

    def settle(self, order_id: str, now: datetime) -> None:
        """The venue's late word on a pending cancel or replace of a scripted symbol."""
        order = self.state.orders[order_id]
        if order.status is Status.PENDING_REPLACE:
            self._refuse_replace(order, now)
        elif order.status is Status.PENDING_CANCEL and order.symbol == Script.CANCEL_REJECT:
            self.state.record(EventKind.CANCEL_REJECTED, order.with_status(order.working, now), now)
        elif order.status is Status.PENDING_CANCEL:
            price = matching.scripted_price(order, self.quote(order.symbol))
            self.engine.execute(order, order.remaining, price, now)

    def put_quote(self, quote: Quote, now: datetime) -> None:
        """Set a quote from outside; the symbol stays there until it is released."""
        self.state.put_quote(replace(quote, pinned=True))
        self.engine.match(quote.symbol, now)

    def release_quote(self, symbol: str, now: datetime) -> None:
        """Let a quote set from outside move again from where it is."""
        self.state.put_quote(replace(self.quote(symbol), pinned=False))
        self.engine.match(symbol, now)

    def tick(self, now: datetime) -> None:
        """One step of the market: day orders that are due end, every quote moves, what can trade trades."""
        while self._expiring and self._expiring[0][0] <= now:
            self._expire(heappop(self._expiring)[1], now)
        for quote in list(self.state.quotes.values()):
            moved = self.prices.after(quote)
            if moved != quote:
                self.state.put_quote(moved)
                self.engine.match(quote.symbol, now)

    # ---- reads

    def order(self, account_id: str, order_id: str) -> Order:
        order = self.state.orders.get(order_id)
        if order is None or order.account_id != account_id:
            raise NotFound(f"order not found for {order_id}")
        return order

    def quote(self, symbol: str) -> Quote:
        return self.engine.quote(symbol)

    def pending(self) -> list[Order]:
        """Orders that wait for `settle`."""
        waiting = (Status.PENDING_CANCEL, Status.PENDING_REPLACE)
        return [order for order in self.state.orders.values() if order.status in waiting]

    # ---- admission

    def _check_client_id(self, account_id: str, client_order_id: str | None) -> None:
        if not self.unique_client_order_ids or client_order_id is None:
            return
        if self.state.by_client_id(account_id, client_order_id):
            raise DuplicateClientOrderId

    def _order_id(self, sequence: int) -> str:
        return identity(self.rules.seed, "order", sequence)

    def _accept(
        self,
        account_id: str,
        request: NewOrder,
        qty: Decimal,
        unit_hold: Decimal | None,
        now: datetime,
        replaces: str | None = None,
        oco_id: str | None = None,
    ) -> Order:
        self.state.sequence += 1
        sequence = self.state.sequence
        order = Order(
            id=self._order_id(sequence),
            account_id=account_id,
            sequence=sequence,
            client_order_id=request.client_order_id or identity(self.rules.seed, "client", sequence),
            symbol=request.symbol,
            side=request.side,
            kind=request.kind,
            time_in_force=request.time_in_force,
            qty=qty,
            status=Status.ACCEPTED,
            created_at=now,
            updated_at=now,
            unit_hold=unit_hold,
            notional=request.notional,
            limit_price=request.limit_price,
            stop_price=admission.stop_price(request, self.quote(request.symbol)),
            extended_hours=request.extended_hours,
            expires_at=now + self.rules.day if request.time_in_force is TimeInForce.DAY else None,
            replaces=replaces,
            trail_price=request.trail_price,
            trail_percent=request.trail_percent,
            hwm=admission.high_water_mark(request, self.quote(request.symbol)),
            oco_id=oco_id,
        )
        if order.expires_at:
            heappush(self._expiring, (order.expires_at, order.id))
        return self.state.put(order)

    # ---- endings

    def _expire(self, order_id: str, now: datetime) -> None:
        order = self.state.orders[order_id]
        if order.status in REPLACEABLE:
            self.state.record(
                EventKind.EXPIRED, replace(order, status=Status.EXPIRED, expired_at=now, updated_at=now), now
            )

    def _pend_replace(self, old: Order, request: NewOrder, qty: Decimal, hold: Decimal | None, now: datetime) -> Order:
        new = self._accept(old.account_id, request, qty, hold, now, replaces=old.id, oco_id=old.oco_id)
        pending = replace(old, status=Status.PENDING_REPLACE, replaced_by=new.id, updated_at=now)
        self.state.record(EventKind.PENDING_REPLACE, pending, now)
        return new

    def _refuse_replace(self, old: Order, now: datetime) -> None:
        if old.replaced_by is None:
            raise ValueError("no replacement is pending")
        new = self.state.orders[old.replaced_by]
        self.state.put(replace(new, status=Status.REJECTED, failed_at=now, updated_at=now))
        back = replace(old, status=old.working, replaced_by=None, updated_at=now)
        self.state.record(EventKind.REPLACE_REJECTED, back, now)
