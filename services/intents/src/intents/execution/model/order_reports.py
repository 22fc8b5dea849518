"""What an order that a broker shows makes of its intent.

What the broker says is filled of an order in all is believed, and the largest such total; where an update has none,
the executions of the order count, each once by its id. So nothing is counted twice, whatever comes late, twice, out of
order, only by looking, or under two ids. Whatever order of the intent is filled, it counts: a replaced one, one that
was given up and surfaced, a second one under the same client order id.
"""

from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from intents.brokers import OPEN, Execution, Order, OrderStatus, Told
from intents.execution.client_order_id import duplicate
from intents.execution.model.local_decisions import NOT_FOUND_AT_BROKER
from intents.execution.model.locked_intent import ENDED, MISSING, BrokerOrder, Held
from intents.execution.model.settlement import apply_report, done, note, tell_fill, tell_position
from intents.model import TERMINAL, Update
from intents.model.reports import Report

_ZERO = Decimal(0)

ORDER_AFTER_END = "ORDER_AFTER_END"
DUPLICATE_ORDER = "DUPLICATE_ORDER"
REPLACED_LATE = "REPLACED_LATE"
OVERFILLED = "OVERFILLED"
_CAME_TO_NOTHING = (MISSING, OrderStatus.REJECTED)


class Fill(NamedTuple):
    """So much of an order at that price; `execution` if it is one that the broker has named."""

    quantity: Decimal
    price: Decimal | None
    execution: Execution | None


def see(
    held: Held,
    order: Order,
    moment: datetime,
    execution: Execution | None = None,
    told: Told | None = None,
    *,
    is_current_state: bool = False,
) -> None:
    """Let the order act on its intent. `is_current_state`: the broker was asked just now, so nothing here is old."""
    known = _known(held, order)
    if known is None:
        return
    surfaced = known.status == MISSING or known.is_duplicate
    if surfaced and held.intent.reason_code == NOT_FOUND_AT_BROKER:
        _found_after_all(held, order, moment)
    _learn(held, known, order, moment)
    news = execution if execution and execution.id not in known.executions else None
    fills = _fills_of(known, order, execution)
    if _is_replacement(held, known) and not _take_over(held, known, order, moment, bool(fills)):
        return
    current = not known.is_duplicate and held.intent.broker_order_id in (None, order.broker_order_id)
    if current:
        _accept(held, order, moment)
    for fill in fills:
        _fill(held, known, moment, fill)
    if news and order.filled_quantity >= known.filled_quantity:  # else it is older than what we know
        tell_position(held, moment, news)
    if current:
        _end(held, order, moment, told)
    ended = held.intent.status in TERMINAL
    if surfaced or (ended and (current or is_current_state)):
        _disown(held, known, moment)
    if ended and fills and not current and held.current_order:
        _disown(held, held.current_order, moment)  # what others of its orders have filled leaves nothing for it


def _known(held: Held, order: Order) -> BrokerOrder | None:
    """Our row of the order. A second order under the same client order id gets one of its own."""
    first = held.orders.get(order.client_order_id)
    if first is None or first.broker_order_id in (None, order.broker_order_id):
        return first
    name = duplicate(order.client_order_id, order.broker_order_id)
    if name not in held.orders:
        held.orders[name] = BrokerOrder(
            name, first.action_sequence, None, "STARTED", set(), _ZERO, _ZERO, _ZERO, credential=first.credential
        )
    return held.orders[name]


def _learn(held: Held, known: BrokerOrder, order: Order, moment: datetime) -> None:
    known.changed = known.changed or known.broker_order_id is None or known.quantity != order.quantity
    known.broker_order_id, known.quantity = order.broker_order_id, order.quantity
    if known.status == order.status or (known.status in ENDED and order.status in OPEN):
        return
    known.status, known.changed = order.status, True
    if known.unwanted and known.status in ENDED:
        ended = Report(
            Update.SUBMITTED,
            moment,
            broker_order_id=known.broker_order_id,
            reason_code=_why_unwanted(held, known),
            reason=f"The order has ended as {known.status}.",
        )
        note(held, ended)


