"""One piece of work and one broker: decide what needs no broker, ask before a second send, send."""

import time
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal

from chassis import crashpoints
from intents.brokers import (
    OPEN,
    Broker,
    Change,
    DuplicateClientOrderId,
    NewOrder,
    OrderStatus,
)
from intents.brokers import Refused as BrokerRefused
from intents.execution.work import Decided, Later, Refused, Requested, Seen, Unknown, Verdict, Work
from intents.model import Status, Update

QUIET_MARGIN_SECONDS = 1.0
GIVEN_UP_QUIETS = 3  # quiet periods, after which what is not there will not come any more
HOLDER_LOST_SECONDS = 0.25  # by when it has a new session, or the lock is confirmed again
FRESH_SECONDS = 2.0  # how old may be what the claim saw of halts and cancels
CANCEL_ATTEMPTS = 5  # polls of a cancel that the broker took in and does not carry out

CANCELED_BEFORE_SENT = "CANCELED_BEFORE_SENT"
IsCurrent = Callable[[int | None], bool]


def decide_here(work: Work) -> Verdict | None:
    """What is settled without the broker, or None if it has to be sent."""
    if time.monotonic() - work.claimed.at > FRESH_SECONDS:
        return Later(0.0, "claimed_too_long_ago")  # it waited for others: to be looked at again before it is sent
    if work.broker is None:
        return _gone(work)
    return None if work.started_before else _not_to_be_sent(work)


def _not_to_be_sent(work: Work) -> Decided | None:
    """Why it must not go out now although it was accepted. A CANCEL always may: it only reduces risk."""
    if work.type == "CANCEL":
        return None
    if work.status is Status.PENDING_CANCEL:
        update = Update.CANCELED if work.type == "CREATE" else Update.REPLACE_REJECTED
        return Decided(update, CANCELED_BEFORE_SENT, "It was canceled before it was sent.")
    if work.halted_by:
        update = Update.DENIED if work.type == "CREATE" else Update.REPLACE_REJECTED
        return Decided(update, "TRADING_HALTED", f"The {work.halted_by} was halted before it was sent.")
    if work.type == "CREATE" and work.stale_millis is not None:
        age = work.now - work.created_at
        if age > timedelta(milliseconds=work.stale_millis):
            return Decided(Update.EXPIRED, "STALE_ORDER", "It was too old to be sent.")
    return None


def _gone(work: Work) -> Verdict:
    if work.started_before:
        return Later(60.0, "account_gone", "ACCOUNT_NOT_FOUND")
    updates = {"CREATE": Update.DENIED, "REPLACE": Update.REPLACE_REJECTED, "CANCEL": Update.CANCEL_REJECTED}
    return Decided(updates[work.type], "ACCOUNT_NOT_FOUND", "The account was deleted.")


def send(broker: Broker, work: Work, is_current: IsCurrent) -> Verdict:
    """Carry the command out at the broker. Raises BrokerError when it could not be."""
    return _VERBS[work.type](broker, work, is_current)


def _create(broker: Broker, work: Work, is_current: IsCurrent) -> Verdict:
    if earlier := _sent_before(broker, work):
        return earlier
    order = NewOrder(
        work.client_order_id,
        work.symbol,
        work.order_side,
        work.spec.kind,
        work.spec.quantity,
        work.spec.terms.get("time_in_force", "DAY"),
        work.spec.price("limit_price"),
        work.spec.price("stop_price"),
    )
    if stop := _not_ours_any_more(broker, work, is_current):
        return stop
    crashpoints.reach("executor.before_send")
    try:
        made = broker.create(order)
    except DuplicateClientOrderId:
        found = broker.find(work.client_order_id)
        return Seen(found) if found else Unknown("duplicate_not_found")
    except BrokerRefused as refusal:
        return Refused(refusal.code, refusal.message)
    crashpoints.reach("executor.after_send")
    return Seen(made)


