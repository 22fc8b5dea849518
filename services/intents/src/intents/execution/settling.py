"""What an answer or an update makes of an intent: the decisions of execution, without a database or a broker.

What the broker says is filled of an order in all is believed, and the largest such total; where an update has none,
the executions of the order count, each once by its id. So nothing is counted twice, whatever comes late, twice, out of
order, only by looking, or under two ids.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from intents.brokers import OPEN, Execution, Order, OrderStatus, Told
from intents.execution.work import Answer, Decided, Heard, Later, Refused, Requested, Seen, Unknown, Work
from intents.model import TERMINAL, Intent, Spec, Status, Update, reports
from intents.model.reports import Report

PARKED = frozenset({"CREDENTIAL_INVALID", "CREDENTIAL_MISSING", "BROKER_UNKNOWN", "ACCOUNT_NOT_FOUND"})
_ENDED = frozenset(OrderStatus) - OPEN
_ZERO = Decimal(0)


@dataclass(frozen=True)
class Patience:
    """When an unknown outcome is asked about: first after a while, then again and again."""

    ask_after_seconds: float = 5.0
    ask_every_seconds: float = 2.0
    look_again_seconds: float = 0.25


@dataclass(slots=True)
class BrokerOrder:
    """An order we asked for, as we know it."""

    client_order_id: str
    action_sequence: int
    broker_order_id: str | None
    status: str
    executions: set[str]
    filled_quantity: Decimal
    executed_quantity: Decimal
    filled_value: Decimal
    changed: bool = False


@dataclass(frozen=True, slots=True)
class Command:
    """The earliest action of the intent that is not settled."""

    id: UUID
    sequence: int
    type: str
    spec: Spec | None


@dataclass(slots=True)
class Held:
    """An intent under lock, its orders, and what is to be written of it."""

    account_id: UUID
    intent: Intent
    orders: dict[str, BrokerOrder]
    command: Command | None
    now: datetime
    lease_token: UUID | None
    next_attempt_at: datetime
    submit_started_at: datetime | None
    accepted_at: datetime | None
    attempts: int
    open_actions: int
    done_sequence: int
    traceparent: str | None = None
    """Of the request that gave the unsettled command."""
    holder: UUID | None = None
    """Set when the intent is not locked: then it is written only if it is still under this lease, and unchanged."""
    patience: Patience = Patience()
    rank: int = 0
    """Which of all that is recorded together acts now: events and positions of several intents keep that order."""
    events: list[dict[str, Any]] = field(default_factory=list)
    positions: list[dict[str, Any]] = field(default_factory=list)
    unsent: list[str] = field(default_factory=list)
    changed: bool = False
    respecified: bool = False
    """Whether a REPLACE has given the intent another spec."""


def settle(held: Held, happenings: Iterable[Answer | Heard]) -> None:
    """Let everything that happened act on the intent, in the order given."""
    for one in happenings:
        if isinstance(one, Answer):
            _answered(held, one)
        else:
            moves = len(held.positions)
            _see(held, one.order, one.occurred_at, one.execution, one.told)
            if one.position_known:
                del held.positions[moves:]
    held.changed = held.changed or any(order.changed for order in held.orders.values())


def _answered(held: Held, answer: Answer) -> None:
    work, verdict = answer
    if held.lease_token != work.lease_token:
        return  # another has taken over: what he finds out counts
    held.lease_token, held.changed = None, True
    open_still = held.command is not None and held.command.id == work.action_id
    if isinstance(verdict, Seen):
        _see(held, verdict.order, verdict.order.updated_at)
        if open_still and held.command:
            _taken_in(held, work)
    elif isinstance(verdict, Refused):
        _refused(held, verdict, open_still)
    elif not open_still:
        return
    elif isinstance(verdict, Unknown):
        _unknown(held, verdict)
    elif isinstance(verdict, Later):
        _later(held, verdict, sent_before=work.started_before)
    elif isinstance(verdict, Requested):
        _taken_in(held, work)
    elif isinstance(verdict, Decided):
        if work.started_before is None:
            held.unsent.append(work.client_order_id)
        apply_report(held, Report(verdict.update, held.now, reason_code=verdict.code, reason=verdict.reason))
        _done(held)


def _refused(held: Held, refused: Refused, open_still: bool) -> None:
    if refused.order:
        _see(held, refused.order, refused.order.updated_at)
    if not open_still or held.command is None:
        return
    update = {"CREATE": Update.REJECTED, "REPLACE": Update.REPLACE_REJECTED, "CANCEL": Update.CANCEL_REJECTED}
    known = held.orders.get(f"tip-{held.command.id.hex}")
    if known:
        known.status, known.changed = OrderStatus.REJECTED, True
    apply_report(held, Report(update[held.command.type], held.now, reason_code=refused.code, reason=refused.reason))
    _done(held)


def _unknown(held: Held, verdict: Unknown) -> None:
    held.attempts = 0  # what was taken in before says nothing any more
    if held.intent.outcome == "unknown":
        _again(held, held.patience.ask_every_seconds)
    else:
        started = held.submit_started_at or held.now
        held.next_attempt_at = max(held.now, started + timedelta(seconds=held.patience.ask_after_seconds))
        apply_report(held, Report(Update.SUBMITTED, held.now, outcome="unknown", reason=verdict.reason))


def _later(held: Held, verdict: Later, sent_before: datetime | None) -> None:
    held.submit_started_at = sent_before  # as before this run, which sent nothing
    if sent_before is None:
        held.attempts += 1
    _again(held, verdict.seconds)
    if verdict.code and held.intent.reason_code != verdict.code:
        held.intent = replace(held.intent, reason_code=verdict.code, updated_at=held.now)
        _tell(held, held.intent.status, Report(Update.SUBMITTED, held.now, reason=verdict.reason))


def _again(held: Held, seconds: float) -> None:
    held.next_attempt_at = held.now + timedelta(seconds=seconds)


def _taken_in(held: Held, work: Work) -> None:
    """The broker has it and is not done: it is looked at again soon, then less often. `attempts` counts these looks."""
    held.attempts = held.attempts + 1 if work.started_before else 1
    _again(held, min(held.patience.ask_every_seconds, held.patience.look_again_seconds * held.attempts))


def _see(
    held: Held, order: Order, moment: datetime, execution: Execution | None = None, told: Told | None = None
) -> None:
    known = held.orders.get(order.client_order_id)
    if known is None:
        return
    _learn(known, order)
    news = execution if execution and execution.id not in known.executions else None
    filled = _fill_of(known, order, execution)
    if _is_replacement(held, known) and not _take_over(held, known, order, moment, filled is not None):
        return
    current = held.intent.broker_order_id in (None, order.broker_order_id)
    if current:
        _accept(held, order, moment)
    if filled:
        _fill(held, moment, filled, news)
    if news and order.filled_quantity >= known.filled_quantity:  # else it is older than what we know
        _stands(held, moment, news)
    if current:
        _end(held, order, moment, told)


def _learn(known: BrokerOrder, order: Order) -> None:
    known.changed = known.changed or known.broker_order_id is None
    known.broker_order_id = order.broker_order_id
    if known.status != order.status and not (known.status in _ENDED and order.status in OPEN):
        known.status, known.changed = order.status, True


def _fill_of(known: BrokerOrder, order: Order, execution: Execution | None) -> tuple[Decimal, Decimal | None] | None:
    """What is new of the order's fills: quantity and price. None if nothing is."""
    if execution and execution.id not in known.executions:
        known.executions.add(execution.id)
        known.executed_quantity += execution.quantity
        known.changed = True
    filled = max(known.filled_quantity, order.filled_quantity or known.executed_quantity)
    quantity = filled - known.filled_quantity
    if quantity <= 0:
        return None
    if execution and execution.quantity == quantity:
        value = quantity * execution.price
    elif order.average_price is not None and filled == order.filled_quantity:
        value = order.average_price * filled - known.filled_value
    else:
        value = quantity * (execution.price if execution else order.average_price or _ZERO)
    known.filled_quantity, known.filled_value = filled, known.filled_value + value
    known.changed = True
    return quantity, (value / quantity if value > 0 else None)


