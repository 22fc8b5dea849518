"""One command and one broker: query before a second send, look at the facts once more, send.

Whatever goes wrong after a request was written leaves the outcome unknown: only an error of the request itself says
that nothing was done.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeVar

from chassis import crashpoints
from intents.brokers import (
    OPEN,
    Broker,
    BrokerError,
    Change,
    DuplicateClientOrderId,
    NewOrder,
    NotSent,
    NotWritten,
    Order,
    OrderStatus,
    OutcomeUnknown,
)
from intents.brokers import Refused as BrokerRefused
from intents.execution.clock import elapsed
from intents.execution.model.commands import Work
from intents.execution.model.local_decisions import FRESH_SECONDS, TOO_OLD, is_fresh, not_to_be_sent
from intents.execution.model.verdicts import OPERATOR_REQUIRED, Later, Refused, Requested, Seen, Unknown, Verdict

QUIET_MARGIN_SECONDS = 1.0
ABSENCES_TO_GIVE_UP = 3  # a quiet period apart from each other
CANCEL_ATTEMPTS = 5  # polls of a cancel that the broker took in and does not carry out
OPERATOR_SECONDS = 10.0
HOLDER_LOST_SECONDS = 0.25  # by when it has a new session, or the lock is confirmed again

T = TypeVar("T")


class QueryFailed(OutcomeUnknown):
    """Something was sent, and what became of it could not be read."""


@dataclass(frozen=True)
class Dispatch:
    """One command on its way. `refresh` reads again what may stop it; None when the lease is another's by now."""

    broker: Broker
    work: Work
    refresh: Callable[[Work], Work | None]
    may_send: Callable[[], bool] = lambda: True
    """Whether this process is still the one that may send it."""

    def run(self) -> Verdict:
        """Carry the command out at the broker. Raises BrokerError when it could not be."""
        try:
            return _VERBS[self.work.type](self)
        except NotWritten:
            return TOO_OLD

    def check(self) -> None:
        """Immediately before the request is written."""
        late = self.work.type != "CANCEL" and not is_fresh(self.work)
        if late or elapsed() + self.broker.call_seconds > self.work.lease_ends or not self.may_send():
            raise NotWritten

    def stopped(self) -> tuple["Dispatch", Verdict | None]:
        """Before something is sent: with facts that are fresh, and why it may not be."""
        current = self
        if elapsed() - self.work.claimed.at > FRESH_SECONDS / 2:
            work = self.refresh(self.work)
            if work is None:
                return self, TOO_OLD
            current = Dispatch(self.broker, work, self.refresh, self.may_send)
            if decided := not_to_be_sent(work):
                return current, TOO_OLD if work.started_before else decided
        if not self.may_send():
            return current, Later(HOLDER_LOST_SECONDS, "holder_lost")
        if elapsed() + self.broker.call_seconds > self.work.lease_ends:
            return current, Later(0.0, "lease_too_short")
        return current, None


def _create(dispatch: Dispatch) -> Verdict:
    broker, work = dispatch.broker, dispatch.work
    if earlier := _sent_before(broker, work):
        return earlier
    current, stop = dispatch.stopped()
    if stop:
        return stop
    crashpoints.reach("executor.before_send")
    try:
        made = broker.create(_new_order(work), current.check)
    except DuplicateClientOrderId:
        found = _query(lambda: broker.find(work.client_order_id))
        return Seen(found) if found else Unknown("duplicate_not_found")
    except BrokerRefused as refusal:
        return _refused_create(broker, work, refusal)
    crashpoints.reach("executor.after_send")
    return Seen(made)


def _refused_create(broker: Broker, work: Work, refusal: BrokerRefused) -> Verdict:
    """What was sent before may be there, and be the very reason of the refusal: it holds the buying power."""
    found = _query(lambda: broker.find(work.client_order_id)) if work.started_before else None
    return Seen(found) if found else Refused(refusal.code, refusal.message)


def _new_order(work: Work) -> NewOrder:
    return NewOrder(
        work.client_order_id,
        work.symbol,
        work.order_side,
        work.spec.kind,
        work.spec.quantity,
        work.spec.terms.get("time_in_force", "DAY"),
        work.spec.price("limit_price"),
        work.spec.price("stop_price"),
    )


