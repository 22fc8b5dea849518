"""The only way an action gets into the log: facts in one read, the decision in the model, one write.

Three policies, one path. EACH: every submission by itself, as long as its request may wait. ATOMIC: all of one account
in one transaction, or none. COALESCED: those of many callers in one write that hardly waits; what would have to wait
is deferred to its own thread.
"""

import time
from collections.abc import Sequence

from prometheus_client import Counter
from sqlalchemy import exc

from chassis import db
from intents import model, store
from intents.model import Append, OrderFactsNeeded, PendingAction, Submission
from intents.store import CommitOutcomeUnknown, FactsChanged, FactsQuery
from intents.usecases import group_writing, writing
from intents.usecases.coalesced import submit_coalesced
from intents.usecases.deadline import Deadline
from intents.usecases.decision_log import log_decisions
from intents.usecases.deps import Deps
from intents.usecases.outcomes import Outcome, PendingSubmit, Policy, Result, SiblingRefused
from intents.usecases.prices import PriceWait
from intents.usecases.rests import MOST_REST_S, NO_RESTS, Rests

ATTEMPTS = 5  # how often another request may be faster with the same idempotency key
OWN_LOCK_WAIT_S = 1.0
OVERLOADED = Counter("tip_overloaded_total", "Commands refused because others wait too long, by whose.", ["backlog"])


def submit(
    deps: Deps,
    pending: Sequence[PendingSubmit],
    policy: Policy,
    deadline: Deadline | None = None,
    *,
    leaves_room: bool = False,
) -> list[Outcome]:
    """Decide and write; one outcome per submission, at its place. Raises only what concerns the whole batch.

    Those that are written each by itself leave room for others between them, if they are to.
    """
    deadline = deadline or Deadline.of_request()
    if policy is Policy.COALESCED:
        outcomes = submit_coalesced(deps, pending)
    elif policy is Policy.ATOMIC:
        outcomes = _atomic(deps, pending, deadline)
    elif leaves_room:
        later = deadline._replace(at=deadline.at + MOST_REST_S)
        outcomes = _each(deps, pending, later, Rests.among(len(pending)))
    else:
        outcomes = _each(deps, pending, deadline, NO_RESTS)
    for outcome in outcomes:
        if isinstance(outcome, model.Overloaded):
            OVERLOADED.labels(outcome.problem["backlog"]).inc()
    log_decisions(pending, outcomes)
    return outcomes


def submit_own(deps: Deps, submission: Submission, lock_wait_s: float = OWN_LOCK_WAIT_S) -> model.Action | None:
    """Append a command of the platform itself. None if something else is happening to the intent right now."""
    [outcome] = submit(deps, [PendingSubmit(submission)], Policy.EACH, Deadline.after(lock_wait_s))
    if isinstance(outcome, Result):
        return outcome.action if outcome.is_new else None
    if isinstance(outcome, (model.Refusal, model.OutcomeUnknown)) or db.is_lock_timeout(outcome):
        return None
    raise outcome


def load_facts(deps: Deps, query: FactsQuery) -> store.LoadedFacts:
    return store.load_facts(deps.connections.autocommit(), query)


def load_facts_many(deps: Deps, queries: Sequence[FactsQuery]) -> list[store.LoadedFacts]:
    return store.load_facts_many(deps.connections.autocommit(), queries)


def _each(deps: Deps, pending: Sequence[PendingSubmit], deadline: Deadline, rests: Rests) -> list[Outcome]:
    """After an outage the rest is not tried: each would wait for it again, and be done when nobody waits any more."""
    outcomes: list[Outcome] = []
    prices = PriceWait.of(deps, [item.submission for item in pending], deadline)
    left = list(pending)
    while left:
        item, *left = left
        began = time.monotonic()
        outcomes.append(outcome := _outcome(deps, item, prices))
        if left:
            rests.after(time.monotonic() - began)
        if isinstance(outcome, model.Overloaded) and item.facts is None:
            left = _with_backlogs(deps, left)
        elif isinstance(outcome, Exception) and db.is_unavailable(outcome):
            return outcomes + [outcome for _ in left]
    return outcomes


