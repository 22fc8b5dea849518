"""Requesting bulk operations and reading how far they have come."""

from dataclasses import replace
from uuid import UUID, uuid4

from sqlalchemy import Connection

from chassis import db, tracing
from intents import model, store
from intents.model.bulk_operations import MOST_UNFINISHED, BulkOperation, BulkRequest, BulkStatus
from intents.usecases.deps import Deps
from intents.usecases.reads import Reader, visible
from intents.usecases.submit import load_facts

MOST_SHOWN = 20
"""Of the orders that an operation waits for."""


def account_of(deps: Deps, reader: Reader) -> model.Account:
    """The account, if the caller may cancel on it: which no entitlement and no control restricts."""
    with db.reading(deps.engine) as tx:
        account = visible(tx, reader)
    if account.environment != reader.principal.environment:
        raise model.Forbidden
    return account


def facts_of_account(deps: Deps, account_id: UUID) -> model.SubmitFacts:
    """What deciding about orders of the account needs, whichever they are."""
    return load_facts(deps, store.FactsQuery(account_id)).facts


def request_bulk_operation(
    deps: Deps, request: BulkRequest, key: model.IdempotencyKey | None = None
) -> tuple[BulkOperation, bool]:
    """Record what is to be done; the operation, and whether an earlier request with the same key has made it."""
    with deps.engine.begin() as tx:
        if prior := _prior(tx, request.account_id, key):
            return prior, True
        unfinished = store.unfinished_bulk_operations(tx, request.organization_id, request.account_id)
        if unfinished >= MOST_UNFINISHED:
            raise model.LimitReached(
                "Too many bulk operations of the account are unfinished. Wait until one is completed."
            )
        made = store.insert_bulk_operation(tx, uuid4(), request, tracing.traceparent(), key)
        if made:
            return made, False
        prior = _prior(tx, request.account_id, key)
    if prior is None:
        raise model.IdempotentRequestInFlight
    return prior, True


def read_bulk_operation(deps: Deps, reader: Reader, operation_id: UUID) -> BulkOperation:
    """The operation, with orders that it still waits for."""
    with db.reading(deps.engine) as tx:
        found = store.find_bulk_operation(tx, visible(tx, reader).id, operation_id)
        if found is None:
            raise model.BulkOperationNotFound
        if found.status is BulkStatus.COMPLETED:
            return found
        return replace(found, waiting_for=store.awaited_orders(tx, found, MOST_SHOWN))


def _prior(tx: Connection, account_id: UUID, key: model.IdempotencyKey | None) -> BulkOperation | None:
    found = key and store.bulk_operation_of_key(tx, account_id, key.key)
    if not key or not found:
        return None
    operation, request_hash = found
    if request_hash != key.request_hash:
        raise model.IdempotencyKeyReused
    return operation
