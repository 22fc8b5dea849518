"""Whether a command is accepted, and what it then becomes: facts in, an action out. Nothing is read here."""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import uuid4

import control_rules
from intents.model import errors
from intents.model.actions import Action, Actor, Change, Intent, State, leaves
from intents.model.groups import EXITS, SIBLINGS, waits_for_parent, waits_for_sibling
from intents.model.lifecycle import TERMINAL, Status, Update, follow
from intents.model.orders import Cancel, Command, Create, HoldToTotal, Replace
from intents.model.proposals import counted_quantity, created, replaced
from intents.model.submission import Caller
from intents.model.submit_facts import Account, SubmitFacts
from tip_brokers.capabilities import Capabilities, Inability, Replacement, Requested, inability

TRADING_LIVE = "trading_live"
MOST_REPLACEMENTS = 5  # of one intent by the platform; then the rest is canceled


_ANY_CREATE = control_rules.Command(
    control_rules.CommandType.CREATE, "", control_rules.OrderSide.SELL, Decimal(1), limit_price=None, stop_price=None
)


class Admission(NamedTuple):
    """An action that may be appended, and what it does to its intent."""

    action: Action
    change: Change


def tradable(account: Account | None, caller: Caller | None, command: Command | HoldToTotal | None = None) -> Account:
    """The account, if the caller may have the command done on it. The caller None is the platform, which always may.

    A CANCEL needs no entitlement: it only reduces risk. What cannot be read (None) may be anything, so it needs one.
    """
    if account is None or (caller and account.organization_id != caller.organization_id):
        raise errors.AccountNotFound
    if caller and account.environment != caller.environment:
        raise errors.Forbidden
    is_entitled = caller is None or account.environment != "live" or TRADING_LIVE in caller.entitlements
    if not is_entitled and not isinstance(command, Cancel):
        raise errors.EntitlementRequired(TRADING_LIVE)
    return account


def admit(
    facts: SubmitFacts, account: Account, actor: Actor, command: Command | HoldToTotal, reason: str | None = None
) -> Admission:
    """The action the command becomes, or the error that says why it does not."""
    if isinstance(command, Create):
        return _create(facts, account, actor, command, reason)
    if facts.intent is None:
        raise errors.IntentNotFound("No intent of this account has this ref_intent_id.")
    if facts.intent.status in TERMINAL:
        raise errors.IntentTerminal
    if isinstance(command, Replace):
        return _replace(facts, facts.intent, account, actor, command, reason)
    if isinstance(command, HoldToTotal):
        return _hold_to_total(facts, facts.intent, account, actor, command, reason)
    return _cancel(facts, facts.intent, account, actor, command, reason)


def refuse_what_broker_cannot(account: Account, command: Create | Replace, intent: Intent | None = None) -> None:
    """Raise for what would only come back from the broker as its refusal. `intent` is what is replaced."""
    if account.can is None:
        raise errors.BrokerCannot(
            "/command", "is not installed here: GET /v1/brokers lists those that are", account.broker
        )
    requested = Requested(
        command.spec.kind,
        command.spec.time_in_force,
        command.spec.quantity if command.spec.notional is None else None,
        command.symbol,
        command.route_strategy if isinstance(command, Create) else None,
        command.extended_hours if isinstance(command, Create) else intent is not None and intent.extended_hours,
    )
    if found := inability(account.can, requested) or _of_exit(account.can, command, intent):
        raise errors.BrokerCannot(f"/command/payload{found.pointer}", found.detail, account.broker)


def _of_exit(can: Capabilities, command: Create | Replace, intent: Intent | None) -> Inability | None:
    """Two exits that are one order at the broker have one time in force there, also after one of them is replaced."""
    if can.shared_exits or isinstance(command, Create) or intent is None or intent.group_role not in SIBLINGS:
        return None
    if command.spec.time_in_force == intent.spec.time_in_force:
        return None
    detail = f"keeps the time in force of orders that cancel each other, {intent.spec.time_in_force}"
    return Inability(f"/spec/{command.spec.kind}/time_in_force", detail)


