"""What an input makes of an intent. A verdict counts only under its lease; an order that was seen always counts."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta

from intents.execution.client_order_id import client_order_id
from intents.execution.model.commands import LeasedCommand
from intents.execution.model.inputs import BrokerReport, DispatchResult, ExecutionInput, OutOfReach, Resolution
from intents.execution.model.leg_adoption import adopt
from intents.execution.model.locked_intent import MISSING, LockedIntent
from intents.execution.model.order_reports import apply_order, end_if_replaced
from intents.execution.model.settlement import (
    DEFAULT_POLICY,
    QueryPolicy,
    Settlement,
    append_order_event,
    apply_report,
    complete_command,
)
from intents.execution.model.verdicts import (
    OPERATOR_REQUIRED,
    RESOLVED_BY_OPERATOR,
    Decided,
    LegFound,
    OrderFound,
    Rejected,
    Requested,
    RetryLater,
    Unknown,
    Verdict,
)
from intents.model import TERMINAL, Status, Update
from intents.model.reports import Report
from tip_brokers.protocol import Order, OrderStatus

_REJECTED = {"CREATE": Update.REJECTED, "REPLACE": Update.REPLACE_REJECTED, "CANCEL": Update.CANCEL_REJECTED}
_RESOLVED = _REJECTED | {"CREATE": Update.FAILED}


def settle(
    locked: LockedIntent, inputs: Iterable[tuple[int, ExecutionInput]], policy: QueryPolicy = DEFAULT_POLICY
) -> Settlement:
    """What the inputs make of the intent, in the order given; their rank keeps that order among several intents."""
    settlement = Settlement.begin(locked, policy)
    for settlement.rank, given in inputs:
        apply_input(settlement, given)
    return settlement


def apply_input(settlement: Settlement, given: ExecutionInput) -> None:
    match given:
        case DispatchResult():
            _apply_result(settlement, given)
        case Resolution():
            _apply_resolution(settlement, given)
        case OutOfReach():
            _apply_out_of_reach(settlement, given)
        case BrokerReport():
            _apply_broker_report(settlement, given)
    if settlement.command is None:
        end_if_replaced(settlement, settlement.now)


def _apply_broker_report(settlement: Settlement, report: BrokerReport) -> None:
    apply_order(settlement, report)
    waits_for_operator = settlement.intent.reason_code == OPERATOR_REQUIRED
    if report.is_current_state and settlement.command is None and waits_for_operator:
        _change_reason(settlement, None, "The order can be queried again.")


def _change_reason(settlement: Settlement, code: str | None, reason: str) -> None:
    """Show why the intent waits, or that it does no longer; its status stays."""
    settlement.intent = replace(settlement.intent, reason_code=code, updated_at=settlement.now)
    report = Report(Update.SUBMITTED, settlement.now, reason=reason)
    append_order_event(settlement, settlement.intent.status, report)


def _apply_result(settlement: Settlement, result: DispatchResult) -> None:
    leased, verdict, calls = result
    settlement.calls += calls
    if settlement.progress.lease_token != leased.lease_token:
        _apply_orders(settlement, _shown_by(verdict))  # another executor has the lease and decides
        return
    settlement.progress.lease_token = None
    command = settlement.command
    is_unsettled = command is not None and command.id == leased.action_id
    if isinstance(verdict, LegFound):
        _give_up_own(settlement, leased)
    if isinstance(verdict, LegFound) and is_unsettled:
        _apply_leg(settlement, verdict.order, leased)
    elif isinstance(verdict, (OrderFound, LegFound)):
        _apply_orders(settlement, _shown_by(verdict))
        if is_unsettled and settlement.command:
            _poll_again(settlement, leased)
    elif isinstance(verdict, Rejected):
        _apply_rejected(settlement, verdict, leased, is_unsettled)
    elif is_unsettled:
        _apply_unseen(settlement, verdict, leased)


def _apply_unseen(
    settlement: Settlement, verdict: Unknown | RetryLater | Requested | Decided, leased: LeasedCommand
) -> None:
    """A verdict without an order of the broker's. A leg that only a person can read is followed like any order."""
    if leased.adopted and isinstance(verdict, (Unknown, RetryLater)) and verdict.code == OPERATOR_REQUIRED:
        _give_up_own(settlement, leased)
        complete_command(settlement)
        return
    match verdict:
        case Unknown():
            _apply_unknown(settlement, verdict)
        case RetryLater():
            _apply_retry(settlement, verdict, leased)
        case Requested():
            _poll_again(settlement, leased)
        case Decided():
            _apply_decided(settlement, verdict, leased)


def _apply_leg(settlement: Settlement, leg: Order, leased: LeasedCommand) -> None:
    """It is adopted, and read once more; a leg that was adopted before it was read settles the command."""
    adopt(settlement, leg, settlement.orders.get(leased.client_order_id))
    if leased.adopted:
        complete_command(settlement)
    elif settlement.command:
        settlement.progress.submit_started_at, settlement.progress.absences = leased.started_before, 0
        _again(settlement, 0.0)


def _give_up_own(settlement: Settlement, leased: LeasedCommand) -> None:
    """There is no order under the client order id of the command, unless an earlier run has sent it."""
    if leased.started_before is None:
        settlement.unsent_orders.append(leased.client_order_id)
    else:
        _end_unseen(settlement, leased.client_order_id, MISSING)


def _shown_by(verdict: Verdict) -> tuple[Order, ...]:
    """The orders of the intent that the broker showed, the earlier ones first."""
    if isinstance(verdict, OrderFound):
        return (*verdict.others, verdict.order)
    if isinstance(verdict, LegFound):
        return (verdict.order,)
    return verdict.orders if isinstance(verdict, Rejected) else ()


