"""What an order that a broker shows makes of its intent.

Whatever order of the intent is filled, it counts: a replaced one, one that was given up and surfaced, a second one
under the same client order id.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal

from intents.execution.client_order_id import duplicate
from intents.execution.model.fills import Fill, append_position, apply_fill, new_fills, overfill_code
from intents.execution.model.inputs import BrokerReport
from intents.execution.model.locked_intent import MISSING, STARTED, BrokerOrder
from intents.execution.model.settlement import Settlement, append_note, apply_report, complete_command
from intents.execution.model.verdicts import (
    DUPLICATE_ORDER,
    NOT_FOUND_AT_BROKER,
    ORDER_AFTER_END,
    REPLACED_ELSEWHERE,
    REPLACED_LATE,
)
from intents.model import TERMINAL, Update
from intents.model.reports import Report
from tip_brokers.protocol import ENDED, OPEN, Execution, Order, OrderStatus, RejectionNotice

_ZERO = Decimal(0)
_CAME_TO_NOTHING = (MISSING, OrderStatus.REJECTED)
_ENDS = {
    OrderStatus.CANCELED: (Update.CANCELED, None),
    OrderStatus.EXPIRED: (Update.EXPIRED, None),
    OrderStatus.REJECTED: (Update.REJECTED, "BROKER_REJECTED"),
}


def apply_order(settlement: Settlement, report: BrokerReport) -> None:
    """Let the order that is reported act on its intent."""
    order, moment, execution = report.order, report.occurred_at, report.execution
    known = _known(settlement, order)
    if known is None:
        return
    settlement.legs = order.legs or settlement.legs
    surfaced = known.status == MISSING or known.is_duplicate
    if surfaced and settlement.intent.reason_code == NOT_FOUND_AT_BROKER:
        _found_after_all(settlement, order, moment)
    _learn(settlement, known, order, moment)
    news = execution if execution and execution.id not in known.executions else None
    fills = new_fills(known, order, execution)
    if _is_replacement(settlement, known) and not _take_over(settlement, known, order, moment, bool(fills)):
        return
    is_current = not known.is_duplicate and settlement.intent.broker_order_id in (None, order.broker_order_id)
    _advance(settlement, known, report, fills, news, is_current=is_current)
    if surfaced or (settlement.intent.status in TERMINAL and (is_current or report.is_current_state)):
        _disown(settlement, known, moment)
    if fills and not is_current:
        _disown_filled_by_another(settlement, moment)


def _advance(
    settlement: Settlement,
    known: BrokerOrder,
    report: BrokerReport,
    fills: Sequence[Fill],
    news: Execution | None,
    *,
    is_current: bool,
) -> None:
    """Acceptance, fills, position and end, in the order in which they happened at the broker."""
    if is_current:
        _accept(settlement, report.order, report.occurred_at)
    is_filled = is_current and report.order.status is OrderStatus.FILLED
    for fill in fills:
        apply_fill(settlement, known, report.occurred_at, fill, is_last=is_filled and fill is fills[-1])
    is_newest = report.order.filled_quantity >= known.filled_quantity  # else it is older than what we know
    if news and is_newest and not known.in_former_account:
        append_position(settlement, report.occurred_at, news)
    if is_current:
        _end(settlement, report.order, report.occurred_at, report.rejection)


def _known(settlement: Settlement, order: Order) -> BrokerOrder | None:
    """Our row of the order, by the broker's id where it does not show ours.

    A second order under the same client order id gets a row of its own.
    """
    first = settlement.orders.get(order.client_order_id)
    if first is None:
        return next((row for row in settlement.orders.values() if row.broker_order_id == order.broker_order_id), None)
    if first.broker_order_id in (None, order.broker_order_id):
        return first
    key = duplicate(order.client_order_id, order.broker_order_id)
    if key not in settlement.orders:
        settlement.orders[key] = BrokerOrder(
            key, first.action_sequence, None, STARTED, set(), _ZERO, _ZERO, _ZERO, credential=first.credential,
            in_former_account=first.in_former_account,
        )  # fmt: skip
    return settlement.orders[key]


def _learn(settlement: Settlement, known: BrokerOrder, order: Order, moment: datetime) -> None:
    known.broker_order_id, known.quantity = order.broker_order_id, order.quantity
    if known.status == order.status or _is_earlier(order.status, known.status):
        return
    known.status = order.status
    if known.unwanted and known.status in ENDED:
        ended = Report(
            Update.SUBMITTED,
            moment,
            broker_order_id=known.broker_order_id,
            reason_code=_why_unwanted(settlement, known),
            reason=f"The order has ended as {known.status}.",
        )
        append_note(settlement, ended)


def _is_earlier(status: OrderStatus, known: str) -> bool:
    """Whether the report was overtaken: what has ended stays so, and nothing goes back from the market."""
    return (known in ENDED and status in OPEN) or (known == OrderStatus.WORKING and status is OrderStatus.PENDING)


def _found_after_all(settlement: Settlement, order: Order, moment: datetime) -> None:
    """What the intent says of its end is no longer true."""
    settlement.intent = replace(settlement.intent, reason_code=ORDER_AFTER_END, updated_at=settlement.now)
    if order.status not in OPEN:
        found = Report(
            Update.SUBMITTED,
            moment,
            broker_order_id=order.broker_order_id,
            reason_code=ORDER_AFTER_END,
            reason=f"The broker has the order after all; it has ended as {order.status}.",
        )
        append_note(settlement, found)


def _disown_filled_by_another(settlement: Settlement, moment: datetime) -> None:
    """What other orders of an ended intent have filled leaves nothing for its current one."""
    current = settlement.current_order
    if settlement.intent.status in TERMINAL and current:
        _disown(settlement, current, moment)


def _disown(settlement: Settlement, known: BrokerOrder, moment: datetime) -> None:
    """An open order that the intent no longer asks for is reported once, and the reconciler cancels it."""
    if known.unwanted or not known.is_open:
        return
    known.unwanted = True
    unwanted = Report(
        Update.SUBMITTED,
        moment,
        broker_order_id=known.broker_order_id,
        reason_code=_why_unwanted(settlement, known),
        reason="An order is open at the broker that the intent does not ask for; the system cancels it.",
    )
    append_note(settlement, unwanted)


def _why_unwanted(settlement: Settlement, known: BrokerOrder) -> str:
    if known.is_duplicate:
        return DUPLICATE_ORDER
    return ORDER_AFTER_END if settlement.intent.status in TERMINAL else REPLACED_LATE


def _is_replacement(settlement: Settlement, known: BrokerOrder) -> bool:
    """Whether this order is the one that the unsettled REPLACE asks for."""
    command = settlement.command
    return command is not None and command.type == "REPLACE" and command.sequence == known.action_sequence


def _take_over(settlement: Settlement, known: BrokerOrder, order: Order, moment: datetime, filled: bool) -> bool:
    """Settle the REPLACE by what became of its order; False while that is open, or when it came to nothing."""
    old = settlement.current_order
    if order.status is OrderStatus.REJECTED:
        _reject_command(settlement, Update.REPLACE_REJECTED, moment)
        return False
    if order.status is OrderStatus.PENDING and not filled and (old is None or old.status != OrderStatus.REPLACED):
        return False
    _replaced(settlement, known, order.broker_order_id, moment)
    return True


def _reject_command(settlement: Settlement, update: Update, moment: datetime) -> None:
    apply_report(settlement, Report(update, moment, reason_code=str(update)))
    complete_command(settlement)


def _replaced(settlement: Settlement, known: BrokerOrder, broker_order_id: str, moment: datetime) -> None:
    if settlement.command is None:
        return
    known.broker_order_id = broker_order_id
    settlement.progress.accepted_at = settlement.now
    spec = settlement.command.spec
    apply_report(settlement, Report(Update.REPLACED, moment, broker_order_id=broker_order_id, spec=spec))
    complete_command(settlement)
    filled = settlement.intent.filled_quantity
    if filled >= settlement.intent.quantity:  # the old order was filled further than the new total
        apply_report(settlement, Report(Update.FILLED, moment, reason_code=overfill_code(settlement, filled)))


def _accept(settlement: Settlement, order: Order, moment: datetime) -> None:
    if settlement.intent.broker_order_id is not None:
        return
    if order.status is OrderStatus.REJECTED:
        settlement.intent = replace(settlement.intent, broker_order_id=order.broker_order_id)
        return
    settlement.progress.accepted_at = settlement.now
    if not apply_report(settlement, Report(Update.ACCEPTED, moment, broker_order_id=order.broker_order_id)):
        settlement.intent = replace(settlement.intent, broker_order_id=order.broker_order_id)
    if settlement.command and settlement.command.type == "CREATE":
        complete_command(settlement)


def _end(settlement: Settlement, order: Order, moment: datetime, rejection: RejectionNotice | None) -> None:
    """Beyond fills: that the order has ended, or what was rejected about it."""
    command = settlement.command
    if order.status is OrderStatus.REPLACED:
        _replaced_by(settlement, order, moment)
    elif order.status is OrderStatus.FILLED and settlement.intent.status not in TERMINAL:
        apply_report(settlement, Report(Update.FILLED, moment))
    elif order.status in _ENDS:
        update, code = _ENDS[order.status]
        apply_report(settlement, Report(update, moment, reason_code=code))
    elif rejection is RejectionNotice.CANCEL_REJECTED and command and command.type == "CANCEL":
        _reject_command(settlement, Update.CANCEL_REJECTED, moment)
    elif rejection is RejectionNotice.REPLACE_REJECTED and command and command.type == "REPLACE":
        _reject_command(settlement, Update.REPLACE_REJECTED, moment)


def _replaced_by(settlement: Settlement, order: Order, moment: datetime) -> None:
    """The order has become another one: that of the unsettled REPLACE, of one that was given up, or somebody else's.

    Only the other's client order id says which. Where that is not known yet, the REPLACE is to be queried now.
    """
    command = settlement.command
    orders = settlement.orders.values()
    wanted = next((known for known in orders if command and known.action_sequence == command.sequence), None)
    if wanted and order.replaced_by and wanted.broker_order_id == order.replaced_by:
        _replaced(settlement, wanted, order.replaced_by, moment)
    elif command and command.type == "REPLACE" and not (wanted and wanted.status in _CAME_TO_NOTHING):
        settlement.progress.next_attempt_at = settlement.now
    else:
        end_if_replaced(settlement, moment)


def end_if_replaced(settlement: Settlement, moment: datetime) -> None:
    """An order that became something else than the intent asks for: a REPLACE of ours given up, or somebody else's."""
    order = settlement.current_order
    if order is None or order.status != OrderStatus.REPLACED or settlement.intent.status in TERMINAL:
        return
    given_up = any(known.status == MISSING or known.unwanted for known in settlement.orders.values())
    code = REPLACED_LATE if given_up else REPLACED_ELSEWHERE
    apply_report(settlement, Report(Update.CANCELED, moment, reason_code=code))
