"""One command and one broker: query before a second send, check the facts once more, send.

Whatever goes wrong after a request was written leaves the outcome unknown: only an error of the request itself proves
that nothing was done.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import TypeVar

from chassis import crashpoints
from intents.execution.call_log import OrderEntry
from intents.execution.clock import elapsed
from intents.execution.model.commands import LeasedCommand
from intents.execution.model.local_decisions import FRESH_SECONDS, TOO_OLD, is_fresh, not_to_be_sent
from intents.execution.model.verdicts import (
    OPERATOR_REQUIRED,
    OrderFound,
    Rejected,
    Requested,
    RetryLater,
    Unknown,
    Verdict,
)
from intents.execution.pair_queries import find_as_leg, read_before
from intents.model import Spec
from tip_brokers import (
    OPEN,
    BrokerError,
    Change,
    ClientIds,
    DuplicateClientOrderId,
    NewOrder,
    NotWritten,
    Order,
    OrderStatus,
    OutcomeUnknown,
    Refused,
    StopExit,
)

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

    broker: OrderEntry
    command: LeasedCommand
    refresh: Callable[[LeasedCommand], LeasedCommand | None]
    may_send: Callable[[], bool] = lambda: True
    """Whether this process is still the one that may send it."""

    def run(self) -> Verdict:
        """Carry the command out at the broker. Raises BrokerError when it could not be."""
        try:
            return _VERBS[self.command.type](self)
        except NotWritten:
            return TOO_OLD

    def check(self) -> None:
        """Immediately before the request is written."""
        late = self.command.type != "CANCEL" and not is_fresh(self.command)
        if late or elapsed() + self.broker.call_seconds > self.command.lease_ends or not self.may_send():
            raise NotWritten

    def stopped(self) -> tuple["Dispatch", Verdict | None]:
        """Before something is sent: with facts that are fresh, and why it may not be.

        A stop that goes with it may have been canceled since the claim, because this was not on its way yet; or be
        refused by now, like any order.
        """
        current = self
        if elapsed() - self.command.snapshot.at > FRESH_SECONDS / 2 or self.command.stop:
            command = self.refresh(self.command)
            if command is None:
                return self, TOO_OLD
            current = replace(self, command=command)
            if decided := not_to_be_sent(command):
                return current, TOO_OLD if command.started_before else decided
            if refused := command.stop_command and not_to_be_sent(command.stop_command):
                if isinstance(refused, RetryLater):
                    return current, refused  # sent after the other, it would find the position reserved for that one
                current = replace(current, command=command.alone)  # its own command ends it, once this one is there
        if not self.may_send():
            return current, RetryLater(HOLDER_LOST_SECONDS, "holder_lost")
        if elapsed() + self.broker.call_seconds > self.command.lease_ends:
            return current, RetryLater(0.0, "lease_too_short")
        return current, None


def _create(dispatch: Dispatch) -> Verdict:
    broker, command = dispatch.broker, dispatch.command
    if earlier := find_as_leg(broker, command) or _sent_before(broker, command):
        return earlier
    current, stop = dispatch.stopped()
    if stop:
        return stop
    crashpoints.reach("executor.before_send")
    try:
        made = broker.create(_new_order(current.command), current.check)
    except DuplicateClientOrderId:
        found = _query(lambda: broker.find(command.client_order_id, command.symbol))
        return OrderFound(found) if found else Unknown("duplicate_not_found")
    except Refused as refusal:
        return _refused_create(broker, command, refusal)
    crashpoints.reach("executor.after_send")
    return OrderFound(made)


def _refused_create(broker: OrderEntry, command: LeasedCommand, refusal: Refused) -> Verdict:
    """What was sent before may be there, and be the very reason of the refusal: it holds the buying power."""
    found = _query(lambda: broker.find(command.client_order_id, command.symbol)) if command.started_before else None
    return OrderFound(found) if found else Rejected(refusal.code, refusal.message)


def _new_order(command: LeasedCommand) -> NewOrder:
    return NewOrder(
        command.client_order_id,
        command.symbol,
        command.order_side,
        command.spec.kind,
        command.spec.quantity,
        command.spec.terms.get("time_in_force", "DAY"),
        command.spec.price("limit_price"),
        command.spec.price("stop_price"),
        command.snapshot.route_strategy,
        trail_amount=command.spec.price("trail_amount"),
        trail_percent=command.spec.price("trail_percent"),
        notional=command.spec.notional,
        extended_hours=command.snapshot.extended_hours,
        stop_exit=_stop_exit(command.stop) if command.stop else None,
    )


def _stop_exit(spec: Spec) -> StopExit:
    return StopExit(Decimal(spec.terms["stop_price"]), spec.price("limit_price"))


def _replace(dispatch: Dispatch) -> Verdict:
    broker, command = dispatch.broker, dispatch.command
    target = command.broker_order_id or ""
    if earlier := _sent_before(broker, command):
        return OrderFound(earlier.order, _reread(broker, command)) if isinstance(earlier, OrderFound) else earlier
    seen = read_before(command, lambda: tuple(_unended(broker, command)))
    if refused := _not_replaceable(command, seen):
        return refused
    current, stop = dispatch.stopped()
    if stop:
        return stop
    crashpoints.reach("executor.before_send")
    try:
        made = broker.replace(target, _change(command, seen), current.check)
    except DuplicateClientOrderId:
        found = _query(lambda: broker.find(command.client_order_id, command.symbol))
        return OrderFound(found, _reread(broker, command)) if found else Unknown("duplicate_not_found")
    except Refused as refusal:
        # An error may still have taken effect: whether there is an order by that id is the truth.
        found = _query(lambda: broker.find(command.client_order_id, command.symbol))
        orders = _reread(broker, command)
        return OrderFound(found, orders) if found else Rejected(refusal.code, refusal.message, orders)
    crashpoints.reach("executor.after_send")
    return OrderFound(made, _reread(broker, command))


def _unended(broker: OrderEntry, command: LeasedCommand) -> Iterator[Order]:
    """The intent's orders that were not seen to have ended: each may have fills that we do not know."""
    for known in command.orders:
        if not known.ended and known.broker_order_id and (order := broker.order(known.broker_order_id)):
            yield order


