"""What an answer or an update makes of an intent: the decisions of execution, without a database or a broker."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta

from intents.brokers import Order, OrderStatus
from intents.execution.client_order_id import client_order_id
from intents.execution.model.commands import (
    OPERATOR_REQUIRED,
    Answer,
    Decided,
    Heard,
    Later,
    OutOfReach,
    Refused,
    Requested,
    Resolution,
    Seen,
    Unknown,
    Verdict,
    Work,
)
from intents.execution.model.locked_intent import ENDED, MISSING, Held
from intents.execution.model.order_reports import end_if_replaced, see
from intents.execution.model.settlement import apply_report, done, tell
from intents.model import TERMINAL, Status, Update
from intents.model.reports import Report

RESOLVED_BY_OPERATOR = "RESOLVED_BY_OPERATOR"
_REFUSED = {"CREATE": Update.REJECTED, "REPLACE": Update.REPLACE_REJECTED, "CANCEL": Update.CANCEL_REJECTED}
_RESOLVED = _REFUSED | {"CREATE": Update.FAILED}


def settle(held: Held, happenings: Iterable[Answer | Heard | Resolution | OutOfReach]) -> None:
    """Let everything that happened act on the intent, in the order given."""
    for happening in happenings:
        if isinstance(happening, Answer):
            _answered(held, happening)
        elif isinstance(happening, Resolution):
            _resolved(held, happening)
        elif isinstance(happening, OutOfReach):
            _out_of_reach(held, happening)
        else:
            _heard(held, happening)
        if held.command is None:
            end_if_replaced(held, held.now)
    held.changed = held.changed or any(order.changed for order in held.orders.values())


def _heard(held: Held, heard: Heard) -> None:
    moves = len(held.positions)
    see(held, heard.order, heard.occurred_at, heard.execution, heard.told, is_current_state=heard.is_current_state)
    if heard.position_known:
        del held.positions[moves:]
    if heard.is_current_state and held.command is None and held.intent.reason_code == OPERATOR_REQUIRED:
        held.intent = replace(held.intent, reason_code=None, updated_at=held.now)
        tell(held, held.intent.status, Report(Update.SUBMITTED, held.now, reason="The order can be queried again."))


def is_overordered(held: Held) -> bool:
    """Whether the order at the broker can fill more than the intent still asks for."""
    order = held.current_order
    if order is None or order.quantity is None or order.status in ENDED or held.intent.status in TERMINAL:
        return False
    return order.quantity - order.filled_quantity > held.intent.quantity - held.intent.filled_quantity


def _answered(held: Held, answer: Answer) -> None:
    work, verdict = answer
    if held.lease_token != work.lease_token:
        _see_all(held, _shown_by(verdict))  # another has taken over and decides; what was seen is seen
        return
    held.lease_token, held.changed = None, True
    open_still = held.command is not None and held.command.id == work.action_id
    if isinstance(verdict, Seen):
        _see_all(held, _shown_by(verdict))
        if open_still and held.command:
            _taken_in(held, work)
    elif isinstance(verdict, Refused):
        _refused(held, verdict, work, open_still)
    elif not open_still:
        return
    elif isinstance(verdict, Unknown):
        _unknown(held, verdict)
    elif isinstance(verdict, Later):
        _later(held, verdict, work)
    elif isinstance(verdict, Requested):
        _taken_in(held, work)
    elif isinstance(verdict, Decided):
        _decided(held, verdict, work)


def _shown_by(verdict: Verdict) -> tuple[Order, ...]:
    """The orders of the intent that the broker showed, the earlier ones first."""
    if isinstance(verdict, Seen):
        return (*verdict.others, verdict.order)
    return verdict.orders if isinstance(verdict, Refused) else ()


def _see_all(held: Held, orders: Iterable[Order]) -> None:
    for order in orders:
        see(held, order, order.updated_at)


def _refused(held: Held, refused: Refused, work: Work, open_still: bool) -> None:
    if open_still:
        # A refusal is of the request that it answers: one that was sent before may still be on its way.
        _end_unseen(held, work.client_order_id, MISSING if work.started_before else OrderStatus.REJECTED)
    _see_all(held, refused.orders)
    if not open_still or held.command is None:
        return
    update = _REFUSED[held.command.type]
    apply_report(held, Report(update, held.now, reason_code=refused.code, reason=refused.reason))
    done(held)


def _decided(held: Held, decided: Decided, work: Work) -> None:
    if work.started_before is None:
        held.unsent.append(work.client_order_id)
    else:
        _end_unseen(held, work.client_order_id, MISSING)
    apply_report(held, Report(decided.update, held.now, reason_code=decided.code, reason=decided.reason))
    done(held)


def _end_unseen(held: Held, client_order_id: str, status: str) -> None:
    """The end of an order that the broker has not shown. What is MISSING may surface, and is then told and canceled."""
    known = held.orders.get(client_order_id)
    if known and known.broker_order_id is None:
        known.status, known.changed = status, True


def _resolved(held: Held, resolution: Resolution) -> None:
    command = held.command
    if command is None or client_order_id(command.id) != resolution.client_order_id:
        return
    held.lease_token, held.changed = None, True
    _end_unseen(held, resolution.client_order_id, MISSING)
    update = Update.CANCELED if _cancels(held, command.type) else _RESOLVED[command.type]
    apply_report(held, Report(update, held.now, reason_code=RESOLVED_BY_OPERATOR, reason=resolution.reason))
    done(held)


def _out_of_reach(held: Held, order: OutOfReach) -> None:
    """What becomes of the intent can only be found out by a person: it says so, once."""
    current = held.current_order
    is_current = current is not None and current.name == order.client_order_id
    if held.intent.status in TERMINAL or not is_current or held.intent.reason_code == OPERATOR_REQUIRED:
        return
    held.intent = replace(held.intent, reason_code=OPERATOR_REQUIRED, updated_at=held.now)
    reason = "No credential opens the account at the broker where the order is."
    tell(held, held.intent.status, Report(Update.SUBMITTED, held.now, reason=reason))


def _cancels(held: Held, command_type: str) -> bool:
    """A CREATE that never got through is canceled if that was asked for, and has failed otherwise."""
    return command_type == "CREATE" and held.intent.status is Status.PENDING_CANCEL


def _unknown(held: Held, verdict: Unknown) -> None:
    held.attempts, held.absences = 0, 0  # what was taken in or absent before says nothing any more
    is_news = held.intent.outcome != "unknown"
    if verdict.seconds is not None or not is_news:
        _again(held, verdict.seconds or held.patience.ask_every_seconds)
    else:
        started = held.submit_started_at or held.now
        held.next_attempt_at = max(held.now, started + timedelta(seconds=held.patience.ask_after_seconds))
    if is_news or verdict.code != held.intent.reason_code:
        report = Report(Update.SUBMITTED, held.now, outcome="unknown", reason_code=verdict.code, reason=verdict.reason)
        if not apply_report(held, report):
            held.intent = replace(held.intent, outcome="unknown", reason_code=verdict.code, updated_at=held.now)
            tell(held, held.intent.status, report)


def _later(held: Held, verdict: Later, work: Work) -> None:
    held.submit_started_at = work.started_before  # as before this run, which sent nothing
    held.absences = held.absences + 1 if verdict.absent else 0
    canceled_meanwhile = held.intent.status is Status.PENDING_CANCEL and work.status is not Status.PENDING_CANCEL
    _again(held, 0.0 if canceled_meanwhile else verdict.seconds)
    if verdict.code and held.intent.reason_code != verdict.code:
        held.intent = replace(held.intent, reason_code=verdict.code, updated_at=held.now)
        tell(held, held.intent.status, Report(Update.SUBMITTED, held.now, reason=verdict.reason))


def _again(held: Held, seconds: float) -> None:
    held.next_attempt_at = held.now + timedelta(seconds=seconds)


def _taken_in(held: Held, work: Work) -> None:
    """The broker has it and is not done: it is looked at again soon, then less often. `attempts` counts these looks."""
    held.attempts = held.attempts + 1 if work.started_before else 1
    _again(held, min(held.patience.ask_every_seconds, held.patience.look_again_seconds * held.attempts))
