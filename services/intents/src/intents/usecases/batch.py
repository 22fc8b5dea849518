"""Submitting many commands with one request."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from chassis import db
from chassis.principals import Principal
from intents import model, store
from intents.usecases.deadline import Deadline
from intents.usecases.deps import Deps
from intents.usecases.submit import (
    ATTEMPTS,
    Result,
    Submission,
    announce,
    ascertain,
    decide_and_append,
    load_facts,
    lock,
    submit,
)

Outcome = Result | Exception | None
"""What became of a command: done, refused, or not done because another one was refused."""


def submit_each(
    deps: Deps, principal: Principal, attempts: Sequence[Callable[[], Submission]], deadline: Deadline
) -> list[Outcome]:
    """Every command by itself. An attempt gives its submission, or raises what is wrong with it.

    After an outage the rest is not tried: each would wait for it again, and be done when nobody waits any more.
    """
    outcomes: list[Outcome] = []
    for attempt in attempts:
        last = outcomes[-1] if outcomes else None
        is_outage = isinstance(last, Exception) and db.is_unavailable(last)
        outcomes.append(last if is_outage else _alone(deps, principal, attempt, deadline))
    return outcomes


def _alone(deps: Deps, principal: Principal, attempt: Callable[[], Submission], deadline: Deadline) -> Outcome:
    try:
        submission = attempt()
        facts = load_facts(deps, submission.query).facts
        return submit(deps, principal, facts, submission, deadline)
    except Exception as refusal:  # noqa: BLE001 - also an outage: what was done before it must still be told
        return refusal


def submit_all(
    deps: Deps,
    principal: Principal,
    account: model.Account,
    attempts: Sequence[Callable[[], Submission]],
    references: Sequence[UUID],
    refusals: tuple[type[Exception], ...],
    deadline: Deadline,
) -> list[Outcome]:
    """All commands in one transaction, or none of them. `references` are the intents they are about.

    Errors of the kinds `refusals` are told in their place; an outage is one of the whole batch.
    """
    actor = model.Actor(principal.kind, principal.id)
    batch = _Batch(deps, account, actor, attempts, references, refusals, deadline)
    for _ in range(ATTEMPTS):
        try:
            return batch.submit()
        except store.FactsChanged:
            continue
    raise model.IdempotentRequestInFlight


@dataclass(frozen=True)
class _Batch:
    deps: Deps
    account: model.Account
    actor: model.Actor
    attempts: Sequence[Callable[[], Submission]]
    references: Sequence[UUID]
    refusals: tuple[type[Exception], ...]
    deadline: Deadline

    def submit(self) -> list[Outcome]:
        results: list[Result] = []
        try:
            with self.deps.connections.begin() as tx:
                lock(tx, self.account, self.references, self.deadline)
                for attempt in self.attempts:
                    results.append(self._decide(tx, attempt))
        except store.CommitOutcomeUnknown as error:
            ascertain(self.deps, results, error)
        except self.refusals as refusal:
            return self._refused(refusal, len(results))
        for last in [result.action for result in results if result.is_new][-1:]:
            announce(self.deps, last)
        return list(results)

    def _decide(self, tx: store.OpenTransaction, attempt: Callable[[], Submission]) -> Result:
        submission = attempt()
        facts = store.load_facts(tx, submission.query).facts
        return decide_and_append(tx, facts, self.account, self.actor, submission)

    def _refused(self, refusal: Exception, place: int) -> list[Outcome]:
        if isinstance(refusal, model.ControlRejected):
            tx = self.deps.connections.autocommit()
            store.refuse(tx, self.account, self.actor, self.attempts[place]().command, refusal)
        return [*[None] * place, refusal, *[None] * (len(self.attempts) - place - 1)]