def _reread(broker: OrderEntry, command: LeasedCommand) -> tuple[Order, ...]:
    """The replaced order and those before it, now that nothing more is filled of them."""
    return _query(lambda: tuple(_unended(broker, command)))


def _not_replaceable(command: LeasedCommand, seen: tuple[Order, ...]) -> Rejected | None:
    current = _current(command, seen)
    if current is None or current.status not in OPEN:
        return Rejected("ORDER_NOT_OPEN", "The order is no longer open.", seen)
    if _remaining(command, seen) <= 0:
        return Rejected("QUANTITY_FILLED", "As much as that is filled already.", seen)
    return None


def _current(command: LeasedCommand, seen: tuple[Order, ...]) -> Order | None:
    return next((order for order in seen if order.broker_order_id == command.broker_order_id), None)


def _remaining(command: LeasedCommand, seen: tuple[Order, ...]) -> Decimal:
    """What the new order is for: the new total without everything that is filled at this moment, of all orders."""
    shown = {order.broker_order_id: order.filled_quantity for order in seen}
    filled = (
        max(known.filled_quantity, shown.get(known.broker_order_id or "", Decimal(0))) for known in command.orders
    )
    return command.spec.quantity - sum(filled, Decimal(0))


def _change(command: LeasedCommand, seen: tuple[Order, ...]) -> Change:
    quantity = _remaining(command, seen)
    return Change(
        command.client_order_id,
        quantity,
        command.spec.terms.get("time_in_force", "DAY"),
        command.spec.price("limit_price"),
        command.spec.price("stop_price"),
        trail_amount=command.spec.price("trail_amount"),
        trail_percent=command.spec.price("trail_percent"),
        only_prices=_changes_only_prices(command, _current(command, seen), quantity),
    )


def _changes_only_prices(command: LeasedCommand, current: Order | None, quantity: Decimal) -> bool:
    """Of an exit of a pair, which the broker shows as such: whether its new order is for what the old one is for."""
    intent = command.facts.intent
    is_same_time = intent is not None and intent.spec.time_in_force == command.spec.time_in_force
    return is_same_time and current is not None and current.legs is not None and current.quantity == quantity


def _cancel(dispatch: Dispatch) -> Verdict:
    broker, command = dispatch.broker, dispatch.command
    target = command.broker_order_id or ""
    if command.started_before:
        order = broker.order(target)
        if order and order.status is not OrderStatus.WORKING and order.status is not OrderStatus.PENDING:
            return OrderFound(order)
        if order and command.attempts >= CANCEL_ATTEMPTS:
            return Rejected("CANCEL_NOT_DONE", "The broker took the cancel in and did not carry it out.", (order,))
    current, stop = dispatch.stopped()
    if stop:
        return stop
    crashpoints.reach("executor.before_send")
    try:
        broker.cancel(target, current.check)
    except Refused as refusal:
        order = _query(lambda: broker.order(target))
        if order and order.status is OrderStatus.PENDING_CANCEL:
            return OrderFound(order)
        return Rejected(refusal.code, refusal.message, (order,) if order else ())
    crashpoints.reach("executor.after_send")
    order = _query(lambda: broker.order(target))
    return OrderFound(order) if order else Requested()


_VERBS: dict[str, Callable[[Dispatch], Verdict]] = {"CREATE": _create, "REPLACE": _replace, "CANCEL": _cancel}


def _query(read: Callable[[], T]) -> T:
    """A read after something was written: that it failed proves nothing about what was done."""
    try:
        return read()
    except BrokerError as error:
        raise QueryFailed(f"not_queried_{type(error).__name__}") from error


def _sent_before(broker: OrderEntry, command: LeasedCommand) -> Verdict | None:
    """What the broker has of an earlier send; None if it does not have it and sending again is safe."""
    if command.started_before is None:
        return None
    if broker.client_ids is ClientIds.NONE:
        return Unknown("needs_operator", OPERATOR_REQUIRED, OPERATOR_SECONDS)
    found = broker.find(command.client_order_id, command.symbol)
    return OrderFound(found) if found else _absent(broker, command, command.started_before)


def _absent(broker: OrderEntry, command: LeasedCommand, started_before: datetime) -> Verdict | None:
    """The same of what the broker has just said not to have."""
    quiet, silence = broker.call_seconds + QUIET_MARGIN_SECONDS, (command.now - started_before).total_seconds()
    if silence < quiet:
        return RetryLater(quiet - silence, "quiet_period")  # the earlier request may still be on its way
    if decided := not_to_be_sent(command):
        # Sending again is safe, believing that nothing was sent is not: that takes more than one query.
        is_given_up = command.absences >= ABSENCES_TO_GIVE_UP or isinstance(decided, RetryLater)
        return decided if is_given_up else RetryLater(quiet, "perhaps_sent", absent=True)
    if broker.client_ids is ClientIds.ECHO and command.absences < ABSENCES_TO_GIVE_UP:
        return RetryLater(quiet, "perhaps_sent", absent=True)
    return None
