"""One method per use case: memory first, then the journal; every answer waits until it is durable."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from typing import Any

from paper_broker.faults import Faults, Settings
from paper_broker.journal import Journal
from paper_broker.model import Account, Change, Exchange, NewOrder, NotFound, Order, Position, Quote, Refusal, Status
from paper_broker.store import Row, Store

PENDING = frozenset({Status.PENDING_CANCEL, Status.PENDING_REPLACE})


@dataclass(frozen=True, slots=True)
class OrderQuery:
    """Which orders to list. `status` is Alpaca's open, closed or all."""

    status: str = "open"
    limit: int = 50
    after: datetime | None = None
    until: datetime | None = None
    ascending: bool = False
    symbols: frozenset[str] = frozenset()
    side: str | None = None

    def wants(self, order: Order) -> bool:
        return (
            (self.status == "all" or order.open == (self.status == "open"))
            and (not self.symbols or order.symbol in self.symbols)
            and (self.side is None or order.side == self.side)
        )


class Clock:
    """UTC that never goes back, because orders are found by their time."""

    def __init__(self) -> None:
        self._last = datetime.now(UTC)

    def __call__(self) -> datetime:
        self._last = max(self._last, datetime.now(UTC))
        return self._last


class Broker:
    """The broker's use cases."""

    def __init__(
        self,
        exchange: Exchange,
        store: Store,
        journal: Journal,
        faults: Faults,
        later: Callable[[Callable[[], None]], object],
    ) -> None:
        self.exchange = exchange
        self.faults = faults
        self.now = Clock()
        self._state = exchange.state
        self._store = store
        self._journal = journal
        self._later = later

    async def submit(self, account_id: str, request: NewOrder) -> Order:
        client_order_id = request.client_order_id or ""
        fault = f"{account_id}/{client_order_id or self._state.sequence}"
        attempt = self.faults.attempt(request.symbol, fault)
        refused = True
        try:
            self.faults.before(request.symbol, fault, attempt)
            order = self.exchange.submit(account_id, request, self.now())
            refused, client_order_id = False, order.client_order_id
        finally:
            if client_order_id:
                self._journal.add_post(account_id, client_order_id, refused=refused)
            await self._commit()
        await self.faults.after(request.symbol, fault, attempt)
        return order

    async def replace(self, account_id: str, order_id: str, change: Change) -> Order:
        old = self.exchange.order(account_id, order_id)

        def work() -> Order:
            refused = True
            try:
                order = self.exchange.replace(account_id, order_id, change, self.now())
                refused = False
            finally:
                if change.client_order_id:
                    self._journal.add_post(account_id, change.client_order_id, refused=refused)
            self._settle_later(self._state.orders[order_id])
            return order

        return await self._change(old, "replace", work)

    async def cancel(self, account_id: str, order_id: str) -> None:
        order = self.exchange.order(account_id, order_id)
        await self._change(order, "cancel", lambda: self._cancel(order))

    async def cancel_all(self, account_id: str) -> list[tuple[str, Refusal | None]]:
        """Try each open order; one that cannot be cancelled does not stop the others."""
        answers: list[tuple[str, Refusal | None]] = []
        for order in self._state.open_orders(account_id):
            try:
                if self._state.orders[order.id].open:  # else it was canceled with the other leg of an `oco` order
                    self._cancel(order)
                answers.append((order.id, None))
            except Refusal as refusal:
                answers.append((order.id, refusal))
        await self._commit()
        return answers

    def legs(self, order: Order) -> list[Order]:
        """What stands under `legs` of an `oco` order: its stop."""
        stop = self._state.stop_leg(order)
        return [stop] if stop else []

    async def order(self, account_id: str, order_id: str) -> Order:
        order = self.exchange.order(account_id, order_id)
        await self._journal.committed()
        return order

    async def order_by_client_id(self, account_id: str, client_order_id: str) -> Order:
        order = self._state.by_client_id(account_id, client_order_id)
        await self._journal.committed()
        if order is None:
            raise NotFound(f"order not found for {client_order_id}")
        return order

    async def orders(self, account_id: str, query: OrderQuery) -> list[Order]:
        if query.status == "open" and not query.after and not query.until:
            ids = [order.id for order in self._state.open_orders(account_id)]
        else:
            ids = self._state.between(account_id, query.after, query.until)
        ordered = ids if query.ascending else reversed(ids)
        found = (order for order in map(self._state.orders.__getitem__, ordered) if query.wants(order))
        page = list(islice(found, query.limit))
        await self._journal.committed()
        return page

    async def account(self, account_id: str) -> Account:
        account = self._state.account(account_id)
        as_it_is = replace(account, positions=dict(account.positions))
        await self._commit()
        return as_it_is

    async def positions(self, account_id: str) -> list[Position]:
        positions = [item for item in self._state.account(account_id).positions.values() if item.qty]
        await self._commit()
        return positions

    async def quotes(self, symbols: Sequence[str]) -> list[Quote]:
        quotes = [self.exchange.engine.latest_quote(symbol) for symbol in symbols]
        await self._journal.committed()
        return quotes

    async def executions(self, account_id: str, query: Row, *, oldest_first: bool) -> list[Row]:
        wanted = {"account_id": account_id, **query}
        return await self._journal.read(lambda: self._store.executions(wanted, oldest_first=oldest_first))

    def put_faults(self, wanted: dict[str, Any]) -> Settings:
        settings = self.faults.put(wanted)
        self.exchange.unique_client_order_ids = not settings.accept_duplicate_client_order_ids
        return settings

    async def put_quote(self, quote: Quote) -> None:
        self.exchange.put_quote(quote, self.now())
        await self._commit()

    async def release_quote(self, symbol: str) -> None:
        self.exchange.release_quote(symbol, self.now())
        await self._commit()

    async def tick(self, count: int = 1) -> None:
        for _ in range(count):
            self.exchange.tick(self.now())
        await self._commit()

    @property
    def is_trickling(self) -> bool:
        return bool(self.exchange.engine.trickling)

    async def trickle(self) -> None:
        if self.is_trickling:
            self.exchange.engine.trickle(self.now())
            await self._commit()

    async def ledger(self) -> AsyncIterator[list[Row]]:
        """Every order ever accepted with its executions, a page at a time, from the storage itself."""
        after = 0
        while page := await self._journal.read(partial(self._store.ledger, after)):
            yield page
            after = page[-1]["sequence"]

    def all_positions(self) -> Awaitable[list[Row]]:
        return self._journal.read(self._store.positions)

    def summary(self) -> Awaitable[Row]:
        return self._journal.read(self._store.summary)

    def ready(self) -> Awaitable[bool]:
        return self._journal.read(self._store.answers)

    def recover(self) -> None:
        """After a restart: what a scripted symbol still owed its callers."""
        for order in self.exchange.pending():
            self._settle_later(order)

    async def _change(self, order: Order, verb: str, work: Callable[[], Order]) -> Order:
        """A change of an existing order, with the faults that its symbol or chance bring."""
        fault = f"{verb}/{order.account_id}/{order.client_order_id}"
        attempt = self.faults.attempt("", fault)
        self.faults.before("", fault, attempt)
        changed = work()
        await self._commit()
        await self.faults.after(order.symbol, fault, attempt)
        return changed

    def _cancel(self, order: Order) -> Order:
        canceled = self.exchange.cancel(order.account_id, order.id, self.now())
        self._settle_later(canceled)
        return canceled

    def _settle_later(self, order: Order) -> None:
        if order.status in PENDING:
            self._later(lambda: self._settle(order.id))

    def _settle(self, order_id: str) -> None:
        self.exchange.settle(order_id, self.now())
        self._journal.add(self._state.drain())

    async def _commit(self) -> None:
        self._journal.add(self._state.drain())
        await self._journal.committed()
