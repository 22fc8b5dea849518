"""One account compared with its broker: where the orders there differ from what we know, the difference is recorded."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from types import MappingProxyType
from typing import NamedTuple, TypeVar
from uuid import UUID

from chassis import logs
from intents.execution.model.inputs import BrokerReport
from intents.execution.model.known_orders import KnownOpenOrder
from intents.execution.model.locked_intent import MISSING
from intents.execution.order_queries import OrderQueries
from tip_brokers import (
    OPEN,
    Broker,
    BrokerError,
    ClientIds,
    CredentialRefused,
    Execution,
    ListingTooLong,
    NotSent,
    Order,
    OrderStatus,
    OutcomeUnknown,
    Refused,
)
from tip_brokers.protocol import BROKEN_ANSWER

log = logs.get(__name__)
Read = TypeVar("Read")

LIST_ABOVE = 10  # up to so many orders are queried one by one, more by a list
CLOCKS_DIFFER = timedelta(minutes=1)
MOST_BROKEN = 3  # answers in a row; then it may be the broker, and the next reading goes on with the others
_OF_THE_ACCOUNT = (NotSent, CredentialRefused)  # a rate limit, for example: then nothing else of it is queried either
_UNREADABLE_LISTINGS = {BROKEN_ANSWER, "listing_repeats", "answer_too_large"}


class ShownOrders(NamedTuple):
    """Orders as the broker shows them: those that are open, and of those that are known whatever it has."""

    shown: Sequence[Order]
    current: Mapping[KnownOpenOrder, Order]
    unread: Collection[str] = ()
    """Keys of those of which it is not known how much is filled."""


NONE_SHOWN = ShownOrders((), MappingProxyType({}))


@dataclass(frozen=True)
class AccountReconciliation:
    """One account at the broker, and the orders of ours that are there."""

    account_id: UUID
    broker: Broker
    known: Sequence[KnownOpenOrder]
    queries: OrderQueries = field(default_factory=OrderQueries)
    is_former: bool = False
    """Whether another account at the broker is today's: of this one only our own orders are of interest."""
    failures: list[BrokerError] = field(default_factory=list)
    """What kept the rest from being read or done: for whoever records what was found to raise afterwards."""

    def differences(self) -> list[BrokerReport]:
        """What has to be recorded of the orders, as they stand now."""
        return self.differences_from(self.orders(NONE_SHOWN))

    def orders(self, before: ShownOrders) -> ShownOrders:
        """`before`: what was shown a moment ago. All of it is read again: no figure is older than this reading."""
        shown = list(self.broker.open_orders())
        found = self._open(shown)
        due = [known for known in self.known if known not in found and self._is_due(known, before)]
        answered = self._ended(due)
        found |= {known: order for known, order in answered.items() if order}
        absent = [known for known in self.known if known not in found and self._is_in_doubt(known, before)]
        unread = {*absent, *(known for known in due if known not in answered)}
        ours = {known.client_order_id for known in self.known}
        current = {known: _named(known, found[known], ours) for known in self.known if known in found}
        return ShownOrders(shown, current, {known.key for known in unread})

    def filled(self, orders: ShownOrders) -> dict[str, Decimal]:
        """How much of each order is filled, where that is known; what the broker does not have, as far as recorded."""
        recorded = {known.key: known.filled_quantity for known in self.known if known.key not in orders.unread}
        return recorded | {known.key: order.filled_quantity for known, order in orders.current.items()}

    def differences_from(self, orders: ShownOrders) -> list[BrokerReport]:
        """What has to be recorded: executions first, each by its id, then the orders as they stand.

        Of today's account also orders that are not known to be open here, among them those of other origin. What is in
        flight is the executor's, and whether an order without our id may be it is decided when that is recorded.
        """
        current = [(known, order) for known, order in orders.current.items() if not known.in_flight]
        changed = [(known, order) for known, order in current if _has_changed(known, order)]
        matched = {order.broker_order_id for _, order in current}
        others = [] if self.is_former else [order for order in orders.shown if order.broker_order_id not in matched]
        filled = [(known, order) for known, order in changed if _has_fills(known, order)]
        executions = self.attempt(lambda: list(self._executions(filled)))
        unread = {known for known in self.known if known.key in orders.unread}
        if executions is None:
            unread |= {known for known, _ in filled}
            changed = [pair for pair in changed if pair not in filled]
        self.queries.note_reading(self.known, unread)
        return [
            *(self._report(order, execution.occurred_at, execution) for order, execution in executions or ()),
            *(self._report(order, order.updated_at) for order in (*(order for _, order in changed), *others)),
            *self._canceled({known: order for known, order in current if known.unwanted and order.status in OPEN}),
        ]

    def attempt(self, read: Callable[[], Read]) -> Read | None:
        """None if the broker fails, which hides nothing else."""
        try:
            return read()
        except BrokerError as error:
            self.failures.append(error)
            return None

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
        return BrokerReport(self.account_id, order, moment, execution, is_current_state=execution is None)

    def _open(self, shown: Sequence[Order]) -> dict[KnownOpenOrder, Order]:
        """Our orders among those that are open at the broker."""
        by_id = {order.broker_order_id: order for order in shown}
        by_name = {order.client_order_id: order for order in shown}
        found = {
            known: by_id.get(known.broker_order_id) if known.broker_order_id else by_name.get(known.client_order_id)
            for known in self.known
        }
        return {known: order for known, order in found.items() if order}

    def _is_due(self, known: KnownOpenOrder, before: ShownOrders) -> bool:
        if known.broker_order_id is None and self.broker.client_ids is ClientIds.NONE:
            return False  # only a person can find it
        return known in before.current or self.queries.is_due(known)

    def _is_in_doubt(self, known: KnownOpenOrder, before: ShownOrders) -> bool:
        """Of an order that the broker does not show: whether it may be filled all the same.

        So it is of one that was shown a moment ago or is open there as far as we know, and where none can be queried by
        our ids, until an operator has said that it never arrived.
        """
        if known in before.current:
            return True
        is_known_there = known.broker_order_id is not None and not known.of_ended
        return known.status != MISSING and (is_known_there or self.broker.client_ids is ClientIds.NONE)

    def _ended(self, absent: Sequence[KnownOpenOrder]) -> dict[KnownOpenOrder, Order | None]:
        """Orders that are no longer open at the broker, without those that cannot be read."""
        listed = self._listed_since(absent) if len(absent) > LIST_ABOVE else {}
        found: dict[KnownOpenOrder, Order | None] = {}
        for known in absent:
            if order := listed.get(known.broker_order_id or known.client_order_id):
                found[known] = order
        return found | self._queried_singly([known for known in absent if known not in found])

    def _listed_since(self, absent: Sequence[KnownOpenOrder]) -> dict[str, Order]:
        """By either id. What is not listed is queried by itself."""
        listed: dict[str, Order] = {}
        with suppress(ListingTooLong):
            for order in self.broker.orders(min(known.created_at for known in absent) - CLOCKS_DIFFER):
                listed[order.broker_order_id] = listed[order.client_order_id] = order
        return listed

    def _queried_singly(self, orders: Sequence[KnownOpenOrder]) -> dict[KnownOpenOrder, Order | None]:
        """Without those that cannot be read, or whose turn comes in a later reading."""
        found: dict[KnownOpenOrder, Order | None] = {}
        broken = 0
        for known in self.queries.in_turn(orders):
            self.queries.note_query(known)
            try:
                found[known], broken = self._queried(known), 0
                self.queries.note_read(known)
            except (Refused, OutcomeUnknown) as error:
                if not _is_of_one_order(error):
                    raise
                log.warning("order_not_read", account_id=str(self.account_id), error=type(error).__name__)
                if isinstance(error, OutcomeUnknown):
                    self.queries.note_broken(known)
                    broken += 1
            if broken == MOST_BROKEN:
                break
        return found

    def _queried(self, known: KnownOpenOrder) -> Order | None:
        if known.broker_order_id:
            return self.broker.order(known.broker_order_id)
        return self.broker.find(known.client_order_id, known.symbol)

    def _executions(self, filled: Sequence[tuple[KnownOpenOrder, Order]]) -> Iterable[tuple[Order, Execution]]:
        """Each execution of these orders, with its order as it stood then: so each counts for what it brought."""
        if not filled:
            return
        by_id = {order.broker_order_id: order for _, order in filled}
        totals = dict.fromkeys(by_id, Decimal(0))
        since = min(known.created_at for known, _ in filled) - CLOCKS_DIFFER
        with suppress(ListingTooLong), _unless_refused():  # what is not listed counts by the order's own total
            for execution in self.broker.executions(since):
                if order := by_id.get(execution.broker_order_id):
                    totals[execution.broker_order_id] += execution.quantity
                    total = totals[execution.broker_order_id]
                    yield (
                        replace(order, status=OrderStatus.WORKING, filled_quantity=total, average_price=None),
                        execution,
                    )

    def _canceled(self, unwanted: Mapping[KnownOpenOrder, Order]) -> Iterable[BrokerReport]:
        """Orders that no intent asks for are canceled; what could not be is tried again next time, after the others."""
        tried = len(self.failures)
        for known in self.queries.in_turn(unwanted):
            if len(self.failures) - tried == MOST_BROKEN or self.is_left_alone:
                return
            order, failed = unwanted[known], len(self.failures)
            ended = self.attempt(partial(self._ended_by_cancel, order))
            if len(self.failures) > failed:
                self.queries.note_broken(known)
            if ended:
                yield self._report(_named(known, ended, {order.client_order_id}), ended.updated_at)

    @property
    def is_left_alone(self) -> bool:
        return any(isinstance(failure, _OF_THE_ACCOUNT) for failure in self.failures)

    def _ended_by_cancel(self, order: Order) -> Order | None:
        try:
            with suppress(Refused):  # perhaps it has ended meanwhile, which is seen now
                self.broker.cancel(order.broker_order_id)
            return self.broker.order(order.broker_order_id)
        except (Refused, OutcomeUnknown) as error:
            if not _is_of_one_order(error):
                raise
            log.warning("unwanted_order_not_canceled", account_id=str(self.account_id), error=type(error).__name__)
            return None


