"""Order groups are written like any command, with all their legs or not at all: one transaction decides each leg."""

from dataclasses import replace
from datetime import timedelta
from functools import partial
from uuid import uuid4

from intents import model, store
from intents.model import Append, Create, DryRun, PendingAction, Refused, Submission, groups
from intents.model.groups import Membership
from intents.usecases import writing
from intents.usecases.outcomes import Result


def group_of(submission: Submission | Exception) -> model.OrderGroup | None:
    command = None if isinstance(submission, Exception) else submission.command
    return command.group if isinstance(command, Create) else None


def decide_and_write(
    tx: store.OpenTransaction, submission: Submission | Exception, *, count_orders: bool, price_max_age: timedelta
) -> Result:
    """As `writing` does it, and a group with all its legs. A dry run takes no lock and still counts orders."""
    if isinstance(submission, Submission) and isinstance(submission.command, Create) and submission.command.group:
        return _write_group(tx, submission, submission.command, submission.command.group, price_max_age)
    return writing.decide_and_write(tx, submission, count_orders=count_orders, price_max_age=price_max_age)


def _write_group(
    tx: store.OpenTransaction,
    submission: Submission,
    command: Create,
    group: model.OrderGroup,
    price_max_age: timedelta,
) -> Result:
    """The first leg has the idempotency key and the client_id: what answers for it answers for all."""
    facts, decision = writing.decide(tx, submission, count_orders=True, price_max_age=price_max_age)
    if not isinstance(decision, (Append, DryRun)):
        first, *_ = groups.members(group, uuid4())
        return writing.answer(tx, facts, _at_leg(decision, group, first), submission)
    paired = groups.are_paired(facts.account, command, group)
    first, *others = groups.members(group, uuid4(), paired=paired)
    action = _written(tx, decision, first)
    if not submission.dry_run:
        store.insert_group(tx, action, first.group_id, group.kind, paired)
    legs = [_write_leg(tx, submission, command, group, member, price_max_age) for member in others]
    return Result(action, created=not submission.dry_run, legs=tuple(legs))


def _write_leg(
    tx: store.OpenTransaction,
    submission: Submission,
    command: Create,
    group: model.OrderGroup,
    member: Membership,
    price_max_age: timedelta,
) -> model.Action:
    leg = replace(submission, command=groups.leg_command(command, group, member), idempotency_key=None)
    judged_by = partial(groups.as_if_filled, command=command, member=member, is_counted=not submission.dry_run)
    _, decision = writing.decide(tx, leg, count_orders=True, price_max_age=price_max_age, judged_by=judged_by)
    if isinstance(decision, (Append, DryRun)):
        return _written(tx, decision, member)
    decision = _at_leg(decision, group, member)
    raise decision.error if isinstance(decision, Refused) else store.FactsChanged


def _written(tx: store.OpenTransaction, decision: Append | DryRun, member: Membership) -> model.Action:
    if isinstance(decision, DryRun):
        return groups.as_member(decision.action, member)
    [action] = writing.append(tx, [as_leg(decision.pending, member)])
    return writing.result(action).action


def as_leg(pending: PendingAction, member: Membership) -> PendingAction:
    admission = pending.admission._replace(action=groups.as_member(pending.action, member))
    return pending._replace(admission=admission, member=member)


def _at_leg(decision: model.Decision, group: model.OrderGroup, member: Membership) -> model.Decision:
    """A refusal with pointers into the spec of the group."""
    if not isinstance(decision, Refused) or not isinstance(decision.error, model.BrokerCannot):
        return decision
    return Refused(decision.error.within("/command/payload/spec", groups.pointer(group, member.role)))