def _replace(dispatch: Dispatch) -> Verdict:
    broker, work = dispatch.broker, dispatch.work
    target = work.broker_order_id or ""
    if earlier := _sent_before(broker, work):
        return Seen(earlier.order, _reread(broker, work)) if isinstance(earlier, Seen) else earlier
    seen = _read_before(work, lambda: tuple(_unended(broker, work)))
    if refused := _not_replaceable(work, seen):
        return refused
    current, stop = dispatch.stopped()
    if stop:
        return stop
    crashpoints.reach("executor.before_send")
    try:
        made = broker.replace(target, _change(work, _remaining(work, seen)), current.check)
    except DuplicateClientOrderId:
        found = _query(lambda: broker.find(work.client_order_id))
        return Seen(found, _reread(broker, work)) if found else Unknown("duplicate_not_found")
    except BrokerRefused as refusal:
        # An error may still have taken effect: whether there is an order by that id is the truth.
        found = _query(lambda: broker.find(work.client_order_id))
        orders = _reread(broker, work)
        return Seen(found, orders) if found else Refused(refusal.code, refusal.message, orders)
    crashpoints.reach("executor.after_send")
    return Seen(made, _reread(broker, work))


def _unended(broker: Broker, work: Work) -> Iterator[Order]:
    """The intent's orders that were not seen to have ended: each may have fills that we do not know."""
    for known in work.orders:
        if not known.ended and known.broker_order_id and (order := broker.order(known.broker_order_id)):
            yield order


def _reread(broker: Broker, work: Work) -> tuple[Order, ...]:
    """The replaced order and those before it, now that nothing more is filled of them."""
    return _query(lambda: tuple(_unended(broker, work)))


def _not_replaceable(work: Work, seen: tuple[Order, ...]) -> Refused | None:
    current = next((order for order in seen if order.broker_order_id == work.broker_order_id), None)
    if current is None or current.status not in OPEN:
        return Refused("ORDER_NOT_OPEN", "The order is no longer open.", seen)
    if _remaining(work, seen) <= 0:
        return Refused("QUANTITY_FILLED", "As much as that is filled already.", seen)
    return None


def _remaining(work: Work, seen: tuple[Order, ...]) -> Decimal:
    """What the new order is for: the new total without everything that is filled at this moment, of all orders."""
    shown = {order.broker_order_id: order.filled_quantity for order in seen}
    filled = (max(known.filled_quantity, shown.get(known.broker_order_id or "", Decimal(0))) for known in work.orders)
    return work.spec.quantity - sum(filled, Decimal(0))


def _change(work: Work, quantity: Decimal) -> Change:
    return Change(
        work.client_order_id,
        quantity,
        work.spec.terms.get("time_in_force", "DAY"),
        work.spec.price("limit_price"),
        work.spec.price("stop_price"),
    )


def _cancel(dispatch: Dispatch) -> Verdict:
    broker, work = dispatch.broker, dispatch.work
    target = work.broker_order_id or ""
    if work.started_before:
        order = broker.order(target)
        if order and order.status is not OrderStatus.WORKING and order.status is not OrderStatus.PENDING:
            return Seen(order)
        if order and work.attempts >= CANCEL_ATTEMPTS:
            return Refused("CANCEL_NOT_DONE", "The broker took the cancel in and did not carry it out.", (order,))
    current, stop = dispatch.stopped()
    if stop:
        return stop
    crashpoints.reach("executor.before_send")
    try:
        broker.cancel(target, current.check)
    except BrokerRefused as refusal:
        order = _query(lambda: broker.order(target))
        return Refused(refusal.code, refusal.message, (order,) if order else ())
    crashpoints.reach("executor.after_send")
    order = _query(lambda: broker.order(target))
    return Seen(order) if order else Requested()


_VERBS: dict[str, Callable[[Dispatch], Verdict]] = {"CREATE": _create, "REPLACE": _replace, "CANCEL": _cancel}


def _read_before(work: Work, question: Callable[[], T]) -> T:
    """A read before the first send: that it failed does not make anything unknown."""
    try:
        return question()
    except OutcomeUnknown as error:
        if work.started_before:
            raise
        raise NotSent(error.reason) from error


def _query(question: Callable[[], T]) -> T:
    """A read after something was written: that it failed says nothing about what was done."""
    try:
        return question()
    except BrokerError as error:
        raise QueryFailed(f"not_queried_{type(error).__name__}") from error


def _sent_before(broker: Broker, work: Work) -> Verdict | None:
    """What the broker has of an earlier send; None if it does not have it and sending again is safe."""
    if work.started_before is None:
        return None
    found = broker.find(work.client_order_id)
    if found:
        return Seen(found)
    quiet, silence = broker.call_seconds + QUIET_MARGIN_SECONDS, (work.now - work.started_before).total_seconds()
    if silence < quiet:
        return Later(quiet - silence, "quiet_period")  # the earlier request may still be on its way
    if decided := not_to_be_sent(work):
        # Sending again is safe, believing that nothing was sent is not: that takes more than one look.
        return decided if work.absences >= ABSENCES_TO_GIVE_UP else Later(quiet, "perhaps_sent", absent=True)
    return None if broker.client_ids.may_resend else Unknown("needs_operator", OPERATOR_REQUIRED, OPERATOR_SECONDS)
