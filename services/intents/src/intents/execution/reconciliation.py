"""One account compared with its broker: where the orders there differ from what we know, the difference is recorded."""

import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import Engine

from chassis import logs
from intents.brokers import (
    OPEN,
    Balance,
    Broker,
    BrokerError,
    Execution,
    ListingTooLong,
    Order,
    OrderStatus,
    Position,
    Refused,
)
from intents.execution import store
from intents.execution.model.inputs import BrokerReport
from intents.execution.model.known_orders import KnownOpenOrder
from intents.execution.model.locked_intent import MISSING

log = logs.get(__name__)

LIST_ABOVE = 10  # up to so many orders are queried one by one, more by a list
CLOCKS_DIFFER = timedelta(minutes=1)
FIRST_PAUSE_SECONDS = 1.0


@dataclass
class MissingOrders:
    """When the broker is queried again for an order that was given up: the longer it is missing, the less often."""

    _next: dict[str, tuple[float, float]] = field(default_factory=dict)

    def due(self, name: str) -> bool:
        now = time.monotonic()
        due_at, pause = self._next.get(name, (now, FIRST_PAUSE_SECONDS))
        if now < due_at:
            return False
        self._next[name] = (now + pause, pause * 1.5)
        return True


@dataclass(frozen=True)
class AccountReconciliation:
    """One account at the broker, and the orders of ours that are there."""

    account_id: UUID
    broker: Broker
    known: Sequence[KnownOpenOrder]
    missing: MissingOrders = field(default_factory=MissingOrders)

    def differences(self, *, others: bool = True) -> list[BrokerReport]:
        """What has to be recorded: executions first, each by its id, then the orders as they stand.

        `others`: also orders that are not known to be open here, among them those of other origin.
        """
        shown = list(self.broker.open_orders())
        current = self._current(shown)
        changed = [(known, order) for known, order in current if _has_changed(known, order)]
        matched = {order.broker_order_id for _, order in current}
        rest = [order for order in shown if order.broker_order_id not in matched] if others else []
        executions = self._executions([(known, order) for known, order in changed if _has_fills(known, order)])
        return [
            *(self._report(order, execution.occurred_at, execution) for order, execution in executions),
            *(self._report(order, order.updated_at) for order in (*(order for _, order in changed), *rest)),
            *self._canceled([order for known, order in current if known.unwanted and order.status in OPEN]),
        ]

    def orders_since(self, moment: datetime) -> tuple[list[BrokerReport], datetime | None]:
        """Every order made at the broker since then, as it stands: what a restored log does not know is adopted.

        If they are too many for one listing, the oldest of them, and since when the others were made.
        """
        found: list[BrokerReport] = []
        try:
            for order in self.broker.orders(moment - CLOCKS_DIFFER):
                found.append(self._report(order, order.updated_at))
        except ListingTooLong:
            reached = found[-1].order.created_at if found else moment
            if reached <= moment:
                raise
            return found, reached
        return found, None

    def _report(self, order: Order, moment: datetime, execution: Execution | None = None) -> BrokerReport:
        return BrokerReport(
            self.account_id, order, moment, execution, position_known=True, is_current_state=execution is None
        )

    def _current(self, shown: Sequence[Order]) -> list[tuple[KnownOpenOrder, Order]]:
        """Our orders as the broker shows them: among its open ones, or by themselves."""
        by_id = {order.broker_order_id: order for order in shown}
        by_name = {order.client_order_id: order for order in shown}
        found: dict[KnownOpenOrder, Order | None] = {}
        for known in self.known:
            by_ours = by_name.get(known.client_order_id)
            found[known] = by_id.get(known.broker_order_id) if known.broker_order_id else by_ours
        absent = [known for known, order in found.items() if order is None and self._is_due(known)]
        found |= self._ended(absent)
        return [(known, order) for known, order in found.items() if order is not None]

    def _is_due(self, known: KnownOpenOrder) -> bool:
        return known.status != MISSING or self.missing.due(known.client_order_id)

    def _ended(self, absent: Sequence[KnownOpenOrder]) -> dict[KnownOpenOrder, Order | None]:
        """Orders that are no longer open at the broker."""
        listed: dict[str, Order] = {}
        if len(absent) > LIST_ABOVE:
            since = min(known.created_at for known in absent) - CLOCKS_DIFFER
            with suppress(ListingTooLong):  # what is not listed is queried by itself
                for order in self.broker.orders(since):
                    listed[order.broker_order_id] = listed[order.client_order_id] = order
        found: dict[KnownOpenOrder, Order | None] = {}
        for known in absent:
            found[known] = listed.get(known.broker_order_id or known.client_order_id) or self._queried(known)
        return found

    def _queried(self, known: KnownOpenOrder) -> Order | None:
        if known.broker_order_id:
            return self.broker.order(known.broker_order_id)
        return self.broker.find(known.client_order_id)

    def _executions(self, filled: Sequence[tuple[KnownOpenOrder, Order]]) -> Iterable[tuple[Order, Execution]]:
        """Each execution of these orders, with its order as it stood then: so each counts for what it brought."""
        if not filled:
            return
        by_id = {order.broker_order_id: order for _, order in filled}
        totals = dict.fromkeys(by_id, Decimal(0))
        since = min(known.created_at for known, _ in filled) - CLOCKS_DIFFER
        with suppress(ListingTooLong):  # what is not listed counts by the order's own total
            for execution in self.broker.executions(since):
                if order := by_id.get(execution.broker_order_id):
                    totals[execution.broker_order_id] += execution.quantity
                    total = totals[execution.broker_order_id]
                    yield (
                        replace(order, status=OrderStatus.WORKING, filled_quantity=total, average_price=None),
                        execution,
                    )

    def _canceled(self, unwanted: Sequence[Order]) -> Iterable[BrokerReport]:
        """Orders that no intent asks for are canceled; what could not be is tried again next time."""
        for order in unwanted:
            try:
                with suppress(Refused):  # perhaps it has ended meanwhile, which is seen now
                    self.broker.cancel(order.broker_order_id)
                ended = self.broker.order(order.broker_order_id)
            except BrokerError as error:  # what else was found is to be recorded all the same
                log.warning("unwanted_order_not_canceled", account_id=str(self.account_id), error=type(error).__name__)
                continue
            if ended:
                yield self._report(ended, ended.updated_at)


def _has_changed(known: KnownOpenOrder, order: Order) -> bool:
    left_open = known.of_ended and not known.unwanted and order.status in OPEN
    return known.needs_operator or left_open or order.status != known.status or _has_fills(known, order)


def _has_fills(known: KnownOpenOrder, order: Order) -> bool:
    return order.filled_quantity > known.filled_quantity


class Holdings(NamedTuple):
    """What the broker says that an account holds, read after `read_at`."""

    positions: list[Position]
    balance: Balance
    read_at: datetime


def read_account(engine: Engine, account: AccountReconciliation) -> tuple[list[BrokerReport], Holdings]:
    """The differences to record, and what the account holds."""
    with engine.connect() as tx:
        read_at = store.now(tx)
    differences = account.differences()
    return differences, Holdings(account.broker.positions(), account.broker.balance(), read_at)
