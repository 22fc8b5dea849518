"""From facts and a submission to what is to be written, answered or refused. Nothing is read here."""

from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple
from uuid import UUID

import control_rules
from intents.model.actions import Action
from intents.model.admission import (
    Admission,
    admit,
    pass_controls,
    refuse_if_overloaded,
    refuse_unless_reducing,
    refuse_what_broker_cannot,
    tradable,
)
from intents.model.errors import ClientIdTaken, IdempotencyKeyReused, Refusal
from intents.model.groups import Membership
from intents.model.lifecycle import Status
from intents.model.orders import Cancel, Command, Create, HoldToTotal, Replace
from intents.model.proposals import proposed
from intents.model.submission import Caller, IdempotencyKey, Submission
from intents.model.submit_facts import PriorResult, SubmitFacts


class KeyCharge(NamedTuple):
    """What an order takes of the budget of the API key that sends it, in the day that ends at `day_ends_at`.

    Where that is not the day which was read, it is the first order of a new one.
    """

    key_id: str
    notional: Decimal
    most: Decimal
    quantity: Decimal
    day_ends_at: datetime
    read_day_ends_at: datetime | None


class PendingAction(NamedTuple):
    """An admitted action that is to be written. `traceparent` is the trace context propagated downstream."""

    admission: Admission
    idempotency_key: IdempotencyKey | None
    traceparent: str | None
    request_id: str | None = None
    read_sequence: int | None = None
    """Where the account's log ended when its orders were counted: it is not written if the log has grown since."""
    charge: KeyCharge | None = None
    """It is not written either if the key's budget does not suffice for this any more."""
    member: Membership | None = None
    """Of the leg of an order group."""

    @property
    def action(self) -> Action:
        return self.admission.action

    @property
    def is_create(self) -> bool:
        return self.admission.change.before is None


class Append(NamedTuple):
    pending: PendingAction


class Replay(NamedTuple):
    """Answer as the earlier request with the same idempotency key was answered."""

    prior: PriorResult


class RepeatedCancel(NamedTuple):
    """Answer with the CANCEL that is pending already."""

    intent_id: UUID


class DryRun(NamedTuple):
    """Answer with the action that would have been appended."""

    action: Action


class OrderFactsNeeded(NamedTuple):
    """Limits or the state REDUCING apply: count the account's orders, then decide again."""

    symbol: str
    order_side: str
    of_key: bool = False
    """Whether the budget of the caller's API key is to be counted, too."""


class Refused(NamedTuple):
    error: Refusal


Decision = Append | Replay | RepeatedCancel | DryRun | OrderFactsNeeded | Refused


def decide(facts: SubmitFacts, submission: Submission) -> Decision:
    """What to write or to answer. A refusal is a value."""
    try:
        return _decide(facts, submission)
    except Refusal as error:
        return Refused(error)


def _decide(facts: SubmitFacts, submission: Submission) -> Decision:
    facts = with_key_bounds(facts, submission.key_bounds)
    account = tradable(facts.account, submission.caller, submission.command)
    key = submission.idempotency_key
    if facts.prior and key:
        return _replay(facts, facts.prior, key)
    if facts.client_id_holder:
        raise ClientIdTaken(facts.client_id_holder)
    if facts.intent and is_repeated_cancel(facts, submission.command):
        return RepeatedCancel(facts.intent.id)
    if submission.caller:
        refuse_if_overloaded(facts, submission.command)
    if order := _order_to_count(facts, submission.command, submission.reduce_only or has_budget(submission)):
        return order._replace(of_key=has_budget(submission))
    if submission.reduce_only:
        refuse_unless_reducing(facts, submission.command)
    admission = admit(facts, account, submission.actor, submission.command, submission.reason)
    if submission.dry_run:
        return DryRun(admission.action)
    charge = _charge(facts, submission)
    return Append(PendingAction(admission, key, submission.traceparent, submission.request_id, charge=charge))


def has_budget(submission: Submission) -> bool:
    return submission.key_bounds is not None and submission.key_bounds.max_notional_per_day is not None