def _with_backlogs(deps: Deps, items: list[PendingSubmit]) -> list[PendingSubmit]:
    """With the facts of each order that would join the backlog too: one read refuses them all.

    A tenant that goes on sending batches while it is behind would else have the web processes and the database busy.
    """
    readable = [item.submission for item in items if isinstance(item.submission, Submission)]
    try:
        found = iter(load_facts_many(deps, list(map(FactsQuery.of, readable))))
    except Exception:  # noqa: BLE001 - each finds out by itself, and what was done before it is reported
        return items
    facts = [next(found).facts if isinstance(item.submission, Submission) else None for item in items]
    return [item._replace(facts=_if_behind(item, read)) for item, read in zip(items, facts, strict=True)]


def _if_behind(item: PendingSubmit, read: model.SubmitFacts | None) -> model.SubmitFacts | None:
    """Whatever is not refused by the backlog is decided by facts of its own time."""
    command = item.submission.command if isinstance(item.submission, Submission) else None
    return read if read and read.backlog and isinstance(command, (model.Create, model.Replace)) else None


def _outcome(deps: Deps, item: PendingSubmit, prices: PriceWait) -> Outcome:
    if isinstance(item.submission, Exception):
        return item.submission
    try:
        return _submit_one(deps, item.submission, item.facts, prices)
    except Exception as error:  # noqa: BLE001 - also an outage: what was done before it must still be reported
        return error


def _atomic(deps: Deps, pending: Sequence[PendingSubmit], deadline: Deadline) -> list[Outcome]:
    """The first refusal in order is reported at its place; an outage concerns the whole batch."""
    batch = [item.submission for item in pending]
    prices = PriceWait.of(deps, batch, deadline)
    for _ in range(ATTEMPTS):
        results: list[Result] = []
        try:
            _priced(deps, batch, results, prices)
        except FactsChanged:
            continue
        except Exception as error:
            if not isinstance(error, model.Refusal) and not any(error is unreadable for unreadable in batch):
                raise
            return _refused_at(deps, batch, len(results), error)
        return list(results)
    raise model.IdempotentRequestInFlight


def _priced(deps: Deps, batch: Sequence[Submission | Exception], results: list[Result], prices: PriceWait) -> None:
    """All of the batch in one transaction; decided again in another once prices came that it lacked."""
    while True:
        try:
            return _locked(deps, batch, results, prices.deadline, whole_account=True)
        except model.ControlRejected as refusal:
            if not prices.came_for(batch[len(results)], refusal):
                raise
            results.clear()


def _refused_at(deps: Deps, batch: Sequence[Submission | Exception], place: int, error: Exception) -> list[Outcome]:
    submission = batch[place]
    if isinstance(submission, Submission) and isinstance(error, model.ControlRejected):
        writing.record_refusal(deps, submission, error)
    return [error if number == place else SiblingRefused() for number in range(len(batch))]


def _submit_one(deps: Deps, submission: Submission, facts: model.SubmitFacts | None, prices: PriceWait) -> Result:
    """Decided again, from new facts, when prices came that it lacked."""
    while True:
        try:
            return _until_written(deps, submission, facts, prices.deadline)
        except model.ControlRejected as refusal:
            if not prices.came_for(submission, refusal):
                _record_refusal(deps, submission, refusal)
                raise
        facts = None


def _record_refusal(deps: Deps, submission: Submission, refusal: model.ControlRejected) -> None:
    if not submission.dry_run:
        writing.record_refusal(deps, submission, refusal)


