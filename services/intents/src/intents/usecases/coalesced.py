"""Submissions of many callers in one write that hardly waits.

Those to which no limit applies are decided before, by what was read for them. The others are decided under the locks
of their accounts, in the order in which they came: each sees what those before it have added. The number of round
trips does not depend on how many accounts and submissions there are.
"""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import exc

from chassis import db
from intents import model, store
from intents.model import Append, BatchTotals, Create, OrderFactsNeeded, PendingAction, Refused, Submission
from intents.store import CommitOutcomeUnknown, OrderQuery
from intents.usecases import writing
from intents.usecases.deps import Deps
from intents.usecases.outcomes import Deferred, Outcome, PendingSubmit, Result

LOCK_WAIT_S = 0.1
"""How long a coalesced write waits for a lock: whoever holds it delays all callers of the batch, also other tenants'.
A full batch on one account keeps that account for 30 to 40 ms, and two processes may well have one each."""


class _NothingAdmitted(Exception):
    """Every submission of the batch is refused or deferred: the transaction, which has locked heads, is rolled back."""


class _Candidate(NamedTuple):
    """A CREATE that may be written. `pending` is None if limits apply to it: it is decided under its account's lock."""

    submission: Submission
    facts: model.SubmitFacts
    account: model.Account
    command: Create
    pending: PendingAction | None


def submit_coalesced(deps: Deps, pending: Sequence[PendingSubmit]) -> list[Outcome]:
    """Write the CREATEs that nothing speaks against, in one transaction that waits for a lock LOCK_WAIT_S at most."""
    found = [_candidate(item) for item in pending]
    candidates = [item for item in found if isinstance(item, _Candidate)]
    written = iter(_write(deps, candidates) if candidates else ())
    return [next(written) if isinstance(item, _Candidate) else item for item in found]


def _candidate(item: PendingSubmit) -> _Candidate | Exception:
    submission, facts = item
    if isinstance(submission, Exception):
        return submission
    if facts is None:
        return Deferred()
    decision, command = model.decide(facts, submission), submission.command
    if isinstance(decision, (Append, OrderFactsNeeded)) and isinstance(command, Create) and facts.account:
        pending = decision.pending if isinstance(decision, Append) else None
        return _Candidate(submission, facts, facts.account, command, pending)
    return _error(decision)


def _error(decision: model.Decision) -> Exception:
    """Why it is not written here. Who is refused by a control is refused, and recorded, by itself."""
    if isinstance(decision, Refused) and not isinstance(decision.error, model.ControlRejected):
        return decision.error
    return Deferred()


def _write(deps: Deps, candidates: Sequence[_Candidate]) -> list[Outcome]:
    """Those whose account is locked for long are deferred: their callers wait for it in threads of their own."""
    try:
        return _write_batch(deps, candidates)
    except (model.IdempotentRequestInFlight, exc.DBAPIError) as error:
        is_wait = isinstance(error, model.IdempotentRequestInFlight) or db.is_lock_timeout(error)
        if len(candidates) > 1:  # an error of one, say by a value nobody foresaw, is no other's
            return _write_unlocked_accounts(deps, candidates) if is_wait else [Deferred() for _ in candidates]
        return [Deferred() if is_wait else error]


def _write_batch(deps: Deps, candidates: Sequence[_Candidate]) -> list[Outcome]:
    """One statement if no account has two and none is limited; else one transaction."""
    decided: list[PendingAction | Exception] = []
    try:
        if _fits_one_statement(candidates):
            decided = [candidate.pending or Deferred() for candidate in candidates]
            outcomes = _append(deps.connections.autocommit(LOCK_WAIT_S), decided)
        else:
            with deps.connections.begin(LOCK_WAIT_S) as tx:
                decided = _decide_locked(deps, tx, candidates)
                outcomes = _append(tx, decided)
    except _NothingAdmitted:
        outcomes = [item for item in decided if isinstance(item, Exception)]
    except CommitOutcomeUnknown:
        outcomes = _confirm(deps, decided)
    writing.after_commit(deps, outcomes)
    return outcomes


def _fits_one_statement(candidates: Sequence[_Candidate]) -> bool:
    accounts = {candidate.account.id for candidate in candidates}
    return len(accounts) == len(candidates) and all(candidate.pending for candidate in candidates)


def _decide_locked(
    deps: Deps, tx: store.OpenTransaction, candidates: Sequence[_Candidate]
) -> list[PendingAction | Exception]:
    """Lock all accounts of the batch in order if one of them is limited: none is then locked out of turn."""
    limited = [candidate for candidate in candidates if candidate.pending is None]
    if not limited:
        return [candidate.pending or Deferred() for candidate in candidates]
    store.lock_accounts(tx, {candidate.account.id: candidate.account.organization_id for candidate in candidates})
    queries = [OrderQuery(item.facts, item.command.symbol, item.command.order_side) for item in limited]
    facts = iter(store.with_order_facts_many(tx, queries, deps.price_max_age))
    totals = BatchTotals()
    return [candidate.pending or _decide_next(totals, candidate, next(facts)) for candidate in candidates]


def _decide_next(totals: BatchTotals, candidate: _Candidate, facts: model.SubmitFacts) -> PendingAction | Exception:
    known = totals.applied_to(facts, candidate.account, candidate.command)
    decision = model.decide(known, candidate.submission)
    if not isinstance(decision, Append):
        return _error(decision)
    totals.add(known, candidate.account, candidate.command)
    return decision.pending


def _append(tx: store.Transaction, decided: Sequence[PendingAction | Exception]) -> list[Outcome]:
    pending = [item for item in decided if isinstance(item, PendingAction)]
    if not pending:
        raise _NothingAdmitted
    actions = iter(writing.append(tx, pending))
    outcomes: list[Outcome] = []
    for item in decided:
        action = next(actions) if isinstance(item, PendingAction) else None
        refused = item if isinstance(item, Exception) else Deferred()
        outcomes.append(Result(action) if action else refused)
    return outcomes


def _confirm(deps: Deps, decided: Sequence[PendingAction | Exception]) -> list[Outcome]:
    confirmed = iter(writing.confirm_each(deps, [item.action for item in decided if isinstance(item, PendingAction)]))
    return [next(confirmed) if isinstance(item, PendingAction) else item for item in decided]


def _write_unlocked_accounts(deps: Deps, candidates: Sequence[_Candidate]) -> list[Outcome]:
    """Those on accounts that nobody is writing to, if they can be written now."""
    outcomes: dict[int, Outcome] = {}
    try:
        accounts: set[UUID] = {candidate.account.id for candidate in candidates}
        locked = store.locked_accounts(deps.connections.autocommit(), accounts)
        free = {place: item for place, item in enumerate(candidates) if item.account.id not in locked}
        if free:
            outcomes = dict(zip(free, _write_batch(deps, list(free.values())), strict=True))
    except (model.IdempotentRequestInFlight, exc.DBAPIError):
        outcomes = {}
    return [outcomes.get(place, Deferred()) for place in range(len(candidates))]
