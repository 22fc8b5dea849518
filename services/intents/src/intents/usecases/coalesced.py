"""Submissions of many callers in one write that hardly waits.

Those to which no limit applies are decided by what was read for them. For the others the orders of their accounts are
counted in one more read, and they are decided in the order in which they came: each sees what those before it have
added. No lock is held meanwhile: what was decided so is written only if the account's log has not grown since, else
it is decided again under the account's lock. The number of round trips does not depend on how many accounts and
submissions there are.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import exc

from chassis import db
from intents import model, store
from intents.model import Append, BatchTotals, Create, OrderFactsNeeded, PendingAction, Refused, Submission
from intents.store import CommitOutcomeUnknown, OrderQuery
from intents.usecases import writing
from intents.usecases.deps import Deps
from intents.usecases.group_writing import group_of
from intents.usecases.outcomes import Deferred, Outcome, PendingSubmit, Result

LOCK_WAIT_S = 0.1
"""How long a coalesced write waits for a lock: whoever holds it delays all callers of the batch, also other tenants'.
A full batch on one account keeps that account for 30 to 40 ms, and two processes may well have one each."""


class _NothingAdmitted(Exception):
    """Every submission of the batch is refused or deferred: the transaction, which has locked heads, is rolled back."""


class _Moved(Exception):
    """The account's log has grown since its orders were counted, or had not begun."""


class _Candidate(NamedTuple):
    """A CREATE that may be written. `pending` is None if limits apply to it: its account's orders are to be counted."""

    submission: Submission
    facts: model.SubmitFacts
    account: model.Account
    command: Create
    pending: PendingAction | None


_Decided = PendingAction | Exception


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
    if facts is None or group_of(submission):
        return Deferred()
    decision, command = model.decide(facts, submission), submission.command
    if isinstance(decision, OrderFactsNeeded) and decision.of_key:
        return Deferred()  # other accounts have a say in it, too
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
    """Once without a lock; what finds that its account has moved on then, once more, with it."""
    outcomes = _committed(deps, partial(_write_unlocked, deps, candidates))
    moved = {place: item for place, item in enumerate(candidates) if isinstance(outcomes[place], _Moved)}
    again = iter(_write_moved(deps, list(moved.values())) if moved else ())
    return [next(again) if place in moved else outcome for place, outcome in enumerate(outcomes)]


def _write_moved(deps: Deps, candidates: Sequence[_Candidate]) -> list[Outcome]:
    """An error is theirs alone: the others of the batch are written already."""
    try:
        return _committed(deps, partial(_write_locked, deps, candidates))
    except (model.IdempotentRequestInFlight, exc.DBAPIError):
        return [Deferred() for _ in candidates]


def _committed(deps: Deps, write: Callable[[list[_Decided]], list[Outcome]]) -> list[Outcome]:
    """What becomes of what `write` decides, which it notes before it writes."""
    decided: list[_Decided] = []
    try:
        outcomes = write(decided)
    except _NothingAdmitted:
        outcomes = [item for item in decided if isinstance(item, Exception)]
    except CommitOutcomeUnknown:
        outcomes = _confirm(deps, decided)
    writing.after_commit(deps, outcomes)
    return outcomes


def _write_unlocked(deps: Deps, candidates: Sequence[_Candidate], decided: list[_Decided]) -> list[Outcome]:
    """One statement if no account has two; else one transaction, which locks all accounts if one of them is limited."""
    limited = [candidate for candidate in candidates if candidate.pending is None]
    facts = _order_facts(deps, deps.connections.autocommit(), limited) if limited else ()
    decided += _decide_each(candidates, facts, is_locked=False)
    if len({candidate.account.id for candidate in candidates}) == len(candidates):
        return _append(deps.connections.autocommit(LOCK_WAIT_S), decided)
    with deps.connections.begin(LOCK_WAIT_S) as tx:
        if limited:
            decided[:] = _unmoved(decided, _lock(tx, candidates))
        return _append(tx, decided)


def _write_locked(deps: Deps, candidates: Sequence[_Candidate], decided: list[_Decided]) -> list[Outcome]:
    """All limited, in one transaction that has their accounts to itself before it counts their orders."""
    with deps.connections.begin(LOCK_WAIT_S) as tx:
        _lock(tx, candidates)
        decided += _decide_each(candidates, _order_facts(deps, tx, candidates), is_locked=True)
        return _append(tx, decided)


def _lock(tx: store.OpenTransaction, candidates: Sequence[_Candidate]) -> dict[UUID, int]:
    """All accounts of the batch, in order, so that none is locked out of turn; where the log of each ends."""
    return store.lock_accounts(tx, {item.account.id: item.account.organization_id for item in candidates})


def _order_facts(deps: Deps, tx: store.Transaction, limited: Sequence[_Candidate]) -> list[model.SubmitFacts]:
    queries = [OrderQuery(item.facts, item.command.symbol, item.command.order_side) for item in limited]
    return store.with_order_facts_many(tx, queries, deps.price_max_age)


def _decide_each(
    candidates: Sequence[_Candidate], order_facts: Iterable[model.SubmitFacts], *, is_locked: bool
) -> list[_Decided]:
    totals, facts = BatchTotals(), iter(order_facts)
    return [item.pending or _decide_next(totals, item, next(facts), is_locked=is_locked) for item in candidates]


def _decide_next(totals: BatchTotals, candidate: _Candidate, facts: model.SubmitFacts, *, is_locked: bool) -> _Decided:
    known = totals.applied_to(facts, candidate.account, candidate.command)
    decision = model.decide(known, candidate.submission)
    if not isinstance(decision, Append):
        return _error(decision)
    if not is_locked and facts.last_sequence is None:
        return _Moved()
    totals.add(known, candidate.account, candidate.command)
    return decision.pending if is_locked else decision.pending._replace(read_sequence=facts.last_sequence)


def _unmoved(decided: Sequence[_Decided], sequences: Mapping[UUID, int]) -> list[_Decided]:
    """Those whose accounts, now locked, stand where they were read."""

    def checked(item: _Decided) -> _Decided:
        if isinstance(item, Exception) or item.read_sequence is None:
            return item
        stands = sequences[item.action.account_id] == item.read_sequence
        return item._replace(read_sequence=None) if stands else _Moved()

    return [checked(item) for item in decided]


def _append(tx: store.Transaction, decided: Sequence[_Decided]) -> list[Outcome]:
    pending = [item for item in decided if isinstance(item, PendingAction)]
    if not pending:
        raise _NothingAdmitted
    actions = iter(writing.append(tx, pending))
    return [item if isinstance(item, Exception) else _outcome(item, next(actions)) for item in decided]


def _outcome(pending: PendingAction, action: model.Action | None) -> Outcome:
    if action:
        return Result(action)
    return Deferred() if pending.read_sequence is None else _Moved()


def _confirm(deps: Deps, decided: Sequence[_Decided]) -> list[Outcome]:
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
