"""Submitting one command: facts in one read, the decision in the model, everything it causes in one write."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple
from uuid import UUID

import control_rules
from chassis import crashpoints, tracing
from chassis.principals import Principal
from intents import model, store
from intents.store import Known
from intents.usecases.deps import Deps

ATTEMPTS = 5  # how often somebody else may get in between before the caller is told to try again


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


def submit(deps: Deps, principal: Principal, facts: model.Facts, submission: Submission) -> Result:
    """Append an action and queue its execution, if everything allows it."""
    account = model.tradable(facts.account, principal)
    actor = model.Actor(principal.kind, principal.id)
    try:
        result = _decide_until_written(deps, facts, account, actor, submission)
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
    deps.outbox.bell.ring()
    for action in actions:
        deps.hints.tell(action.account_id, action.sequence)


def _decide_until_written(
    deps: Deps, facts: model.Facts, account: model.Account, actor: model.Actor, submission: Submission
) -> Result:
    for _ in range(ATTEMPTS):
        try:
            if needs_order_facts(facts.controls) and not submission.dry_run:
                return _decide_alone(deps, account, actor, submission)
            return decide(deps, facts, account, actor, submission)
        except store.FactsChanged:
            facts, _keys = store.facts(deps.direct, submission.question)
    raise lost_race(submission)


def lost_race(submission: Submission) -> Exception:
    """Over a CREATE others can only be faster by its idempotency key: there is no intent yet."""
    is_new = isinstance(submission.command, model.Create)
    return model.IdempotentRequestInFlight() if is_new else model.IntentBusy()


def _decide_alone(deps: Deps, account: model.Account, actor: model.Actor, submission: Submission) -> Result:
    """Limits count what others do at the same time: so the account's writers take turns from reading to writing."""
    reference = submission.command.ref_intent_id
    results: list[Result] = []
    try:
        with deps.direct.transaction():
            store.lock(deps.direct, account.id, [reference] if reference else [])
            facts, _keys = store.facts(deps.direct, submission.question)
            results.append(decide(deps, facts, account, actor, submission))
    except store.Uncertain as error:
        ascertain(deps, results, error)
    return results[0]


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
