"""The matching engine: orders execute against a quote, never against each other; some symbols follow a script."""

from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal

from paper_broker.model import matching
from paper_broker.model.matching import Script
from paper_broker.model.orders import REPLACEABLE, ZERO, EventKind, Order, Side, Status, TimeInForce
from paper_broker.model.prices import Prices, Quote, identity
from paper_broker.model.state import State


class MatchingEngine:
    """What happens to orders that are accepted; whether one is accepted is for the exchange to decide."""

    def __init__(self, state: State, prices: Prices, seed: str) -> None:
        self._state, self._prices, self._seed = state, prices, seed
        self.trickling: dict[str, datetime] = {}
        """Orders that fill bit by bit, and when the next bit is due."""

    def start(self) -> None:
        """After loading: what follows from the state but is not in it."""
        for order in self._state.orders.values():
            if order.open and matching.trickle_rate(order.symbol):
                self.trickling[order.id] = order.updated_at
        for symbol in self._prices.tape.symbols():
            self.quote(symbol)

    def quote(self, symbol: str) -> Quote:
        quote = self._state.quotes.get(symbol)
        if quote is None:
            quote = self._prices.opening(symbol)
            self._state.put_quote(quote)
        return quote

    def latest_quote(self, symbol: str) -> Quote:
        """The same without keeping it: whoever only reads prices must not make the market grow."""
        return self._state.quotes.get(symbol) or self._prices.opening(symbol)

    def trickle(self, now: datetime) -> None:
        """The next bit of every trickling order that is due; whoever is late does not catch up."""
        for order_id in [order_id for order_id, due in self.trickling.items() if due <= now]:
            order = self._state.orders[order_id]
            if not order.open:
                del self.trickling[order_id]
                continue
            rate = matching.trickle_rate(order.symbol) or matching.TRICKLE_RATE
            self.trickling[order_id] = now + timedelta(seconds=1 / rate)
            if order.status in REPLACEABLE:
                self._trickle(order, now)

    def _trickle(self, order: Order, now: datetime) -> None:
        quote = self.quote(order.symbol)
        order = self._follow(order, quote, now)
        if matching.marketable(order, quote):
            qty = min(order.remaining, matching.TRICKLE_QTY)
            self.execute(order, qty, matching.touch(order.side, quote), now)

    def enter_pair(self, limit_leg: Order, stop_leg: Order, now: datetime) -> None:
        """Both legs of an `oco` order: what one of them fills at once concerns the other, which must be there."""
        self._state.record(EventKind.HELD, stop_leg.with_status(Status.HELD, now), now)
        self.enter(limit_leg, now)
        stop_leg = self._state.orders[stop_leg.id]
        if stop_leg.open:
            self._begin(stop_leg, now)

    def enter(self, accepted: Order, now: datetime) -> None:
        kind = EventKind.HELD if accepted.is_held_leg else EventKind.NEW
        order = self._state.record(kind, accepted.with_status(accepted.working, now), now)
        self._begin(order, now)

    def _begin(self, order: Order, now: datetime) -> None:
        if order.symbol == Script.REJECT_LATER:
            rejected = replace(order, status=Status.REJECTED, failed_at=now, updated_at=now)
            self._state.record(EventKind.REJECTED, rejected, now)
            self._end_pair(rejected, now)
        elif order.symbol == Script.PARTIAL50 and order.time_in_force is not TimeInForce.FOK:
            price = matching.scripted_price(order, self.quote(order.symbol))
            order = self.execute(order, matching.half(order), price, now)
        elif rate := matching.trickle_rate(order.symbol):
            self.trickling[order.id] = now + timedelta(seconds=1 / rate)
        elif not matching.is_scripted(order.symbol):
            order = self._try(order, now)
        if order.time_in_force in matching.IMMEDIATE and self._state.orders[order.id].open:
            self.cancel(order, now)

    def match(self, symbol: str, now: datetime) -> None:
        """Offer the quote to what rests, price first, then time. Newcomers only ever find what these left over."""
        resting = self._state.resting.get(symbol)
        if not resting:
            return
        quote = self._state.quotes[symbol]
        for order in list(resting.values()):
            self._follow(order, quote, now)
        able = [order for order in resting.values() if matching.marketable(order, quote)]
        for order in sorted(able, key=matching.priority):
            current = self._state.orders[order.id]  # the other leg of an `oco` order may have ended it
            if current.open:
                self._try(current, now)

    def _try(self, order: Order, now: datetime) -> Order:
        """Execute against the quote as far as both go."""
        quote = self.quote(order.symbol)
        order = self._follow(order, quote, now)
        qty = matching.executable(order, quote) if matching.marketable(order, quote) else ZERO
        if not qty:
            return order
        self._use_up(quote, order.side, qty)
        return self.execute(order, qty, matching.touch(order.side, quote), now)

    def _follow(self, order: Order, quote: Quote, now: datetime) -> Order:
        """What a quote does to a stop before anything trades: a trailing one moves, one that it reaches wakes."""
        moved = matching.followed(order, quote)
        if matching.triggers(moved, quote):
            moved = replace(moved, triggered=True)
        return order if moved is order else self._state.put(replace(moved, updated_at=now))

    def _use_up(self, quote: Quote, side: Side, qty: Decimal) -> None:
        if side is Side.BUY and quote.ask_size is not None:
            self._state.put_quote(replace(quote, ask_size=quote.ask_size - qty))
        if side is Side.SELL and quote.bid_size is not None:
            self._state.put_quote(replace(quote, bid_size=quote.bid_size - qty))

    def execute(self, order: Order, qty: Decimal, price: Decimal, now: datetime) -> Order:
        account = self._state.account(order.account_id)
        position = account.trade(order, qty, price)
        self._state.put_position(account, position)
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
        order = self._state.record(kind, order, now, execution_id, qty, price, position.qty)
        if order.oco_id:
            self._restate_pair(order, qty, now)
        return order

    def _restate_pair(self, filled: Order, qty: Decimal, now: datetime) -> None:
        """What one leg of an `oco` order has filled is no longer there for the other."""
        other = self._state.other_leg(filled)
        if not filled.open or (other and other.remaining <= qty):
            self._end_pair(filled, now)
        elif other:
            self._state.record(EventKind.RESTATED, replace(other, qty=other.qty - qty, updated_at=now), now)

    def _end_pair(self, ended: Order, now: datetime) -> None:
        other = self._state.other_leg(ended)
        if other is not None:
            self.cancel(other, now)

    def _execution_id(self, order: Order, qty: Decimal) -> str:
        """One of its own, except where the script says that the broker uses ids again for the account's next order."""
        if order.symbol == matching.REUSED_EXECUTION:
            return identity(self._seed, "execution", order.account_id, order.filled_qty - qty)
        return identity(self._seed, "execution", self._state.events + 1)

    def cancel(self, order: Order, now: datetime) -> Order:
        canceled = replace(order, status=Status.CANCELED, canceled_at=now, updated_at=now)
        canceled = self._state.record(EventKind.CANCELED, canceled, now)
        self._end_pair(canceled, now)
        return canceled
