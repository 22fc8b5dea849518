"""Carrying out bulk operations, a step at a time.

No step depends on what an earlier one remembers: which intents are to be canceled is read anew each time, and an intent
that is being canceled is left alone. So a process may be killed anywhere, and any number may run.
"""

import random
import time
from threading import Event
from uuid import UUID, uuid4

from chassis import db, logs
from intents import model, store
from intents.model.bulk_operations import BulkOperation, BulkStatus, cancel_of, canceled, closed
from intents.usecases.closing import submit_closing_orders
from intents.usecases.deps import Deps
from intents.usecases.submit import submit_own

log = logs.get(__name__)

CLAIMED_AT_ONCE = 2
LEASE_SECONDS = 6.0
"""More than the steps of one claim take; what a killed process has claimed waits so long."""
STEP_BATCH = 100
STEP_SECONDS = 1.0
"""After which it is the next organization's turn, however long each intent's row was waited for."""
LOCK_WAIT_SECONDS = 0.1
RETRY_SECONDS = 0.25


def run_bulk_operations(deps: Deps, stop: Event | None = None) -> bool:
    """Take one step of some operations that are due; whether more can be done at once."""
    token = uuid4()
    with deps.engine.begin() as tx:
        claimed = store.claim_bulk_operations(tx, token, CLAIMED_AT_ONCE, LEASE_SECONDS)
    steps = [_safe_step(deps, operation, token, stop) for operation in claimed]
    return any(steps) or len(steps) == CLAIMED_AT_ONCE


def _safe_step(deps: Deps, operation: BulkOperation, token: UUID, stop: Event | None) -> bool:
    """A step that fails is taken again when its lease ends, and keeps no other operation waiting."""
    try:
        return _step(deps, operation, token, stop)
    except Exception as error:
        if db.is_unavailable(error):
            raise
        log.error("bulk_operation_failed", bulk_operation_id=str(operation.id), exc_info=error)
        return False


def _step(deps: Deps, operation: BulkOperation, token: UUID, stop: Event | None) -> bool:
    """Whether it got anything done."""
    if operation.status is BulkStatus.CLOSING:
        return _close(deps, operation, token)
    done = _cancel_some(deps, operation, stop)
    with deps.engine.begin() as tx:
        after = canceled(operation, *store.still_open(tx, operation))
        store.save_bulk_operation(tx, after, token, 0.0 if done else RETRY_SECONDS)
    _log(after)
    return done > 0


def _close(deps: Deps, operation: BulkOperation, token: UUID) -> bool:
    """Submit the closing orders once the broker has reported what is held; then wait until they have ended."""
    with db.reading(deps.engine) as tx:
        held = store.held_at_broker(tx, operation) if operation.closing_intents is None else None
    after = operation if held is None else submit_closing_orders(deps, operation, held)
    with deps.engine.begin() as tx:
        if after.closing_intents is not None:
            after = closed(after, *store.closing_still_open(tx, after))
        store.save_bulk_operation(tx, after, token, RETRY_SECONDS)
    _log(after)
    return False


def _log(operation: BulkOperation) -> None:
    if operation.status is BulkStatus.COMPLETED:
        log.info("bulk_operation_completed", account_id=str(operation.account_id), bulk_operation_id=str(operation.id))


def _cancel_some(deps: Deps, operation: BulkOperation, stop: Event | None) -> int:
    """How many CANCELs were appended."""
    with db.reading(deps.engine) as tx:
        found = store.intents_to_cancel(tx, operation, STEP_BATCH)
    appended, ends = 0, time.monotonic() + STEP_SECONDS
    # In any order, so that the next step does not begin with the same rows that others hold.
    for intent_id in random.sample(found, len(found)):  # a fair order - guards nothing # nosec B311
        if (stop and stop.is_set()) or time.monotonic() > ends:
            break
        appended += submit_own(deps, _cancel(operation, intent_id), LOCK_WAIT_SECONDS) is not None
    return appended


def _cancel(operation: BulkOperation, intent_id: UUID) -> model.Submission:
    return model.Submission(
        operation.account_id,
        cancel_of(intent_id),
        operation.request.actor,
        caller=None,
        reason=operation.request.reason,
        traceparent=operation.traceparent,
    )
