"""Everything the exchange remembers, its indexes, and the changes since the last `drain`."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from paper_broker.model.accounts import Account, Position
from paper_broker.model.matching import is_scripted
from paper_broker.model.orders import Event, EventKind, Order
from paper_broker.model.prices import Quote


@dataclass(slots=True)
class Changes:
    """What a store must write so that a restart finds everything; only the last state of each thing."""

    orders: dict[str, Order] = field(default_factory=dict)
    accounts: dict[str, Decimal] = field(default_factory=dict)  # the cash at that moment, not the living account
    positions: dict[tuple[str, str], Position] = field(default_factory=dict)
    quotes: dict[str, Quote] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.orders or self.accounts or self.quotes or self.events)


class State:
    """Orders, indexed by every key they are read by. `put` is the only way an order changes, so holds cannot drift."""

    def __init__(self, cash: Decimal) -> None:
        self.cash = cash
        self.accounts: dict[str, Account] = {}
        self.orders: dict[str, Order] = {}
        self.quotes: dict[str, Quote] = {}
        self.resting: dict[str, dict[str, Order]] = {}  # symbol -> what may execute, oldest first
        self.sequence = 0
        self.events = 0
        self.changes = Changes()
        self._by_client: dict[tuple[str, str], str] = {}
        self._history: dict[str, list[str]] = {}
        self._open: dict[str, dict[str, None]] = {}
        self._legs: dict[str, list[str]] = {}  # the id of an `oco` order -> its legs and what replaced them

    def account(self, account_id: str) -> Account:
        """The account of a key pair; it exists from its first use."""
        account = self.accounts.get(account_id)
        if account is None:
            account = self.accounts[account_id] = Account(account_id, self.cash)
            self.changes.accounts[account_id] = account.cash
        return account

    def put(self, order: Order) -> Order:
        account = self.account(order.account_id)
        before = self.orders.get(order.id)
        if before is None:
            self._by_client[order.account_id, order.client_order_id] = order.id
            self._history.setdefault(order.account_id, []).append(order.id)
            if order.oco_id:
                self._legs.setdefault(order.oco_id, []).append(order.id)
        else:
            account.hold(before, -1)
        account.hold(order, +1)
        self.orders[order.id] = order
        self.changes.orders[order.id] = order
        self._index(order)
        return order

    def _index(self, order: Order) -> None:
        resting = self.resting.setdefault(order.symbol, {})
        if order.open:
            self._open.setdefault(order.account_id, {})[order.id] = None
            if not is_scripted(order.symbol):
                resting[order.id] = order
        else:
            self._open.get(order.account_id, {}).pop(order.id, None)
            resting.pop(order.id, None)

    def record(
        self,
        kind: EventKind,
        order: Order,
        now: datetime,
        execution_id: str | None = None,
        qty: Decimal | None = None,
        price: Decimal | None = None,
        position_qty: Decimal | None = None,
    ) -> Order:
        """Put the order and append the event of its change; nearly every change has one."""
        self.put(order)
        self.events += 1
        event = Event(self.events, kind, now, order, execution_id, qty, price, position_qty)
        self.changes.events.append(event)
        return order

    def put_quote(self, quote: Quote) -> None:
        self.quotes[quote.symbol] = quote
        self.changes.quotes[quote.symbol] = quote

    def put_position(self, account: Account, position: Position) -> None:
        self.changes.accounts[account.id] = account.cash
        self.changes.positions[account.id, position.symbol] = position

    def drain(self) -> Changes:
        changes, self.changes = self.changes, Changes()
        return changes

    def by_client_id(self, account_id: str, client_order_id: str) -> Order | None:
        order_id = self._by_client.get((account_id, client_order_id))
        return self.orders[order_id] if order_id else None

    def other_leg(self, order: Order) -> Order | None:
        """The open leg that is canceled with this one, if it is of an `oco` order."""
        legs = (self.orders[leg_id] for leg_id in self._legs.get(order.oco_id or "", ()))
        return next((leg for leg in legs if leg.open and leg.is_held_leg != order.is_held_leg), None)

    def stop_leg(self, order: Order) -> Order | None:
        """The stop of an `oco` order or what replaced it, of its latest limit leg; None of any other order.

        Alpaca does not say which of two limit legs shows it: no client may rely on the first.
        """
        if order.oco_id is None or order.is_held_leg or order.replaced_by:
            return None
        legs = [self.orders[leg_id] for leg_id in self._legs[order.oco_id]]
        return next(leg for leg in reversed(legs) if leg.is_held_leg)

    def open_orders(self, account_id: str) -> list[Order]:
        return [self.orders[order_id] for order_id in self._open.get(account_id, ())]

    def between(self, account_id: str, after: datetime | None, until: datetime | None) -> list[str]:
        """Ids of the account's orders submitted in (after, until], oldest first."""
        ids = self._history.get(account_id, [])
        first = bisect_right(ids, after, key=self._created) if after else 0
        last = bisect_right(ids, until, key=self._created) if until else len(ids)
        return ids[first:last] if after or until else ids

    def _created(self, order_id: str) -> datetime:
        return self.orders[order_id].created_at

    def load(
        self,
        accounts: Iterable[tuple[str, Decimal]],
        positions: Iterable[tuple[str, Position]],
        orders: Iterable[Order],
        quotes: Iterable[Quote],
        events: int,
    ) -> None:
        """Start from what a store kept."""
        for account_id, cash in accounts:
            self.accounts[account_id] = Account(account_id, cash)
        for account_id, position in positions:
            self.accounts[account_id].restore(position)
        for order in orders:
            self.put(order)
            self.sequence = order.sequence
        self.quotes.update((quote.symbol, quote) for quote in quotes)
        self.events = events
        self.changes = Changes()

    def day_orders(self) -> Iterator[tuple[datetime, str]]:
        for order in self.orders.values():
            if order.open and order.expires_at:
                yield order.expires_at, order.id