def pass_controls(facts: SubmitFacts, command: Create | Replace | HoldToTotal) -> None:
    """Raise what the controls say against sending an accepted command, by the rules of its submit."""
    if isinstance(command, Create):
        _passed(facts, created(command))
    elif facts.intent is None:
        raise errors.IntentNotFound("The intent of this command is gone.")
    elif isinstance(command, Replace):
        _passed(facts, replaced(facts.intent, command.spec))
    elif _is_halted(facts):  # then the rest is canceled instead
        _passed(facts, replaced(facts.intent, facts.intent.spec))


def _create(facts: SubmitFacts, account: Account, actor: Actor, command: Create, reason: str | None) -> Admission:
    refuse_what_broker_cannot(account, command)
    passed, quantity = _passed(facts, created(command)), counted_quantity(facts, command)
    action = Action(
        id=uuid4(),
        intent_id=uuid4(),
        account_id=account.id,
        organization_id=account.organization_id,
        environment=account.environment,
        type=command.type,
        payload=command.payload,
        symbol=command.symbol,
        order_side=command.order_side,
        spec=command.spec.as_json,
        route_strategy=command.route_strategy,
        ref_intent_id=None,
        actor=actor,
        reason=reason,
        controls=passed,
        created_at=facts.now,
        state=State(Status.PENDING, Decimal(0), quantity, None, None, None, None, facts.now),
    )
    return Admission(action, Change(None, Status.PENDING, None, facts.now))


def _replace(
    facts: SubmitFacts, intent: Intent, account: Account, actor: Actor, command: Replace, reason: str | None
) -> Admission:
    if command.spec.kind != intent.spec.kind:
        raise errors.InvalidReplacement(
            "/command/payload/spec", "kind", f"must be {intent.spec.kind}, as the intent is"
        )
    if command.spec.form != intent.spec.form:
        pointer, wanted = f"/command/payload/spec/{command.spec.kind}", " and ".join(sorted(intent.spec.form))
        raise errors.InvalidReplacement(pointer, "form", f"must have {wanted}, as the intent has")
    if intent.spec.notional is not None:
        pointer, detail = f"/command/payload/spec/{command.spec.kind}/notional", "cannot be replaced: cancel the order"
        raise errors.InvalidReplacement(pointer, "notional", detail)
    if command.spec.quantity <= intent.filled_quantity:
        pointer = f"/command/payload/spec/{command.spec.kind}/quantity"
        raise errors.InvalidReplacement(pointer, "filled", "must be more than what is filled already")
    is_changing = intent.status in (Status.PENDING_REPLACE, Status.PENDING_CANCEL)
    if is_changing or waits_for_parent(intent) or waits_for_sibling(intent):
        raise errors.IntentBusy
    if intent.group_role in EXITS and command.spec.quantity != intent.quantity:
        pointer = f"/command/payload/spec/{command.spec.kind}/quantity"
        raise errors.InvalidReplacement(pointer, "group", f"must stay {intent.quantity:f}: it follows from the group")
    refuse_what_broker_cannot(account, command, intent)
    passed = _passed(facts, replaced(intent, command.spec))
    return _amend(facts, intent, account, actor, command, passed, reason)


def _cancel(
    facts: SubmitFacts, intent: Intent, account: Account, actor: Actor, command: Cancel, reason: str | None
) -> Admission:
    proposed = control_rules.Command(control_rules.CommandType.CANCEL)
    return _amend(facts, intent, account, actor, command, _passed(facts, proposed), reason)


def _hold_to_total(
    facts: SubmitFacts, intent: Intent, account: Account, actor: Actor, command: HoldToTotal, reason: str | None
) -> Admission:
    """Replace the order by one for what is left; cancel it where nothing may be sent, or was replaced too often.

    Like a CANCEL it only takes risk away, so that controls have no say in it. What closes the position of an order
    group is never canceled for this: it waits until it may be replaced.
    """
    cancel, is_exit = Cancel({"ref_intent_id": str(intent.id)}, intent.id), intent.group_role in EXITS
    if command.replacements >= MOST_REPLACEMENTS and not is_exit:
        return _cancel(facts, intent, account, actor, cancel, reason)
    if intent.status in (Status.PENDING_REPLACE, Status.PENDING_CANCEL):
        raise errors.IntentBusy
    replaces = account.can is None or account.can.replacement is not Replacement.NONE
    if is_exit and (not replaces or _is_halted(facts)):
        raise errors.IntentBusy
    if not replaces or _is_halted(facts) or intent.quantity <= intent.filled_quantity:
        return _cancel(facts, intent, account, actor, cancel, reason)
    payload = {"ref_intent_id": str(intent.id), "spec": intent.spec.as_json}
    passed = _passed(facts, control_rules.Command(control_rules.CommandType.CANCEL))
    return _amend(facts, intent, account, actor, Replace(payload, intent.id, intent.spec), passed, reason)