def _charge(facts: SubmitFacts, submission: Submission) -> KeyCharge | None:
    """None if it takes nothing."""
    controls, command = facts.controls, submission.command
    bounds = controls.key_bounds if controls and has_budget(submission) else None
    if controls is None or bounds is None or isinstance(command, (Cancel, HoldToTotal)):
        return None
    notional = control_rules.key_charge(bounds, controls, proposed(facts, command), facts.now)
    if not notional or bounds.day_ends_at is None or bounds.max_notional_per_day is None:
        return None
    quantity, most = command.spec.quantity, bounds.max_notional_per_day
    return KeyCharge(submission.actor.id, notional, most, quantity, bounds.day_ends_at, facts.key_day_ends_at)


def with_key_bounds(facts: SubmitFacts, bounds: control_rules.KeyBounds | None) -> SubmitFacts:
    """The facts with what the caller's API key is bounded to, unless they have it with what was counted already."""
    if bounds is None or facts.controls is None or facts.controls.key_bounds:
        return facts
    return replace(facts, controls=replace(facts.controls, key_bounds=bounds))


def decide_again(
    facts: SubmitFacts, sender: Caller | None, command: Create | Replace | HoldToTotal, *, reduce_only: bool = False
) -> OrderFactsNeeded | Refused | None:
    """Why an accepted command may not be sent, by the rules of its submit and the facts of this moment."""
    try:
        tradable(facts.account, sender)
        needed = _order_to_count(facts, command, reduce_only)
        if needed is None:
            _refuse_what_broker_cannot(facts, command)
            pass_controls(facts, command)
            if reduce_only:
                refuse_unless_reducing(facts, command)
    except Refusal as error:
        return Refused(error)
    return needed


def _refuse_what_broker_cannot(facts: SubmitFacts, command: Create | Replace | HoldToTotal) -> None:
    """A broker that is gone may come back: what waits for it is kept."""
    if facts.account and facts.account.can and not isinstance(command, HoldToTotal):
        refuse_what_broker_cannot(facts.account, command, facts.intent)


def without_itself(facts: SubmitFacts, submitted_at: datetime) -> SubmitFacts:
    """The facts without the command that is decided again, which counts among the account's orders since then."""
    if facts.controls is None:
        return facts
    age, controls = facts.now - submitted_at, facts.controls
    account_orders, symbol_orders = controls.account_orders.without(age), controls.symbol_orders.without(age)
    return replace(facts, controls=replace(controls, account_orders=account_orders, symbol_orders=symbol_orders))


def _replay(facts: SubmitFacts, prior: PriorResult, key: IdempotencyKey) -> Replay:
    """A key of which another request was faster with the same client_id was taken, but made no intent."""
    if prior.request_hash != key.request_hash:
        raise IdempotencyKeyReused
    if facts.client_id_holder and facts.client_id_holder != prior.intent_id:
        raise ClientIdTaken(facts.client_id_holder)
    return Replay(prior)


def is_repeated_cancel(facts: SubmitFacts, command: Command | HoldToTotal) -> bool:
    """A CANCEL of an intent that is being cancelled already."""
    return isinstance(command, Cancel) and facts.intent is not None and facts.intent.status is Status.PENDING_CANCEL


def _order_to_count(
    facts: SubmitFacts, command: Command | HoldToTotal, always: bool = False
) -> OrderFactsNeeded | None:
    """Only what may add risk is counted; a CANCEL is never refused by limits."""
    needed = always or _is_by_notional(command) or _counts_orders(facts.controls)
    if facts.has_order_facts or not needed:
        return None
    if isinstance(command, Create):
        return OrderFactsNeeded(command.symbol, command.order_side)
    if isinstance(command, Replace) and facts.intent:
        return OrderFactsNeeded(facts.intent.symbol, facts.intent.order_side)
    return None


def _is_by_notional(command: Command | HoldToTotal) -> bool:
    """Such an order needs a price, whatever limits there are: by it the quantity is counted."""
    return isinstance(command, Create) and command.spec.notional is not None


def _counts_orders(controls: control_rules.Facts | None) -> bool:
    """Whether a limit or the state REDUCING needs more than is read for every command."""
    if controls is None:
        return False
    switches = (controls.organization_switch, controls.account_switch)
    reducing = any(switch and switch.trading_state is control_rules.TradingState.REDUCING for switch in switches)
    return reducing or bool(controls.account_limits or controls.symbol_limits)