def _found_after_all(held: Held, order: Order, moment: datetime) -> None:
    """What the intent says of its end is no longer true."""
    held.intent = replace(held.intent, reason_code=ORDER_AFTER_END, updated_at=held.now)
    held.changed = True
    if order.status not in OPEN:
        reason = f"The broker has the order after all; it has ended as {order.status}."
        number, code = order.broker_order_id, ORDER_AFTER_END
        note(held, Report(Update.SUBMITTED, moment, broker_order_id=number, reason_code=code, reason=reason))


def _disown(held: Held, known: BrokerOrder, moment: datetime) -> None:
    """An open order that the intent no longer asks for is told once, and the reconciler cancels it."""
    if known.unwanted or not known.is_open:
        return
    known.unwanted, known.changed = True, True
    code = _why_unwanted(held, known)
    reason = "An order is open at the broker that the intent does not ask for; the system cancels it."
    note(held, Report(Update.SUBMITTED, moment, broker_order_id=known.broker_order_id, reason_code=code, reason=reason))


def _why_unwanted(held: Held, known: BrokerOrder) -> str:
    if known.is_duplicate:
        return DUPLICATE_ORDER
    return ORDER_AFTER_END if held.intent.status in TERMINAL else REPLACED_LATE


def _fills_of(known: BrokerOrder, order: Order, execution: Execution | None) -> list[Fill]:
    """What is new of the order's fills. One bears the name of an execution only if it is just that execution."""
    news = execution if execution and execution.id not in known.executions else None
    if execution and news:
        known.executions.add(execution.id)
        known.executed_quantity += execution.quantity
        known.changed = True
    filled = max(known.filled_quantity, order.filled_quantity or known.executed_quantity)
    quantity = filled - known.filled_quantity
    if quantity <= 0:
        return []
    value = _value_of(known, order, execution, filled)
    known.filled_quantity, known.filled_value = filled, known.filled_value + value
    known.changed = True
    if news is None or quantity < news.quantity:
        return [Fill(quantity, _price(value, quantity), None)]
    named = Fill(news.quantity, news.price, news)
    missed = quantity - news.quantity  # by updates that did not come, or not yet
    return [Fill(missed, _price(value - news.quantity * news.price, missed), None), named] if missed else [named]


def _value_of(known: BrokerOrder, order: Order, execution: Execution | None, filled: Decimal) -> Decimal:
    quantity = filled - known.filled_quantity
    if execution and execution.quantity == quantity:
        return quantity * execution.price
    if order.average_price is not None and filled == order.filled_quantity:
        return order.average_price * filled - known.filled_value
    return quantity * (execution.price if execution else order.average_price or _ZERO)


def _price(value: Decimal, quantity: Decimal) -> Decimal | None:
    return value / quantity if value > 0 else None


def _is_replacement(held: Held, known: BrokerOrder) -> bool:
    """Whether this order is the one that the unsettled REPLACE asked for."""
    command = held.command
    return command is not None and command.type == "REPLACE" and command.sequence == known.action_sequence


def _take_over(held: Held, known: BrokerOrder, order: Order, moment: datetime, filled: bool) -> bool:
    """Settle the REPLACE by what became of its order; False while that is open, or when it came to nothing."""
    old = held.current_order
    if order.status is OrderStatus.REJECTED:
        apply_report(held, Report(Update.REPLACE_REJECTED, moment, reason_code="REPLACE_REJECTED"))
        done(held)
        return False
    if order.status is OrderStatus.PENDING and not filled and (old is None or old.status != OrderStatus.REPLACED):
        return False
    _replaced(held, known, order.broker_order_id, moment)
    return True


def _replaced(held: Held, known: BrokerOrder, broker_order_id: str, moment: datetime) -> None:
    if held.command is None:
        return
    known.broker_order_id, known.changed = broker_order_id, True
    held.accepted_at, held.respecified = held.now, True
    apply_report(held, Report(Update.REPLACED, moment, broker_order_id=broker_order_id, spec=held.command.spec))
    done(held)
    if held.intent.filled_quantity >= held.intent.quantity:  # the old order was filled further than the new total
        apply_report(held, Report(Update.FILLED, moment, reason_code=_overfilled(held.intent.filled_quantity, held)))


