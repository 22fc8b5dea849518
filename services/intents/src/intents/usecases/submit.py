"""Submitting one command: facts in one read, the decision in the model, everything it causes in one write."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import exc

import control_rules
from chassis import crashpoints, db, tracing
from chassis.principals import Principal
from intents import model, store
from intents.store import Known
from intents.usecases.deadline import Deadline
from intents.usecases.deps import Deps

ATTEMPTS = 5  # how often somebody else may be faster with the same idempotency key


@dataclass(frozen=True, slots=True)
class Submission:
    """A command and how it is to be treated. `once` makes a repeated request answer as the first did."""

    account_id: UUID
    command: model.Command
    once: store.Once | None = None
    dry_run: bool = False

    @property
    def question(self) -> store.Question:
        key = self.once.key if self.once else None
        return store.Question(self.account_id, self.command.symbol, self.command.ref_intent_id, key)


class Result(NamedTuple):
    """`created` is False for a repeated CANCEL and a dry run; `replayed` is what an earlier request was answered."""

    action: model.Action
    created: bool = True
    replayed: bool = False

    @property
    def is_new(self) -> bool:
        """Whether the log has grown by it just now."""
        return self.created and not self.replayed


def look(deps: Deps, question: store.Question) -> Known:
    """What must be known of a request to decide it, and the keys that could be its caller's: one read."""
    return store.facts(deps.direct, question)


def submit(deps: Deps, principal: Principal, facts: model.Facts, submission: Submission, deadline: Deadline) -> Result:
    """Append an action and queue its execution, if everything allows it. A batch has one deadline for all of it."""
    account = model.tradable(facts.account, principal)
    actor = model.Actor(principal.kind, principal.id)
    try:
        result = _decide_until_written(deps, facts, account, actor, submission, deadline)
    except model.ControlRejected as refusal:
        if not submission.dry_run:
            store.refuse(deps.direct, account, actor, submission.command, refusal)
        raise
    if result.is_new:
        crashpoints.reach("intents.after_commit")
        announce(deps, result.action)
    return result


def announce(deps: Deps, *actions: model.Action) -> None:
    """After the commit: wake the executor, and tell the stream gateway how far the logs have come."""
    deps.outbox.notifier.notify()
    for action in actions:
        deps.hints.publish(action.account_id, action.sequence)


def _decide_until_written(
    deps: Deps,
    facts: model.Facts,
    account: model.Account,
    actor: model.Actor,
    submission: Submission,
    deadline: Deadline,
) -> Result:
    """Decide by what was read before; whoever loses a race over an intent decides again under its lock."""
    lost_race = False
    for _ in range(ATTEMPTS):
        limited = needs_order_facts(facts.controls)
        try:
            if submission.dry_run or not (limited or (lost_race and not _is_create(submission))):
                return _decide_unlocked(deps, facts, account, actor, submission)
            return _decide_locked(deps, account, actor, submission, deadline, whole_account=limited)
        except store.FactsChanged:
            lost_race = True
            facts, _keys = store.facts(deps.direct, submission.question)
    raise model.IdempotentRequestInFlight  # under lock, only who has the same key can be faster


def _is_create(submission: Submission) -> bool:
    """Of which there is no intent yet that others could change, or that could be locked."""
    return isinstance(submission.command, model.Create)


def _decide_unlocked(
    deps: Deps, facts: model.Facts, account: model.Account, actor: model.Actor, submission: Submission
) -> Result:
    try:
        return decide(deps, facts, account, actor, submission)
    except exc.OperationalError as error:
        if _is_create(submission) or not db.is_lock_timeout(error):
            raise
        raise store.FactsChanged from error  # under lock it may wait for longer