def _until_written(deps: Deps, submission: Submission, facts: model.SubmitFacts | None, deadline: Deadline) -> Result:
    """Decide by what was read before; whoever loses a race over an intent decides again under its lock.

    An API key's budget is of many accounts. So it is first tried without a lock, in one statement that finds out
    whether anything has changed: the key's row is then locked for no round trip.
    """
    lost_race = False
    for _ in range(ATTEMPTS):
        facts = facts or load_facts(deps, FactsQuery.of(submission)).facts
        decision = model.decide(facts, submission)
        is_group = group_writing.group_of(submission) is not None
        counts = (is_group or isinstance(decision, OrderFactsNeeded)) and not submission.dry_run
        if _takes_of_budget_alone(decision, submission) and not is_group:
            counts = counts and lost_race
        try:
            if counts or is_group or (lost_race and isinstance(decision, Append) and not decision.pending.is_create):
                results: list[Result] = []
                _locked(deps, [submission], results, deadline, whole_account=counts)
                return results[0]
            return _unlocked(deps, facts, decision, submission)
        except FactsChanged:
            facts, lost_race = None, True
    raise model.IdempotentRequestInFlight  # under lock, only a request with the same key can be faster


def _takes_of_budget_alone(decision: model.Decision, submission: Submission) -> bool:
    return isinstance(decision, OrderFactsNeeded) and decision.of_key and isinstance(submission.command, model.Create)


def _unlocked(deps: Deps, facts: model.SubmitFacts, decision: model.Decision, submission: Submission) -> Result:
    tx = deps.connections.autocommit()
    if isinstance(decision, OrderFactsNeeded):
        facts = writing.counted(tx, facts, decision, submission, deps.price_max_age)
        decision = model.decide(facts, submission)
        if isinstance(decision, Append) and facts.last_sequence is None:
            raise FactsChanged  # there is no log yet of which to see whether it has grown
    if isinstance(decision, Append):
        return _append_unlocked(deps, decision.pending._replace(read_sequence=facts.last_sequence))
    try:
        return writing.answer(tx, facts, decision, submission)
    except CommitOutcomeUnknown as error:
        raise model.OutcomeUnknown from error


def _append_unlocked(deps: Deps, pending: PendingAction) -> Result:
    """An amendment that finds another version takes back the idempotency key it has inserted: with its transaction."""
    try:
        if pending.is_create:
            [action] = writing.append(deps.connections.autocommit(), [pending])
        else:
            with deps.connections.begin() as tx:
                [action] = writing.append(tx, [pending])
    except CommitOutcomeUnknown:
        action = store.confirm_written(deps.connections.autocommit(), pending.action)
    except exc.OperationalError as error:
        if pending.is_create or not db.is_lock_timeout(error):
            raise
        raise FactsChanged from error  # under lock it may wait for longer
    result = writing.result(action)
    writing.after_commit(deps, [result])
    return result


def _locked(
    deps: Deps,
    batch: Sequence[Submission | Exception],
    results: list[Result],
    deadline: Deadline,
    *,
    whole_account: bool,
) -> None:
    """One transaction: lock the intents by id, then the account; read, decide and write each in order.

    Limits count what others do on the account at the same time: with them all its writers take turns.
    """
    try:
        with deps.connections.begin() as tx:
            _lock(tx, batch, deadline, whole_account=whole_account)
            for submission in batch:
                results.append(
                    group_writing.decide_and_write(
                        tx, submission, count_orders=whole_account, price_max_age=deps.price_max_age
                    )
                )
    except CommitOutcomeUnknown as error:
        writing.confirm(deps, results, error)
    writing.after_commit(deps, results)


def _lock(
    tx: store.OpenTransaction, batch: Sequence[Submission | Exception], deadline: Deadline, *, whole_account: bool
) -> None:
    """Wait for locks no longer than the request may: else it is an outage."""
    submissions = [submission for submission in batch if isinstance(submission, Submission)]
    if not submissions:
        return
    account_id, caller = submissions[0].account_id, submissions[0].caller
    references = {submission.command.ref_intent_id for submission in submissions}
    tx.limit_lock_wait(deadline.left_s)
    store.lock_intents(tx, account_id, [intent_id for intent_id in references if intent_id])
    tx.limit_lock_wait(deadline.left_s)
    if whole_account:
        store.lock_account(tx, account_id, caller.organization_id if caller else None)
