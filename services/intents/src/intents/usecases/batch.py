"""Submitting many commands with one request."""

from collections.abc import Callable, Sequence
from uuid import UUID

from chassis.principals import Principal
from intents import model, store
from intents.usecases.deps import Deps
from intents.usecases.submit import Result, Submission, decide, submit

Outcome = Result | Exception | None
"""What became of a command: done, refused, or not done because another one was refused."""


def submit_each(deps: Deps, principal: Principal, attempts: Sequence[Callable[[], Submission]]) -> list[Outcome]:
    """Every command by itself. An attempt gives its submission, or raises what is wrong with it."""
    return [_alone(deps, principal, attempt) for attempt in attempts]


def _alone(deps: Deps, principal: Principal, attempt: Callable[[], Submission]) -> Outcome:
    try:
        submission = attempt()
        facts, _keys = store.facts(deps.direct, submission.question)
        return submit(deps, principal, facts, submission)
    except Exception as refusal:  # noqa: BLE001 - also an outage: what was done before it must still be told
        return refusal


def submit_all(
    deps: Deps,
    principal: Principal,
    account: model.Account,
    attempts: Sequence[Callable[[], Submission]],
    references: Sequence[UUID],
) -> list[Outcome]:
    """All commands in one transaction, or none of them. `references` are the intents they are about."""
    actor = model.Actor(principal.kind, principal.id)
    outcomes: list[Outcome] = []
    submission: Submission | None = None
    try:
        with deps.direct.transaction():
            store.lock(deps.direct, account.id, references)
            for attempt in attempts:
                submission = attempt()
                facts, _keys = store.facts(deps.direct, submission.question)
                outcomes.append(decide(deps, facts, account, actor, submission))
    except Exception as refusal:  # noqa: BLE001 - told in the place where it arose
        if submission and isinstance(refusal, model.ControlRejected):
            store.refuse(deps.direct, account, actor, submission.command, refusal)
        done, left = len(outcomes), len(attempts) - len(outcomes) - 1
        return [*[None] * done, refusal, *[None] * left]
    deps.outbox.bell.ring()
    return outcomes
