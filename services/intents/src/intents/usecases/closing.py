"""The orders that close an account's positions: one for each symbol, once, and under the rules of every order."""

import hashlib
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from intents import model
from intents.model.bulk_operations import BulkOperation, HeldPosition, closing_order, submitted
from intents.usecases.deadline import Deadline
from intents.usecases.deps import Deps
from intents.usecases.outcomes import PendingSubmit, Policy, Result
from intents.usecases.submit import submit

LOCK_WAIT_SECONDS = 1.0


def submit_closing_orders(deps: Deps, operation: BulkOperation, held: Sequence[HeldPosition]) -> BulkOperation:
    """Submit a market order for what other orders leave of each position; what has changed meanwhile is read again.

    Raises an outage: then all are submitted again, and none twice.
    """
    intents, refusals = [], []
    for position in held:
        outcome = _submitted(deps, operation, position)
        if isinstance(outcome, Result):
            intents.append(outcome.action.intent_id)
        elif not isinstance(outcome, model.NotReducing):
            refusals.append(outcome)
        elif position.left:
            return operation
    return submitted(operation, intents, refusals)


def _submitted(
    deps: Deps, operation: BulkOperation, position: HeldPosition
) -> Result | model.NotReducing | dict[str, Any]:
    """The order, or why it is refused. Where nothing is left it is the one that this operation has submitted before."""
    symbol = position.symbol
    pending = [PendingSubmit(_closing(operation, symbol, position.left or position.quantity))]
    [outcome] = submit(deps, pending, Policy.EACH, Deadline.after(LOCK_WAIT_SECONDS))
    if isinstance(outcome, (Result, model.NotReducing)):
        return outcome
    if isinstance(outcome, model.ControlRejected):
        return {"symbol": symbol, "reasons": outcome.reasons}
    if isinstance(outcome, model.AccountNotFound):
        return {"symbol": symbol, "reasons": [{"code": "ACCOUNT_NOT_FOUND", "message": "The account was deleted."}]}
    raise outcome


def _closing(operation: BulkOperation, symbol: str, quantity: Decimal) -> model.Submission:
    return model.Submission(
        operation.account_id,
        closing_order(symbol, quantity),
        operation.request.actor,
        caller=None,
        idempotency_key=_key(operation, symbol),
        reason=operation.request.reason,
        traceparent=operation.traceparent,
        reduce_only=True,
    )


def _key(operation: BulkOperation, symbol: str) -> model.IdempotencyKey:
    """One order for each symbol of an operation, whatever is held. No caller can send a key with a line feed."""
    key = f"close\n{operation.id}\n{hashlib.sha256(symbol.encode()).hexdigest()}"
    return model.IdempotencyKey(key, operation.id.bytes)
