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
from intents.usecases.deadline import Deadline
from intents.usecases.deps import Deps

ATTEMPTS = 5  # how often somebody else may be faster with the same idempotency key


@dataclass(frozen=True, slots=True)
class Submission:
    """A command and how it is to be treated. `idempotency_key` makes a repeated request answer as the first did."""

    account_id: UUID
    command: model.Command
    idempotency_key: model.IdempotencyKey | None = None
    dry_run: bool = False

    @property
    def query(self) -> store.FactsQuery:
        key = self.idempotency_key.key if self.idempotency_key else None
        return store.FactsQuery(self.account_id, self.command.symbol, self.command.ref_intent_id, key)


class Result(NamedTuple):
    """`created` is False for a repeated CANCEL and a dry run; `replayed` is what an earlier request was answered."""

    action: model.Action
    created: bool = True
    replayed: bool = False

    @property
    def is_new(self) -> bool:
        """Whether the log has grown by it just now."""
        return self.created and not self.replayed


def load_facts(deps: Deps, query: store.FactsQuery) -> store.LoadedFacts:
    """What must be known of a request to decide it, and the keys that could be its caller's: one read."""
    return store.load_facts(deps.connections.autocommit(), query)


def submit(
    deps: Deps, principal: Principal, facts: model.SubmitFacts, submission: Submission, deadline: Deadline
) -> Result:
    """Append an action and queue its execution, if everything allows it. A batch has one deadline for all of it."""
    account = model.tradable(facts.account, principal)
    actor = model.Actor(principal.kind, principal.id)
    try:
        result = _decide_until_written(deps, facts, account, actor, submission, deadline)
    except model.ControlRejected as refusal:
        if not submission.dry_run:
            store.refuse(deps.connections.autocommit(), account, actor, submission.command, refusal)
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
    facts: model.SubmitFacts,
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
            facts = load_facts(deps, submission.query).facts
    raise model.IdempotentRequestInFlight  # under lock, only who has the same key can be faster


def _is_create(submission: Submission) -> bool:
    """Of which there is no intent yet that others could change, or that could be locked."""
    return isinstance(submission.command, model.Create)


def _decide_unlocked(
    deps: Deps, facts: model.SubmitFacts, account: model.Account, actor: model.Actor, submission: Submission
) -> Result:
    pending: list[store.PendingAction] = []
    try:
        decided = decide(deps.connections.autocommit(), facts, account, actor, submission)
        if isinstance(decided, Result):
            return decided
        pending.append(decided)
        return Result(_append_alone(deps, decided))
    except store.CommitOutcomeUnknown as error:
        if not pending:
            raise model.OutcomeUnknown from error
        return Result(store.confirm_written(deps.connections.autocommit(), pending[0].action))
    except exc.OperationalError as error:
        if _is_create(submission) or not db.is_lock_timeout(error):
            raise
        raise store.FactsChanged from error  # under lock it may wait for longer


def _append_alone(deps: Deps, pending: store.PendingAction) -> model.Action:
    """In a transaction of its own. An amendment that finds another version must take back the key it has inserted."""
    crashpoints.reach("intents.before_commit")
    if pending.admission.change.before is None:
        return append(deps.connections.autocommit(), pending)
    with deps.connections.begin() as tx:
        return store.append_amendment(tx, pending)


def append(tx: store.Transaction, pending: store.PendingAction) -> model.Action:
    """Write a CREATE."""
    [action] = store.append_creates(tx, [pending])
    if action is None:
        raise store.FactsChanged
    return action


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
        with deps.connections.begin() as tx:
            lock(tx, account, [reference] if reference else [], deadline, whole_account=whole_account)
            facts = store.load_facts(tx, submission.query).facts
            if needs_order_facts(facts.controls) and not whole_account:
                raise store.FactsChanged
            results.append(decide_and_append(tx, facts, account, actor, submission))
    except store.CommitOutcomeUnknown as error:
        ascertain(deps, results, error)
    return results[0]