def _accept(held: Held, order: Order, moment: datetime) -> None:
    if held.intent.broker_order_id is not None:
        return
    if order.status is OrderStatus.REJECTED:
        held.intent = replace(held.intent, broker_order_id=order.broker_order_id)
        return
    held.accepted_at = held.now
    if not apply_report(held, Report(Update.ACCEPTED, moment, broker_order_id=order.broker_order_id)):
        held.intent, held.changed = replace(held.intent, broker_order_id=order.broker_order_id), True
    if held.command and held.command.type == "CREATE":
        done(held)


def _fill(held: Held, known: BrokerOrder, moment: datetime, fill: Fill) -> None:
    total = held.intent.filled_quantity + fill.quantity
    whole = total >= held.intent.quantity
    report = Report(
        Update.FILLED if whole else Update.PARTIALLY_FILLED,
        moment,
        execution_id=fill.execution.id if fill.execution else None,
        last_quantity=fill.quantity,
        last_price=fill.price,
        reason_code=_overfilled(total, held),
        outcome=held.intent.outcome if held.intent.status not in TERMINAL and not whole else None,
    )
    if apply_report(held, report):
        tell_fill(held, known, report)


def _overfilled(total: Decimal, held: Held) -> str | None:
    return OVERFILLED if total > held.intent.quantity else None


def _end(held: Held, order: Order, moment: datetime, told: Told | None) -> None:
    """Beyond fills: that the order has ended, or what was refused about it."""
    command = held.command
    if order.status is OrderStatus.REPLACED:
        _replaced_by(held, order, moment)
    elif order.status is OrderStatus.FILLED and held.intent.status not in TERMINAL:
        apply_report(held, Report(Update.FILLED, moment))
    elif order.status is OrderStatus.CANCELED:
        apply_report(held, Report(Update.CANCELED, moment))
    elif order.status is OrderStatus.EXPIRED:
        apply_report(held, Report(Update.EXPIRED, moment))
    elif order.status is OrderStatus.REJECTED:
        apply_report(held, Report(Update.REJECTED, moment, reason_code="BROKER_REJECTED"))
    elif told is Told.CANCEL_REJECTED and command and command.type == "CANCEL":
        apply_report(held, Report(Update.CANCEL_REJECTED, moment, reason_code="CANCEL_REJECTED"))
        done(held)
    elif told is Told.REPLACE_REJECTED and command and command.type == "REPLACE":
        apply_report(held, Report(Update.REPLACE_REJECTED, moment, reason_code="REPLACE_REJECTED"))
        done(held)


def _replaced_by(held: Held, order: Order, moment: datetime) -> None:
    """The order has become another one: that of the unsettled REPLACE, of one that was given up, or somebody else's.

    Only the other's client order id tells. Where it is not known yet, whoever sends the REPLACE is to query it now.
    """
    command = held.command
    asked = next((one for one in held.orders.values() if command and one.action_sequence == command.sequence), None)
    if asked and order.replaced_by and asked.broker_order_id == order.replaced_by:
        _replaced(held, asked, order.replaced_by, moment)
    elif command and command.type == "REPLACE" and not (asked and asked.status in _CAME_TO_NOTHING):
        held.next_attempt_at, held.changed = held.now, True
    else:
        end_if_replaced(held, moment)


def end_if_replaced(held: Held, moment: datetime) -> None:
    """An order that became something else than is asked for here: a REPLACE of ours given up, or somebody else's."""
    order = held.current_order
    if order is None or order.status != OrderStatus.REPLACED or held.intent.status in TERMINAL:
        return
    given_up = any(one.status == MISSING or one.unwanted for one in held.orders.values())
    code = REPLACED_LATE if given_up else "REPLACED_ELSEWHERE"
    apply_report(held, Report(Update.CANCELED, moment, reason_code=code))
