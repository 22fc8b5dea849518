"""The exchange: commands in, orders and events out. Orders trade against a quote, never against each other."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from heapq import heapify, heappop, heappush

from paper_broker.model import admission, matching
from paper_broker.model.matching import Script
from paper_broker.model.orders import ZERO, Change, Event, EventKind, NewOrder, Order, Side, Status, TimeInForce
from paper_broker.model.prices import Prices, Quote, identity
from paper_broker.model.refusals import DuplicateClientOrderId, NotFound, Unprocessable
from paper_broker.model.state import Changes, State

__all__ = ["Changes", "Exchange", "Rules"]

REPLACEABLE = frozenset({Status.NEW, Status.PARTIALLY_FILLED})


@dataclass(frozen=True, slots=True)
class Rules:
    """What an exchange is told once. A day order lives for `day`, since this market never closes."""

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
        self.trickling: dict[str, datetime] = {}
        """Orders that fill bit by bit, and when the next bit is due."""
        self._expiring: list[tuple[datetime, str]] = []

    def start(self) -> None:
        """After loading: what follows from the state but is not in it."""
        self._expiring = list(self.state.day_orders())
        heapify(self._expiring)
        for order in self.state.orders.values():
            if order.open and matching.trickle_rate(order.symbol):
                self.trickling[order.id] = order.updated_at
        for symbol in self.prices.tape.symbols():
            self.quote(symbol)

    # ---- commands

    def submit(self, account_id: str, request: NewOrder, now: datetime) -> Order:
        """Accept an order and let it trade. The answer is the order as accepted; what follows is told by events."""
        matching.check(request)
        self._check_client_id(account_id, request.client_order_id)
        quote = self.quote(request.symbol)
        qty = admission.quantity(request, quote)
        hold = admission.unit_hold(self.state.account(account_id), request, qty, quote)
        accepted = self._accept(account_id, request, qty, hold, now)
        self._enter(accepted, now)
        return accepted

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
        self._tell(EventKind.REPLACED, replaced, now)
        accepted = self._accept(account_id, request, qty, hold, now, replaces=old.id)
        self._enter(accepted, now)
        return accepted

    def cancel(self, account_id: str, order_id: str, now: datetime) -> Order:
        order = self.order(account_id, order_id)
        if order.status is Status.PENDING_CANCEL:
            return order
        if order.status not in REPLACEABLE:
            raise Unprocessable(f'order is already in "{order.status}" state')
        if order.symbol in (Script.LATE_FILL, Script.CANCEL_REJECT):
            return self._tell(EventKind.PENDING_CANCEL, _moved(order, Status.PENDING_CANCEL, now), now)
        return self._cancel(order, now)

    def settle(self, order_id: str, now: datetime) -> None:
        """The venue's late word on a pending cancel or replace of a scripted symbol."""
        order = self.state.orders[order_id]
        if order.status is Status.PENDING_REPLACE:
            self._refuse_replace(order, now)
        elif order.status is Status.PENDING_CANCEL and order.symbol == Script.CANCEL_REJECT:
            self._tell(EventKind.CANCEL_REJECTED, _moved(order, order.working, now), now)
        elif order.status is Status.PENDING_CANCEL:
            price = matching.scripted_price(order, self.quote(order.symbol))
            self._execute(order, order.remaining, price, now)

    def put_quote(self, quote: Quote, now: datetime) -> None:
        """Set a quote from outside; the symbol stands there until told otherwise."""
        self.state.put_quote(replace(quote, pinned=True))
        self._match(quote.symbol, now)

    def release_quote(self, symbol: str, now: datetime) -> None:
        """Let a quote set from outside move again from where it is."""
        self.state.put_quote(replace(self.quote(symbol), pinned=False))
        self._match(symbol, now)

    def tick(self, now: datetime) -> None:
        """One step of the market: day orders that are due end, every quote moves, what can trade trades."""
        while self._expiring and self._expiring[0][0] <= now:
            self._expire(heappop(self._expiring)[1], now)
        for quote in list(self.state.quotes.values()):
            moved = self.prices.after(quote)
            if moved != quote:
                self.state.put_quote(moved)
                self._match(quote.symbol, now)

    def trickle(self, now: datetime) -> None:
        """The next bit of every trickling order that is due; whoever is late does not catch up."""
        for order_id in [order_id for order_id, due in self.trickling.items() if due <= now]:
            order = self.state.orders[order_id]
            if not order.open:
                del self.trickling[order_id]
                continue
            rate = matching.trickle_rate(order.symbol) or matching.TRICKLE_RATE
            self.trickling[order_id] = now + timedelta(seconds=1 / rate)
            if order.status in REPLACEABLE:
                self._trickle(order, now)

    def _trickle(self, order: Order, now: datetime) -> None:
        quote = self.quote(order.symbol)
        if matching.triggers(order, quote):
            order = self.state.put(replace(order, triggered=True, updated_at=now))
        if matching.marketable(order, quote):
            qty = min(order.remaining, matching.TRICKLE_QTY)
            self._execute(order, qty, matching.touch(order.side, quote), now)

    # ---- reads

    def order(self, account_id: str, order_id: str) -> Order:
        order = self.state.orders.get(order_id)
        if order is None or order.account_id != account_id:
            raise NotFound(f"order not found for {order_id}")
        return order

    def quote(self, symbol: str) -> Quote:
        quote = self.state.quotes.get(symbol)
        if quote is None:
            quote = self.prices.opening(symbol)
            self.state.put_quote(quote)
        return quote

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
            stop_price=request.stop_price,
            extended_hours=request.extended_hours,
            expires_at=now + self.rules.day if request.time_in_force is TimeInForce.DAY else None,
            replaces=replaces,
        )
        if order.expires_at:
            heappush(self._expiring, (order.expires_at, order.id))
        return self.state.put(order)

    # ---- execution

    def _enter(self, accepted: Order, now: datetime) -> None:
        order = self._tell(EventKind.NEW, _moved(accepted, Status.NEW, now), now)
        if order.symbol == Script.REJECT_LATER:
            rejected = replace(order, status=Status.REJECTED, failed_at=now, updated_at=now)
            self._tell(EventKind.REJECTED, rejected, now)
        elif order.symbol == Script.PARTIAL50 and order.time_in_force is not TimeInForce.FOK:
            price = matching.scripted_price(order, self.quote(order.symbol))
            order = self._execute(order, matching.half(order), price, now)
        elif rate := matching.trickle_rate(order.symbol):
            self.trickling[order.id] = now + timedelta(seconds=1 / rate)
        elif not matching.is_scripted(order.symbol):
            order = self._try(order, now)
        if order.time_in_force in matching.IMMEDIATE and self.state.orders[order.id].open:
            self._cancel(order, now)

    def _match(self, symbol: str, now: datetime) -> None:
        """Offer the quote to what rests, price first, then time. Newcomers only ever find what these left over."""
        resting = self.state.resting.get(symbol)
        if not resting:
            return
        quote = self.state.quotes[symbol]
        for order in [order for order in resting.values() if matching.triggers(order, quote)]:
            self.state.put(replace(order, triggered=True, updated_at=now))
        able = [order for order in resting.values() if matching.marketable(order, quote)]
        for order in sorted(able, key=matching.priority):
            self._try(order, now)

    def _try(self, order: Order, now: datetime) -> Order:
        """Execute against the quote as far as both go."""
        quote = self.quote(order.symbol)
        if matching.triggers(order, quote):
            order = self.state.put(replace(order, triggered=True, updated_at=now))
        qty = matching.executable(order, quote) if matching.marketable(order, quote) else ZERO
        if not qty:
            return order
        self._use_up(quote, order.side, qty)
        return self._execute(order, qty, matching.touch(order.side, quote), now)

    def _use_up(self, quote: Quote, side: Side, qty: Decimal) -> None:
        if side is Side.BUY and quote.ask_size is not None:
            self.state.put_quote(replace(quote, ask_size=quote.ask_size - qty))
        if side is Side.SELL and quote.bid_size is not None:
            self.state.put_quote(replace(quote, bid_size=quote.bid_size - qty))

    def _execute(self, order: Order, qty: Decimal, price: Decimal, now: datetime) -> Order:
        account = self.state.account(order.account_id)
        position = account.trade(order, qty, price)
        self.state.put_position(account, position)
        full = qty == order.remaining
        order = replace(
            order,
            filled_qty=order.filled_qty + qty,
            filled_value=order.filled_value + qty * price,
            status=Status.FILLED if full else Status.PARTIALLY_FILLED,
            filled_at=now,
            updated_at=now,
        )
        kind = EventKind.FILL if full else EventKind.PARTIAL_FILL
        execution_id = self._execution_id(order, qty)
        return self._tell(kind, order, now, execution_id, qty, price, position.qty)

    def _execution_id(self, order: Order, qty: Decimal) -> str:
        """One of its own, except where the script says that the broker uses ids again for the account's next order."""
        if order.symbol == matching.REUSED_EXECUTION:
            return identity(self.rules.seed, "execution", order.account_id, order.filled_qty - qty)
        return identity(self.rules.seed, "execution", self.state.events + 1)

    # ---- endings

    def _cancel(self, order: Order, now: datetime) -> Order:
        canceled = replace(order, status=Status.CANCELED, canceled_at=now, updated_at=now)
        return self._tell(EventKind.CANCELED, canceled, now)

    def _expire(self, order_id: str, now: datetime) -> None:
        order = self.state.orders[order_id]
        if order.status in REPLACEABLE:
            self._tell(EventKind.EXPIRED, replace(order, status=Status.EXPIRED, expired_at=now, updated_at=now), now)

    def _pend_replace(self, old: Order, request: NewOrder, qty: Decimal, hold: Decimal | None, now: datetime) -> Order:
        new = self._accept(old.account_id, request, qty, hold, now, replaces=old.id)
        pending = replace(old, status=Status.PENDING_REPLACE, replaced_by=new.id, updated_at=now)
        self._tell(EventKind.PENDING_REPLACE, pending, now)
        return new

    def _refuse_replace(self, old: Order, now: datetime) -> None:
        if old.replaced_by is None:
            raise ValueError("no replacement is pending")
        new = self.state.orders[old.replaced_by]
        self.state.put(replace(new, status=Status.REJECTED, failed_at=now, updated_at=now))
        back = replace(old, status=old.working, replaced_by=None, updated_at=now)
        self._tell(EventKind.REPLACE_REJECTED, back, now)

    def _tell(
        self,
        kind: EventKind,
        order: Order,
        now: datetime,
        execution_id: str | None = None,
        qty: Decimal | None = None,
        price: Decimal | None = None,
        position_qty: Decimal | None = None,
    ) -> Order:
        """Store the order and say why it changed; every event is a change and nearly every change an event."""
        self.state.put(order)
        self.state.events += 1
        event = Event(self.state.events, kind, now, order, execution_id, qty, price, position_qty)
        self.state.changes.events.append(event)
        return order


def _moved(order: Order, status: Status, now: datetime) -> Order:
    return replace(order, status=status, updated_at=now)