def _is_replacement(held: Held, known: BrokerOrder) -> bool:
    """Whether this order is the one that the unsettled REPLACE asked for."""
    command = held.command
    return command is not None and command.type == "REPLACE" and command.sequence == known.action_sequence


def _take_over(held: Held, known: BrokerOrder, order: Order, moment: datetime, filled: bool) -> bool:
    """Settle the REPLACE by what became of its order; False while that is open, or when it came to nothing."""
    if order.status is OrderStatus.REJECTED:
        apply_report(held, Report(Update.REPLACE_REJECTED, moment, reason_code="REPLACE_REJECTED"))
        _done(held)
        return False
    if order.status is OrderStatus.PENDING and not filled:
        return False
    _replaced(held, known, order.broker_order_id, moment)
    return True


def _replaced(held: Held, known: BrokerOrder, broker_order_id: str, moment: datetime) -> None:
    if held.command is None:
        return
    known.broker_order_id, known.changed = broker_order_id, True
    held.accepted_at, held.respecified = held.now, True
    apply_report(held, Report(Update.REPLACED, moment, broker_order_id=broker_order_id, spec=held.command.spec))
    _done(held)


def _accept(held: Held, order: Order, moment: datetime) -> None:
    if held.intent.broker_order_id is not None:
        return
    if order.status is OrderStatus.REJECTED:
        held.intent = replace(held.intent, broker_order_id=order.broker_order_id)
        return
    held.accepted_at = held.now
    if not apply_report(held, Report(Update.ACCEPTED, moment, broker_order_id=order.broker_order_id)):
        held.intent = replace(held.intent, broker_order_id=order.broker_order_id)
    if held.command and held.command.type == "CREATE":
        _done(held)


