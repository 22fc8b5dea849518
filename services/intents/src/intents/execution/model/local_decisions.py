"""What can be decided without the broker, by the facts of this moment: the account, its controls, the intent."""

from datetime import timedelta

from intents.execution.clock import elapsed
from intents.execution.model.commands import LeasedCommand
from intents.execution.model.verdicts import (
    ACCOUNT_NOT_FOUND,
    BROKER_CANNOT,
    CANCELED_BEFORE_SENT,
    ENTITLEMENT_REQUIRED,
    NOT_FOUND_AT_BROKER,
    NOT_REDUCING,
    OPERATOR_REQUIRED,
    POSITION_UNKNOWN,
    REFERENCE_PRICE_UNKNOWN,
    REPLACE_NOT_SENT,
    Decided,
    RetryLater,
    Unknown,
    Verdict,
)
from intents.model import (
    BrokerCannot,
    ControlRejected,
    Create,
    EntitlementRequired,
    HoldToTotal,
    NotReducing,
    OrderFactsNeeded,
    Refusal,
    Refused,
    Replace,
    Status,
    Update,
    decide_again,
)
from intents.model.groups import CHILDREN

FRESH_SECONDS = 1.0
"""How old the facts may be when the request is written. A control holds two seconds after it was answered: the other
second is for the way from this last check to the wire, on a machine that has too much to do."""
LONGEST_WAIT_SECONDS = 2.0
"""After which a claimed command that still waits for its turn is left to the next claim."""
GONE_SECONDS = 60.0
PRICE_SECONDS = 1.0  # until a command that lacks a price is decided again
OTHER_ACCOUNT_SECONDS = 0.1  # until the positions of the former account are discarded
CONTROL_SECONDS = 1.0  # until a child that controls hold back is decided again
UNREAD_SECONDS = 0.25  # until a command that lacks positions is decided again

TOO_OLD = RetryLater(0.0, "claimed_too_long_ago")
UNCOUNTED = RetryLater(0.0, "orders_not_counted")
OTHER_ACCOUNT = RetryLater(OTHER_ACCOUNT_SECONDS, "broker_account_changed")
UNREAD = RetryLater(
    UNREAD_SECONDS, "The account that the credential opens at the broker was not read yet.", POSITION_UNKNOWN
)


def is_fresh(command: LeasedCommand) -> bool:
    return elapsed() - command.snapshot.at <= FRESH_SECONDS


def decide_locally(command: LeasedCommand) -> Verdict | None:
    """What is settled without the broker, or None if it has to be sent."""
    if elapsed() - command.snapshot.at > LONGEST_WAIT_SECONDS:
        return TOO_OLD  # it waited for others
    if command.broker is None:
        return _account_gone(command)
    may_be_there = command.started_before or command.leader or command.adopted
    return None if may_be_there else not_to_be_sent(command)


def not_to_be_sent(command: LeasedCommand) -> Decided | RetryLater | None:
    """Why it must not go out now although it was accepted. A CANCEL always may: it only reduces risk."""
    if command.type == "CANCEL":
        return None
    if command.status is Status.PENDING_CANCEL:
        return _canceled(command)
    decision = _decided_again(command)
    if waits := _unread(command, decision):
        return waits
    if isinstance(decision, OrderFactsNeeded):
        return UNCOUNTED
    if decision is None:
        return _stale(command)
    return _unpriced(command, decision.error) or _delayed(command, decision.error) or _refused(command, decision.error)


def order_to_count(command: LeasedCommand) -> OrderFactsNeeded | None:
    """The order whose facts a limit or the state REDUCING needs, while they are not loaded."""
    if command.type == "CANCEL" or command.broker is None:
        return None
    decision = _decided_again(command)
    return decision if isinstance(decision, OrderFactsNeeded) else None


def _unread(command: LeasedCommand, decision: OrderFactsNeeded | Refused | None) -> Decided | RetryLater | None:
    """Positions of another account at the broker decide nothing: those of the command's own are waited for."""
    if command.is_of_other_account:
        return OTHER_ACCOUNT
    needs_positions = command.facts.has_order_facts or isinstance(decision, OrderFactsNeeded)
    return _stale(command) or UNREAD if command.awaits_reading and needs_positions else None


