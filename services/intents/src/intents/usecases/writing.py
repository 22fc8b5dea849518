"""What every way to submit shares: deciding and writing in a transaction, and what follows its commit."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from chassis import crashpoints
from intents import model, store
from intents.model import Append, DryRun, OrderFactsNeeded, PendingAction, Refused, RepeatedCancel, Replay, Submission
from intents.store import FactsChanged, FactsQuery
from intents.usecases.deps import Deps
from intents.usecases.outcomes import Outcome, Result


def decide_and_write(
    tx: store.OpenTransaction, submission: Submission | Exception, *, count_orders: bool, price_max_age: timedelta
) -> Result:
    if isinstance(submission, Exception):
        raise submission
    facts, decision = decide(tx, submission, count_orders=count_orders, price_max_age=price_max_age)
    if isinstance(decision, Append):
        [action] = append(tx, [decision.pending])
        return result(action)
    return answer(tx, facts, decision, submission)


def decide(
    tx: store.OpenTransaction,
    submission: Submission,
    *,
    count_orders: bool,
    price_max_age: timedelta,
    judged_by: Callable[[model.SubmitFacts], model.SubmitFacts] = lambda facts: facts,
) -> tuple[model.SubmitFacts, model.Decision]:
    """By the facts of this moment, or what `judged_by` makes of them once orders are counted."""
    facts = store.load_facts(tx, FactsQuery.of(submission)).facts
    decision = model.decide(facts, submission)
    if count_orders and isinstance(decision, OrderFactsNeeded):
        facts = judged_by(counted(tx, facts, decision, submission, price_max_age))
        decision = model.decide(facts, submission)
    return facts, decision


def counted(
    tx: store.Transaction,
    facts: model.SubmitFacts,
    needed: OrderFactsNeeded,
    submission: Submission,
    price_max_age: timedelta,
) -> model.SubmitFacts:
    """The facts with all that limits, the state REDUCING and the budget of the caller's API key count."""
    found = store.with_order_facts(tx, facts, needed.symbol, needed.order_side, price_max_age)
    return store.with_key_budget(tx, found, submission) if needed.of_key else found


def append(tx: store.Transaction, pending: Sequence[PendingAction]) -> list[model.Action | None]:
    """Write what commits together. None where an idempotency key or a client_id was used meanwhile."""
    crashpoints.reach("intents.before_commit")
    if not pending[0].is_create:
        return [store.append_amendment(tx, pending[0])]
    if len({item.action.account_id for item in pending}) < len(pending):
        return store.append_creates_in_rounds(tx, pending)
    return store.append_creates(tx, pending)


def result(action: model.Action | None) -> Result:
    if action is None:
        raise FactsChanged
    return Result(action)


def answer(tx: store.Transaction, facts: model.SubmitFacts, decision: model.Decision, submission: Submission) -> Result:
    """Answer from what is already there."""
    if isinstance(decision, Refused):
        raise decision.error
    if isinstance(decision, DryRun):
        return Result(decision.action, created=False)
    if isinstance(decision, Replay):
        return _replayed(tx, submission.account_id, decision.prior)
    if isinstance(decision, RepeatedCancel):
        return _existing_cancel(tx, facts, decision.intent_id, submission)
    raise FactsChanged  # limits apply since a moment ago: they are counted under the account's lock


def _replayed(tx: store.Transaction, account_id: UUID, prior: model.PriorResult) -> Result:
    action = store.by_id(tx, account_id, prior.intent_id, prior.action_id)
    if action is None:
        raise FactsChanged
    return Result(replace(action, state=model.State.from_json(prior.state)), prior.created, replayed=True)


def _existing_cancel(
    tx: store.Transaction, facts: model.SubmitFacts, intent_id: UUID, submission: Submission
) -> Result:
    """The first CANCEL; with an idempotency key it is the answer from now on, whatever becomes of the intent."""
    action = store.last_cancel(tx, submission.account_id, intent_id)
    if action is None:
        raise FactsChanged
    if submission.idempotency_key and not submission.dry_run:
        store.remember(tx, action, submission.idempotency_key, facts.now)
    return Result(action, created=False)


def confirm(deps: Deps, results: Sequence[Result], error: Exception) -> None:
    """After a COMMIT that was not answered: one action of the transaction in the log proves all of it."""
    new = [result.action for result in results if result.is_new]
    if new:
        store.confirm_written(deps.connections.autocommit(), new[0])
    elif not all(result.replayed for result in results):
        raise model.OutcomeUnknown from error


def confirm_each(deps: Deps, actions: Sequence[model.Action]) -> list[Outcome]:
    """The same for actions of several callers, one by one. One attempt at a database that is away is enough."""
    outcomes: list[Outcome] = []
    for action in actions:
        unreachable = any(isinstance(outcome, model.OutcomeUnknown) and outcome.__cause__ for outcome in outcomes)
        outcomes.append(model.OutcomeUnknown() if unreachable else _confirmed(deps, action))
    return outcomes


def _confirmed(deps: Deps, action: model.Action) -> Outcome:
    try:
        return Result(store.confirm_written(deps.connections.autocommit(), action))
    except model.OutcomeUnknown as error:
        return error


def after_commit(deps: Deps, outcomes: Sequence[Outcome]) -> None:
    """Wake the executor, and publish the logs' new heads to the stream gateway."""
    results = [outcome for outcome in outcomes if isinstance(outcome, Result) and outcome.is_new]
    new = [action for result in results for action in (result.action, *result.legs)]
    if not new:
        return
    crashpoints.reach("intents.after_commit")
    deps.outbox.notifier.notify()
    for account_id, sequence in {action.account_id: action.sequence for action in new}.items():
        deps.hints.publish(account_id, sequence)


def record_refusal(deps: Deps, submission: Submission, refusal: model.ControlRejected) -> None:
    """Keep it and count it; the scheduler takes it to the log."""
    store.refuse(deps.connections.autocommit(), submission, refusal)