def _fill(held: Held, moment: datetime, filled: tuple[Decimal, Decimal | None], execution: Execution | None) -> None:
    quantity, price = filled
    whole = held.intent.filled_quantity + quantity >= held.intent.quantity
    update = Update.FILLED if whole else Update.PARTIALLY_FILLED
    report = Report(
        update,
        moment,
        execution_id=execution.id if execution else None,
        last_quantity=quantity,
        last_price=price,
        outcome=held.intent.outcome if held.intent.status not in TERMINAL and not whole else None,
    )
    if apply_report(held, report):
        held.events.insert(len(held.events) - 1, _trade(held, report))
        moved = quantity if held.intent.order_side == "BUY" else -quantity
        _move(held, moved=moved, stands=None, price=price)


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
        _done(held)
    elif told is Told.REPLACE_REJECTED and command and command.type == "REPLACE":
        apply_report(held, Report(Update.REPLACE_REJECTED, moment, reason_code="REPLACE_REJECTED"))
        _done(held)


def _replaced_by(held: Held, order: Order, moment: datetime) -> None:
    command = held.command
    if command and command.type == "REPLACE" and order.replaced_by:
        asked = next((one for one in held.orders.values() if one.action_sequence == command.sequence), None)
        if asked:
            _replaced(held, asked, order.replaced_by, moment)
    elif held.intent.status not in TERMINAL:
        # Somebody replaced it elsewhere: what it became is not what was asked for here.
        apply_report(held, Report(Update.CANCELED, moment, reason_code="REPLACED_ELSEWHERE"))


def apply_report(held: Held, report: Report) -> bool:
    """Let it act by the table of the life cycle, and tell it; False if it means nothing any more."""
    before = held.intent.status
    waited = held.intent.reason_code in PARKED  # a reason to wait, which is over
    after = reports.apply(replace(held.intent, reason_code=None) if waited else held.intent, report)
    if after is None:
        return False
    held.intent = after
    _tell(held, before, report)
    if after.status in TERMINAL:
        held.command, held.open_actions, held.submit_started_at = None, 0, None
    return True


def _done(held: Held) -> None:
    """The command is settled: the next one may start."""
    held.changed = True
    if held.command is None:
        return
    held.done_sequence, held.open_actions = held.command.sequence, held.open_actions - 1
    held.command, held.submit_started_at, held.attempts = None, None, 0
    held.next_attempt_at = held.now
    if held.intent.outcome:
        held.intent = replace(held.intent, outcome=None)


def _tell(held: Held, before: Status, report: Report) -> None:
    held.changed = True
    statuses = {"from_status": before, "to_status": held.intent.status}
    payload = reports.broker_order(held.intent, report)
    held.events.append(_event(held, "BROKER_ORDER", payload, report.occurred_at) | statuses)


def _trade(held: Held, report: Report) -> dict[str, Any]:
    payload = reports.broker_trade(held.intent, report)
    return _event(held, "BROKER_TRADE", payload, report.occurred_at) | {"execution_id": report.execution_id}


def _event(held: Held, type_: str, payload: dict[str, Any], moment: datetime) -> dict[str, Any]:
    return {"rank": held.rank, "type": type_, "payload": payload, "occurred_at": moment}


def _stands(held: Held, moment: datetime, execution: Execution) -> None:
    """Where the position stands, if the broker says so, whoever was first to tell of the fill."""
    stands = execution.position_quantity
    if stands is None:
        return
    _move(held, moved=_ZERO, stands=stands, price=execution.price)
    payload = {
        "symbol": held.intent.symbol,
        "quantity": format(stands, "f"),
        "last_price": format(execution.price, "f"),
    }
    held.events.append(_event(held, "BROKER_POSITION", payload, moment))


def _move(held: Held, *, moved: Decimal, stands: Decimal | None, price: Decimal | None) -> None:
    held.positions.append(
        {"rank": held.rank, "symbol": held.intent.symbol, "moved": moved, "stands": stands, "price": price}
    )