def _apply_orders(settlement: Settlement, orders: Iterable[Order]) -> None:
    for order in orders:
        apply_order(settlement, BrokerReport(settlement.locked.account_id, order, order.updated_at))


def _apply_rejected(settlement: Settlement, rejected: Rejected, leased: LeasedCommand, is_unsettled: bool) -> None:
    if is_unsettled:
        # Rejected is the request of this run: one that was sent before may still be on its way.
        _end_unseen(settlement, leased.client_order_id, MISSING if leased.started_before else OrderStatus.REJECTED)
    _apply_orders(settlement, rejected.orders)
    if not is_unsettled or settlement.command is None:
        return
    update = _REJECTED[settlement.command.type]
    _complete(settlement, Report(update, settlement.now, reason_code=rejected.code, reason=rejected.reason))


def _apply_decided(settlement: Settlement, decided: Decided, leased: LeasedCommand) -> None:
    _give_up_own(settlement, leased)
    _complete(
        settlement,
        Report(
            decided.update,
            settlement.now,
            reason_code=decided.code,
            reason=decided.reason,
            reasons=decided.reasons,
        ),
    )


def _complete(settlement: Settlement, report: Report) -> None:
    apply_report(settlement, report)
    complete_command(settlement)


def _end_unseen(settlement: Settlement, key: str, status: str) -> None:
    """The end of an order that the broker has not shown. What is MISSING may surface: it is then shown and canceled."""
    known = settlement.orders.get(key)
    if known and known.broker_order_id is None:
        known.status = status


def _apply_resolution(settlement: Settlement, resolution: Resolution) -> None:
    command = settlement.command
    if command is None or client_order_id(command.id) != resolution.client_order_id:
        return
    settlement.progress.lease_token = None
    _end_unseen(settlement, resolution.client_order_id, MISSING)
    if resolution.leg:
        _apply_named_leg(settlement, resolution.leg, resolution.client_order_id)
        return
    update = Update.CANCELED if _cancels(settlement, command.type) else _RESOLVED[command.type]
    _complete(settlement, Report(update, settlement.now, reason_code=RESOLVED_BY_OPERATOR, reason=resolution.reason))


def _apply_named_leg(settlement: Settlement, leg: Order, own: str) -> None:
    """The leg that an operator has found, whose word is enough: it is not read once more."""
    if settlement.progress.submit_started_at is None:
        settlement.unsent_orders.append(own)
    adopt(settlement, leg, settlement.orders.get(own))
    complete_command(settlement)


def _apply_out_of_reach(settlement: Settlement, order: OutOfReach) -> None:
    """What becomes of the intent can only be found out by a person: it says so, once."""
    current, intent = settlement.current_order, settlement.intent
    is_current = current is not None and current.key == order.client_order_id
    if intent.status in TERMINAL or not is_current or intent.reason_code == OPERATOR_REQUIRED:
        return
    _change_reason(settlement, OPERATOR_REQUIRED, order.reason)


def _cancels(settlement: Settlement, command_type: str) -> bool:
    """A CREATE that never got through is canceled if a CANCEL came, and has failed otherwise."""
    return command_type == "CREATE" and settlement.intent.status is Status.PENDING_CANCEL


def _apply_unknown(settlement: Settlement, verdict: Unknown) -> None:
    progress, policy = settlement.progress, settlement.policy
    progress.attempts, progress.absences = 0, 0  # what was taken in or absent before no longer counts
    is_news = settlement.intent.outcome != "unknown"
    if verdict.seconds is not None or not is_news:
        _again(settlement, verdict.seconds or policy.every_seconds)
    else:
        started = progress.submit_started_at or settlement.now
        progress.next_attempt_at = max(settlement.now, started + timedelta(seconds=policy.first_after_seconds))
    if is_news or verdict.code != settlement.intent.reason_code:
        _show_unknown(settlement, verdict)


def _show_unknown(settlement: Settlement, verdict: Unknown) -> None:
    now, intent = settlement.now, settlement.intent
    report = Report(Update.SUBMITTED, now, outcome="unknown", reason_code=verdict.code, reason=verdict.reason)
    if not apply_report(settlement, report):
        settlement.intent = replace(intent, outcome="unknown", reason_code=verdict.code, updated_at=now)
        append_order_event(settlement, intent.status, report)


def _apply_retry(settlement: Settlement, verdict: RetryLater, leased: LeasedCommand) -> None:
    progress, intent = settlement.progress, settlement.intent
    progress.submit_started_at = leased.started_before  # as before this run, which sent nothing
    progress.absences = progress.absences + 1 if verdict.absent else 0
    progress.waiting_since = verdict.waiting_since
    canceled_meanwhile = intent.status is Status.PENDING_CANCEL and leased.status is not Status.PENDING_CANCEL
    _again(settlement, 0.0 if canceled_meanwhile else verdict.seconds)
    if verdict.code and intent.reason_code != verdict.code:
        _change_reason(settlement, verdict.code, verdict.reason)


def _again(settlement: Settlement, seconds: float) -> None:
    settlement.progress.next_attempt_at = settlement.now + timedelta(seconds=seconds)


def _poll_again(settlement: Settlement, leased: LeasedCommand) -> None:
    """The broker has it and is not done: it is polled soon, then less often. `attempts` counts these polls."""
    progress, policy = settlement.progress, settlement.policy
    progress.attempts = progress.attempts + 1 if leased.started_before else 1
    _again(settlement, min(policy.every_seconds, policy.poll_seconds * progress.attempts))