def _is_halted(facts: SubmitFacts) -> bool:
    switches = (facts.controls.organization_switch, facts.controls.account_switch) if facts.controls else ()
    return any(switch and switch.trading_state is control_rules.TradingState.HALTED for switch in switches)


_AGAINST_CLOSING = (control_rules.RefusalCode.TRADING_HALTED, control_rules.RefusalCode.KEY_SYMBOL_NOT_ALLOWED)


def refuse_closing(facts: SubmitFacts, symbol: str | None) -> None:
    """Raise what a closing order would be refused with because of a halt, or of the symbols of the caller's API key.

    Whatever else speaks against one is decided when it is submitted. Without a symbol it may be of any.
    """
    if facts.controls is None:
        raise errors.AccountNotFound
    decision = control_rules.evaluate(facts.controls, replace(_ANY_CREATE, symbol=symbol or "any symbol"), facts.now)
    found = [refusal for refusal in decision.refusals if refusal.code in _AGAINST_CLOSING]
    if found:
        reasons = [refusal._asdict() | {"code": str(refusal.code)} for refusal in found]
        raise errors.ControlRejected(reasons, symbol or "", facts.now)


def refuse_if_overloaded(facts: SubmitFacts, command: Command | HoldToTotal) -> None:
    """Raise for an order that would join a backlog that is too old. A CANCEL passes: it only reduces risk."""
    if facts.backlog and isinstance(command, (Create, Replace)):
        raise errors.Overloaded(facts.backlog)


def refuse_unless_reducing(facts: SubmitFacts, command: Command | HoldToTotal) -> None:
    """Raise unless the order, with the other open orders of its side, at most closes the position."""
    if not isinstance(command, Create) or facts.controls is None:
        return
    if control_rules.reduces(facts.controls, created(command)) is not True:
        raise errors.NotReducing


def _amend(
    facts: SubmitFacts,
    intent: Intent,
    account: Account,
    actor: Actor,
    command: Replace | Cancel,
    controls: Mapping[str, Any],
    reason: str | None = None,
) -> Admission:
    after = follow(intent.status, Update(command.type))
    if after is None:
        raise errors.IntentBusy
    action = Action(
        id=uuid4(),
        intent_id=intent.id,
        account_id=account.id,
        organization_id=account.organization_id,
        environment=account.environment,
        type=command.type,
        payload=command.payload,
        symbol=intent.symbol,
        order_side=intent.order_side,
        spec=command.spec.as_json if command.spec else None,
        route_strategy=intent.route_strategy,
        ref_intent_id=command.ref_intent_id,
        actor=actor,
        reason=reason,
        controls=controls,
        created_at=facts.now,
        state=State(
            after,
            intent.filled_quantity,
            leaves(intent.quantity, intent.filled_quantity, after, TERMINAL),
            intent.average_fill_price,
            intent.broker_order_id,
            intent.reason_code,
            intent.outcome,
            facts.now,
        ),
    )
    return Admission(action, Change(intent.status, after, intent.version, intent.created_at))


def _passed(facts: SubmitFacts, proposed: control_rules.Command) -> dict[str, Any]:
    """The controls as the action shows them, with the facts that decided, if they let the command pass."""
    if facts.controls is None:
        raise errors.AccountNotFound
    decision = control_rules.evaluate(facts.controls, proposed, facts.now)
    if decision.refusals:
        reasons = [refusal._asdict() | {"code": str(refusal.code)} for refusal in decision.refusals]
        missing = control_rules.missing_prices(decision, proposed)
        raise errors.ControlRejected(reasons, proposed.symbol, facts.now, proposed.side, missing)
    checks = [check._asdict() | {"outcome": str(check.outcome)} for check in decision.checks]
    passed = {"decision": str(decision.decision), "checks": checks}
    if proposed.type is control_rules.CommandType.CANCEL:  # which no fact decides
        return passed
    return passed | {"facts": control_rules.recorded(facts.controls, facts.now)}
