"""What can be decided without the broker, by what is known of halts, cancels and age at this moment."""

from datetime import timedelta

from intents.execution.clock import elapsed
from intents.execution.model.commands import LeasedCommand
from intents.execution.model.verdicts import (
    CANCELED_BEFORE_SENT,
    NOT_FOUND_AT_BROKER,
    OPERATOR_REQUIRED,
    REPLACE_NOT_SENT,
    Decided,
    RetryLater,
    Unknown,
    Verdict,
)
from intents.model import Status, Update

FRESH_SECONDS = 1.0
"""How old what is known of halts and cancels may be when the request is written. A halt holds two seconds after it was
answered: the other second is for the way from this last check to the wire, on a machine that has too much to do."""
LONGEST_WAIT_SECONDS = 2.0
"""After which a claimed command that still waits for its turn is left to the next claim."""
GONE_SECONDS = 60.0

TOO_OLD = RetryLater(0.0, "claimed_too_long_ago")


def is_fresh(command: LeasedCommand) -> bool:
    return elapsed() - command.snapshot.at <= FRESH_SECONDS


def decide_locally(command: LeasedCommand) -> Verdict | None:
    """What is settled without the broker, or None if it has to be sent."""
    if elapsed() - command.snapshot.at > LONGEST_WAIT_SECONDS:
        return TOO_OLD  # it waited for others
    if command.broker is None:
        return _account_gone(command)
    return None if command.started_before else not_to_be_sent(command)


def not_to_be_sent(command: LeasedCommand) -> Decided | None:
    """Why it must not go out now although it was accepted. A CANCEL always may: it only reduces risk."""
    if command.type == "CANCEL":
        return None
    if command.status is Status.PENDING_CANCEL:
        return _canceled(command)
    if command.halted_by:
        update = Update.DENIED if command.type == "CREATE" else Update.REPLACE_REJECTED
        return Decided(update, "TRADING_HALTED", f"The {command.halted_by} was halted before it was sent.")
    if command.type == "CREATE" and command.stale_millis is not None:
        age = command.now - command.created_at
        if age > timedelta(milliseconds=command.stale_millis):
            return Decided(Update.EXPIRED, "STALE_ORDER", "It was too old to be sent.")
    return None


def _canceled(command: LeasedCommand) -> Decided:
    if command.type == "REPLACE":
        return Decided(Update.REPLACE_REJECTED, REPLACE_NOT_SENT, "A CANCEL came before it was sent.")
    if command.started_before:
        return Decided(Update.CANCELED, NOT_FOUND_AT_BROKER, "It was canceled, and the broker does not have it.")
    return Decided(Update.CANCELED, CANCELED_BEFORE_SENT, "It was canceled before it was sent.")


def _account_gone(command: LeasedCommand) -> Verdict:
    if command.started_before:
        return Unknown("The account was deleted while this was sent.", OPERATOR_REQUIRED, GONE_SECONDS)
    updates = {"CREATE": Update.DENIED, "REPLACE": Update.REPLACE_REJECTED, "CANCEL": Update.CANCEL_REJECTED}
    return Decided(updates[command.type], "ACCOUNT_NOT_FOUND", "The account was deleted.")