@contextmanager
def _unless_refused() -> Iterator[None]:
    """A listing that the broker refuses, or answers in no form that can be read, would fail each time."""
    try:
        yield
    except (Refused, OutcomeUnknown) as error:
        if isinstance(error, OutcomeUnknown) and error.reason not in _UNREADABLE_LISTINGS:
            raise
        log.warning("executions_not_listed", error=type(error).__name__)


def _is_of_one_order(error: BrokerError) -> bool:
    """Whether the broker has answered, if only about this order and in no form that can be read: it hides no other."""
    return isinstance(error, Refused) or (isinstance(error, OutcomeUnknown) and error.reason == BROKEN_ANSWER)


def _named(known: KnownOpenOrder, order: Order, ours: Collection[str]) -> Order:
    """By our id, also where the broker shows none, or one of its own."""
    is_named = order.client_order_id in ours and not order.is_nameless
    return order if is_named else replace(order, client_order_id=known.client_order_id, is_nameless=False)


def _has_changed(known: KnownOpenOrder, order: Order) -> bool:
    left_open = known.of_ended and not known.unwanted and order.status in OPEN
    return known.needs_operator or left_open or order.status != known.status or _has_fills(known, order)


def _has_fills(known: KnownOpenOrder, order: Order) -> bool:
    return order.filled_quantity > known.filled_quantity
