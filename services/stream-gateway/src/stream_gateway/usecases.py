"""Subscribing: who it is, whether it may, and where the stream begins. Runs in a thread, as it queries the database."""

from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from sqlalchemy import Engine

from chassis import db
from chassis.authentication import Access, PresentedCredentials
from stream_gateway import callers, store
from stream_gateway.callers import Caller
from stream_gateway.model import Account, AccountNotFound, BadAccountId, Subscription, begin, check_retention


@dataclass(frozen=True)
class Deps:
    engine: Engine
    access: Access
    retention_days: int


@dataclass(frozen=True)
class Request:
    """A request as received. Its fault is kept and not raised: a stranger must not learn it first."""

    account_id: UUID | None
    types: frozenset[int] = frozenset()
    resume_after: int | None = None
    resume_epoch: str | None = None
    fault: Exception | None = None


def admit(deps: Deps, presented: PresentedCredentials, request: Request) -> tuple[Caller, Account, Subscription]:
    """Everything that is checked before a stream begins, in the order of every other endpoint."""
    now = datetime.now(UTC)
    caller = callers.admit(deps.access, presented, now.timestamp())
    if request.account_id is None:
        raise BadAccountId
    with db.reading(deps.engine) as connection:
        account = store.account(connection, request.account_id)
        if account is None or account.organization_id != caller.principal.organization_id:
            raise AccountNotFound
        if not caller.principal.sees(account.id):
            raise AccountNotFound
        if request.fault:
            raise request.fault
        subscription = Subscription(account.id, request.types, request.resume_after, request.resume_epoch)
        position = begin(subscription, account)
        if position < account.head:
            check_retention(store.occurred_at(connection, account.id, position + 1), now, deps.retention_days)
    return caller, account, subscription