def _decided_again(command: LeasedCommand) -> OrderFactsNeeded | Refused | None:
    sender = None if command.is_own else command.owner
    return decide_again(command.facts, sender, _accepted(command), reduce_only=command.reduce_only)


def _accepted(command: LeasedCommand) -> Create | Replace | HoldToTotal:
    """The command as its submit had it."""
    if command.type == "CREATE":
        route, extended_hours = command.snapshot.route_strategy, command.snapshot.extended_hours
        return Create({}, command.symbol, command.order_side, route, command.spec, extended_hours=extended_hours)
    if command.is_own:
        return HoldToTotal(command.intent_id, 0)
    return Replace({}, command.intent_id, command.spec)


def _unpriced(command: LeasedCommand, error: Refusal) -> Decided | RetryLater | None:
    """A price that is too old by now does not refuse the command yet: it is waited for, unless it has been for long."""
    if not isinstance(error, ControlRejected) or error.missing_prices is None:
        return None
    if stale := _stale(command):
        return stale
    is_waiting = command.snapshot.reason_code == REFERENCE_PRICE_UNKNOWN
    since = max(command.snapshot.updated_at, command.submitted_at) if is_waiting else command.now
    if command.now - since >= command.price_wait:
        return None
    return RetryLater(PRICE_SECONDS, error.reasons[0]["message"], REFERENCE_PRICE_UNKNOWN)


def _delayed(command: LeasedCommand, error: Refusal) -> RetryLater | None:
    """Controls delay what closes the position of a filled parent; they do not take it away."""
    if not _is_child(command) or not isinstance(error, ControlRejected):
        return None
    return RetryLater(CONTROL_SECONDS, error.reasons[0]["message"], error.reasons[0]["code"])


def _is_child(command: LeasedCommand) -> bool:
    intent = command.facts.intent
    return command.type == "CREATE" and intent is not None and intent.group_role in CHILDREN


def _refused(command: LeasedCommand, error: Refusal) -> Decided:
    update = Update.DENIED if command.type == "CREATE" else Update.REPLACE_REJECTED
    if isinstance(error, ControlRejected):
        first = error.reasons[0]
        return Decided(update, first["code"], first["message"], tuple(error.reasons))
    if isinstance(error, BrokerCannot):
        return Decided(update, BROKER_CANNOT, error.problem["errors"][0]["message"])
    if isinstance(error, NotReducing):
        return Decided(update, NOT_REDUCING, "It would do more than close the position, which has changed.")
    if isinstance(error, EntitlementRequired):
        return Decided(update, ENTITLEMENT_REQUIRED, "The organization is no longer entitled to trade live.")
    return Decided(update, ACCOUNT_NOT_FOUND, "The account was deleted.")


def _stale(command: LeasedCommand) -> Decided | None:
    control = command.facts.controls.symbol_time if command.facts.controls else None
    if command.type != "CREATE" or control is None or control.stale_order_millis is None or _is_child(command):
        return None
    if command.now - command.created_at > timedelta(milliseconds=control.stale_order_millis):
        return Decided(Update.EXPIRED, "STALE_ORDER", "It was too old to be sent.")
    return None


def _canceled(command: LeasedCommand) -> Decided:
    if command.type == "REPLACE":
        return Decided(Update.REPLACE_REJECTED, REPLACE_NOT_SENT, "A CANCEL came before it was sent.")
    if command.started_before:
        return Decided(Update.CANCELED, NOT_FOUND_AT_BROKER, "It was canceled, and the broker does not have it.")
    return Decided(Update.CANCELED, CANCELED_BEFORE_SENT, "It was canceled before it was sent.")


def _account_gone(command: LeasedCommand) -> Verdict:
    if command.started_before or command.leader or command.adopted:
        return Unknown("The account was deleted while this was sent.", OPERATOR_REQUIRED, GONE_SECONDS)
    updates = {"CREATE": Update.DENIED, "REPLACE": Update.REPLACE_REJECTED, "CANCEL": Update.CANCEL_REJECTED}
    return Decided(updates[command.type], ACCOUNT_NOT_FOUND, "The account was deleted.")