def lock(
    tx: store.OpenTransaction,
    account: model.Account,
    intent_ids: Sequence[UUID],
    deadline: Deadline,
    *,
    whole_account: bool = True,
) -> None:
    """Take the intents, and the account after them, waiting no longer than the request may: else it is an outage."""
    tx.limit_lock_wait(deadline.left_s)
    store.lock_intents(tx, account.id, intent_ids)
    tx.limit_lock_wait(deadline.left_s)
    if whole_account:
        store.lock_account(tx, account)


def ascertain(deps: Deps, results: Sequence[Result], error: Exception) -> None:
    """After a COMMIT that nobody answered: one action of the transaction in the log proves all of it."""
    new = [result.action for result in results if result.is_new]
    if new:
        store.confirm_written(deps.connections.autocommit(), new[0])
    elif not all(result.replayed for result in results):
        raise model.OutcomeUnknown from error


def decide_and_append(
    tx: store.OpenTransaction,
    facts: model.SubmitFacts,
    account: model.Account,
    actor: model.Actor,
    submission: Submission,
) -> Result:
    decided = decide(tx, facts, account, actor, submission)
    if isinstance(decided, Result):
        return decided
    crashpoints.reach("intents.before_commit")
    is_new = decided.admission.change.before is None
    return Result(append(tx, decided) if is_new else store.append_amendment(tx, decided))


def decide(
    tx: store.Transaction,
    facts: model.SubmitFacts,
    account: model.Account,
    actor: model.Actor,
    submission: Submission,
) -> Result | store.PendingAction:
    """Answer from what is already there, or admit."""
    if facts.prior and submission.idempotency_key:
        return _replayed(tx, account, facts.prior, submission.idempotency_key)
    if model.is_repeated_cancel(submission.command, facts.intent):
        return _existing_cancel(tx, facts, account, submission)
    admission = model.admit(_complete(tx, facts, submission), account, actor, submission.command)
    if submission.dry_run:
        return Result(admission.action, created=False)
    return store.PendingAction(admission, submission.idempotency_key, tracing.traceparent())


def _complete(tx: store.Transaction, facts: model.SubmitFacts, submission: Submission) -> model.SubmitFacts:
    subject = submission.command if isinstance(submission.command, model.Create) else facts.intent
    if subject is None or not needs_order_facts(facts.controls):
        return facts
    return store.with_order_facts(tx, facts, subject.symbol, subject.order_side)


def needs_order_facts(controls: control_rules.Facts | None) -> bool:
    """Whether a limit or the state REDUCING asks for more than is read of every command."""
    if controls is None:
        return False
    switches = (controls.organization_switch, controls.account_switch)
    reducing = any(one and one.trading_state is control_rules.TradingState.REDUCING for one in switches)
    return reducing or bool(controls.account_limits or controls.symbol_limits)


def _replayed(
    tx: store.Transaction, account: model.Account, prior: model.PriorResult, key: model.IdempotencyKey
) -> Result:
    if prior.request_hash != key.request_hash:
        raise model.IdempotencyKeyReused
    action = store.by_id(tx, account.id, prior.intent_id, prior.action_id)
    if action is None:
        raise store.FactsChanged
    return Result(replace(action, state=model.State.from_json(prior.state)), prior.created, replayed=True)


def _existing_cancel(
    tx: store.Transaction, facts: model.SubmitFacts, account: model.Account, submission: Submission
) -> Result:
    """The first CANCEL; with an idempotency key it is the answer from now on, whatever becomes of the intent."""
    if submission.command.ref_intent_id is None:
        raise model.IntentNotFound
    action = store.last_cancel(tx, account.id, submission.command.ref_intent_id)
    if action is None:
        raise store.FactsChanged
    if submission.idempotency_key and not submission.dry_run:
        store.remember(tx, action, submission.idempotency_key, facts.now)
    return Result(action, created=False)