def _decide_locked(
    deps: Deps,
    account: model.Account,
    actor: model.Actor,
    submission: Submission,
    deadline: Deadline,
    *,
    whole_account: bool,
) -> Result:
    """From reading to writing nobody else changes the intent.

    Limits count what others do on the account at the same time: with them all its writers take turns.
    """
    reference = submission.command.ref_intent_id
    results: list[Result] = []
    try:
        with deps.direct.transaction():
            lock(deps, account, [reference] if reference else [], deadline, whole_account=whole_account)
            facts, _keys = store.facts(deps.direct, submission.question)
            if needs_order_facts(facts.controls) and not whole_account:
                raise store.FactsChanged
            results.append(decide(deps, facts, account, actor, submission))
    except store.Uncertain as error:
        ascertain(deps, results, error)
    return results[0]


def lock(
    deps: Deps, account: model.Account, intent_ids: Sequence[UUID], deadline: Deadline, *, whole_account: bool = True
) -> None:
    """Take the intents, and the account after them, waiting no longer than the request may: else it is an outage."""
    deps.direct.limit_lock_wait(deadline.left_s)
    store.lock_intents(deps.direct, account.id, intent_ids)
    deps.direct.limit_lock_wait(deadline.left_s)
    if whole_account:
        store.lock_account(deps.direct, account)


def ascertain(deps: Deps, results: Sequence[Result], error: Exception) -> None:
    """After a COMMIT that nobody answered: one action of the transaction in the log proves all of it."""
    new = [result.action for result in results if result.is_new]
    if new:
        store.written(deps.direct, new[0])
    elif not all(result.replayed for result in results):
        raise model.OutcomeUnknown from error


def decide(
    deps: Deps, facts: model.Facts, account: model.Account, actor: model.Actor, submission: Submission
) -> Result:
    """Answer from what is already there, or admit and append."""
    if facts.earlier and submission.once:
        return _replayed(deps, account, facts.earlier, submission.once)
    if model.is_repeated_cancel(submission.command, facts.intent):
        return _existing_cancel(deps, facts, account, submission)
    admission = model.admit(_complete(deps, facts, submission), account, actor, submission.command)
    if submission.dry_run:
        return Result(admission.action, created=False)
    crashpoints.reach("intents.before_commit")
    return Result(store.append(deps.direct, store.New(admission, submission.once, tracing.traceparent())))


def _complete(deps: Deps, facts: model.Facts, submission: Submission) -> model.Facts:
    subject = submission.command if isinstance(submission.command, model.Create) else facts.intent
    if subject is None or not needs_order_facts(facts.controls):
        return facts
    return store.with_order_facts(deps.direct, facts, subject.symbol, subject.order_side)


def needs_order_facts(controls: control_rules.Facts | None) -> bool:
    """Whether a limit or the state REDUCING asks for more than is read of every command."""
    if controls is None:
        return False
    switches = (controls.organization_switch, controls.account_switch)
    reducing = any(one and one.trading_state is control_rules.TradingState.REDUCING for one in switches)
    return reducing or bool(controls.account_limits or controls.symbol_limits)


def _replayed(deps: Deps, account: model.Account, earlier: model.Earlier, once: store.Once) -> Result:
    if earlier.request_hash != once.request_hash:
        raise model.IdempotencyKeyReused
    action = store.by_id(deps.direct, account.id, earlier.intent_id, earlier.action_id)
    if action is None:
        raise store.FactsChanged
    return Result(replace(action, state=model.State.from_json(earlier.state)), earlier.created, replayed=True)


def _existing_cancel(deps: Deps, facts: model.Facts, account: model.Account, submission: Submission) -> Result:
    """The first CANCEL; with an idempotency key it is the answer from now on, whatever becomes of the intent."""
    if submission.command.ref_intent_id is None:
        raise model.IntentNotFound
    action = store.last_cancel(deps.direct, account.id, submission.command.ref_intent_id)
    if action is None:
        raise store.FactsChanged
    if submission.once and not submission.dry_run:
        store.remember(deps.direct, action, submission.once, facts.now)
    return Result(action, created=False)