def _replace(broker: Broker, work: Work, is_current: IsCurrent) -> Verdict:
    if earlier := _sent_before(broker, work):
        return earlier
    quantity = None if work.spec.quantity == work.quantity else _still_to_fill(broker, work)
    if isinstance(quantity, Refused):
        return quantity
    change = Change(
        work.client_order_id,
        quantity,
        work.spec.terms.get("time_in_force", "DAY"),
        work.spec.price("limit_price"),
        work.spec.price("stop_price"),
    )
    if stop := _not_ours_any_more(broker, work, is_current):
        return stop
    crashpoints.reach("executor.before_send")
    try:
        made = broker.replace(work.broker_order_id or "", change)
    except BrokerRefused as refusal:
        # An error may still have taken effect: whether there is an order by that id is the truth.
        found = broker.find(work.client_order_id)
        current = None if found else broker.order(work.broker_order_id or "")
        return Seen(found) if found else Refused(refusal.code, refusal.message, current)
    crashpoints.reach("executor.after_send")
    return Seen(made)


def _still_to_fill(broker: Broker, work: Work) -> Decimal | Refused:
    """The broker wants the quantity of the new order alone: so it matters what is filled at this very moment."""
    current = broker.order(work.broker_order_id or "")
    if current is None or current.status not in OPEN:
        return Refused("ORDER_NOT_OPEN", "The order is no longer open.", current)
    quantity = work.spec.quantity - (work.filled_quantity - work.current_filled) - current.filled_quantity
    return quantity if quantity > 0 else Refused("QUANTITY_FILLED", "As much as that is filled already.", current)


def _cancel(broker: Broker, work: Work, is_current: IsCurrent) -> Verdict:
    target = work.broker_order_id or ""
    if work.started_before:
        order = broker.order(target)
        if order and order.status is not OrderStatus.WORKING and order.status is not OrderStatus.PENDING:
            return Seen(order)
        if order and work.attempts >= CANCEL_ATTEMPTS:
            return Refused("CANCEL_NOT_DONE", "The broker took the cancel in and did not carry it out.", order)
    if stop := _not_ours_any_more(broker, work, is_current):
        return stop
    crashpoints.reach("executor.before_send")
    try:
        broker.cancel(target)
    except BrokerRefused as refusal:
        return Refused(refusal.code, refusal.message, broker.order(target))
    crashpoints.reach("executor.after_send")
    order = broker.order(target)
    return Seen(order) if order else Requested()


_VERBS: dict[str, Callable[[Broker, Work, IsCurrent], Verdict]] = {
    "CREATE": _create,
    "REPLACE": _replace,
    "CANCEL": _cancel,
}


def _sent_before(broker: Broker, work: Work) -> Verdict | None:
    """What the broker has of an earlier send; None if it certainly has nothing and sending again is safe."""
    if work.started_before is None:
        return None
    found = broker.find(work.client_order_id)
    if found:
        return Seen(found)
    quiet, silence = broker.call_seconds + QUIET_MARGIN_SECONDS, (work.now - work.started_before).total_seconds()
    if silence < quiet:
        return Later(quiet - silence, "quiet_period")  # the earlier request may still be on its way
    if decided := _not_to_be_sent(work):
        # Sending again is safe, believing that nothing was sent is not: so that takes longer.
        return decided if silence > GIVEN_UP_QUIETS * quiet else Later(quiet, "perhaps_sent")
    return None if broker.client_ids.may_resend else Unknown("needs_operator")


def _not_ours_any_more(broker: Broker, work: Work, is_current: IsCurrent) -> Verdict | None:
    """A process that was stopped for a while, or cut off, must not send what another may have taken over."""
    if not is_current(work.holder):
        return Later(HOLDER_LOST_SECONDS, "holder_lost")
    if time.monotonic() + broker.call_seconds > work.lease_ends:
        return Later(0.0, "lease_too_short")
    return None
