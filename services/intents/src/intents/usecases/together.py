"""Submitting commands that came at the same time: one read and one write for all of them."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import exc

from chassis import crashpoints, db
from chassis.principals import Principal
from intents import model, store
from intents.usecases.deps import Deps
from intents.usecases.submit import Result, Submission, announce, needs_order_facts

LOCK_WAIT_S = 0.1
"""How long a write for several waits for a lock: whoever holds it holds up all of them, also those of other tenants.
A full batch on one account keeps that account for 30 to 40 ms, and two processes may well have one each."""

Told = Result | Exception | None
"""What became of a command; None if it was left for `submit`, which decides it by itself."""


class Together(NamedTuple):
    """One command among others, and what is known about it."""

    principal: Principal
    facts: model.SubmitFacts
    submission: Submission
    traceparent: str


def load_facts_many(deps: Deps, queries: Sequence[store.FactsQuery]) -> list[store.LoadedFacts]:
    """What must be known of each to decide it, and the keys that could be its caller's: one read for all."""
    return store.load_facts_many(deps.connections.autocommit(), queries)


def submit_together(deps: Deps, asked: Sequence[Together]) -> list[Told]:
    """Append those that are as most are: new intents which nothing speaks against. The others are left."""
    admitted = {place: new for place, one in enumerate(asked) if (new := _admitted(one))}
    if not admitted:
        return [None] * len(asked)
    crashpoints.reach("intents.before_commit")
    written = dict(zip(admitted, _written(deps, list(admitted.values())), strict=True))
    crashpoints.reach("intents.after_commit")
    done = [told.action for told in written.values() if isinstance(told, Result)]
    if done:
        announce(deps, *done)
    return [written.get(place) for place in range(len(asked))]


def _admitted(one: Together) -> store.PendingAction | None:
    account, facts, submission = one.facts.account, one.facts, one.submission
    if not isinstance(submission.command, model.Create) or submission.dry_run or account is None:
        return None
    if (facts.prior and submission.idempotency_key) or needs_order_facts(facts.controls):
        return None
    actor = model.Actor(one.principal.kind, one.principal.id)
    try:
        admission = model.admit(facts, account, actor, submission.command)
    except model.ControlRejected:  # which is to be kept, by whoever submits it by itself
        return None
    return store.PendingAction(admission, submission.idempotency_key, one.traceparent)


def _written(deps: Deps, news: Sequence[store.PendingAction]) -> list[Told]:
    """Those whose account is held by somebody for long are left: their callers wait for it in threads of their own."""
    if len(news) == 1:
        return [_written_alone(deps, *news)]
    try:
        return _all_written(deps, news)
    except model.IdempotentRequestInFlight:
        return _free_written(deps, news)
    except exc.DBAPIError as error:  # one may have spoilt it for all: by a value nobody foresaw, say
        return _free_written(deps, news) if db.is_lock_timeout(error) else [None] * len(news)


def _all_written(deps: Deps, news: Sequence[store.PendingAction]) -> list[Told]:
    try:
        actions = _append(deps, news)
    except store.CommitOutcomeUnknown:
        return _all_ascertained(deps, [new.admission.action for new in news])
    return [Result(action) if action else None for action in actions]


def _append(deps: Deps, news: Sequence[store.PendingAction]) -> list[model.Action | None]:
    if len({new.action.account_id for new in news}) == len(news):
        return store.append_creates(deps.connections.autocommit(LOCK_WAIT_S), news)
    with deps.connections.begin(LOCK_WAIT_S) as tx:
        return store.append_creates_in_rounds(tx, news)


def _free_written(deps: Deps, news: Sequence[store.PendingAction]) -> list[Told]:
    """Those on accounts that nobody holds, if they can be written now."""
    try:
        held = store.locked_accounts(deps.connections.autocommit(), {new.admission.action.account_id for new in news})
        free = {place: new for place, new in enumerate(news) if new.admission.action.account_id not in held}
        written = dict(zip(free, _all_written(deps, list(free.values())), strict=True)) if free else {}
    except (exc.DBAPIError, model.IdempotentRequestInFlight):
        written = {}
    return [written.get(place) for place in range(len(news))]


def _written_alone(deps: Deps, new: store.PendingAction) -> Told:
    try:
        [told] = _all_written(deps, [new])
    except model.IdempotentRequestInFlight:
        return None
    except exc.DBAPIError as error:
        return None if db.is_lock_timeout(error) else error
    return told


def _all_ascertained(deps: Deps, actions: Sequence[model.Action]) -> list[Told]:
    told: list[Told] = []
    for action in actions:
        unreachable = any(isinstance(one, model.OutcomeUnknown) and one.__cause__ for one in told)
        told.append(model.OutcomeUnknown() if unreachable else _ascertained(deps, action))  # once is waiting enough
    return told


def _ascertained(deps: Deps, action: model.Action) -> Told:
    try:
        return Result(store.confirm_written(deps.connections.autocommit(), action))
    except model.OutcomeUnknown as error:
        return error
