"""Bulk operations: cancel all open orders of an account, or close its positions, as one durable request."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, NamedTuple
from uuid import UUID

from intents.model.actions import Actor
from intents.model.orders import Cancel, Create, Spec

MOST_UNFINISHED = 100
"""Of one account at a time."""


class BulkType(StrEnum):
    CANCEL_ORDERS = "CANCEL_ORDERS"
    CLOSE_POSITIONS = "CLOSE_POSITIONS"


class BulkStatus(StrEnum):
    PENDING = "PENDING"
    CANCELING = "CANCELING"
    CLOSING = "CLOSING"
    COMPLETED = "COMPLETED"


class BulkRequest(NamedTuple):
    """What is to be done on which account; None of `symbol` or `order_side` means all of them."""

    account_id: UUID
    organization_id: UUID
    type: BulkType
    actor: Actor
    reason: str
    symbol: str | None = None
    order_side: str | None = None


class HeldPosition(NamedTuple):
    """A position that is to be closed."""

    symbol: str
    quantity: Decimal
    open_quantity: Decimal
    """Of the open orders that close it, whoever has submitted them."""

    @property
    def left(self) -> Decimal:
        """What these orders leave, of the sign of the position."""
        size = max(abs(self.quantity) - self.open_quantity, Decimal(0))
        return size if self.quantity > 0 else -size


class AwaitedOrder(NamedTuple):
    """An order that has not ended yet, and why not, as far as it is known."""

    intent_id: UUID
    status: str
    reason_code: str | None
    outcome: str | None


@dataclass(frozen=True, slots=True)
class BulkOperation:
    """A request and how far it has come. It concerns the intents that existed at `created_at`."""

    id: UUID
    request: BulkRequest
    status: BulkStatus
    total: int
    done: int
    refusals: Sequence[Mapping[str, Any]]
    created_at: datetime
    updated_at: datetime
    completed_at: datetime | None = None
    closing_since: datetime | None = None
    """When the last open order had ended: positions read before that are too old to be closed."""
    closing_intents: Sequence[UUID] | None = None
    """The orders that close the positions; None until they were submitted."""
    traceparent: str | None = None
    waiting_for: Sequence[AwaitedOrder] = ()
    """Some of its orders that have not ended; read for whoever wants to know, and not kept."""

    @property
    def account_id(self) -> UUID:
        return self.request.account_id


def canceled(operation: BulkOperation, still_open: int, now: datetime) -> BulkOperation:
    """The operation once it was seen how many of its intents are still open."""
    total = max(operation.total, still_open)
    counted = replace(operation, total=total, done=total - still_open)
    if still_open:
        return replace(counted, status=BulkStatus.CANCELING)
    if operation.request.type is BulkType.CLOSE_POSITIONS:
        return replace(counted, status=BulkStatus.CLOSING, closing_since=now)
    return completed(counted, now)


def completed(operation: BulkOperation, now: datetime) -> BulkOperation:
    return replace(operation, status=BulkStatus.COMPLETED, completed_at=now)


def submitted(
    operation: BulkOperation, intents: Sequence[UUID], refusals: Sequence[Mapping[str, Any]]
) -> BulkOperation:
    """The operation once the orders that close the positions were submitted, or refused."""
    total = operation.total + len(intents)
    return replace(operation, closing_intents=intents, refusals=refusals, total=total)


def closed(operation: BulkOperation, still_open: int, now: datetime) -> BulkOperation:
    """The operation once it was seen how many of its closing orders are still open."""
    counted = replace(operation, done=operation.total - still_open)
    return counted if still_open else completed(counted, now)


def cancel_of(intent_id: UUID) -> Cancel:
    return Cancel({"ref_intent_id": str(intent_id)}, intent_id)


def closing_order(symbol: str, held: Decimal) -> Create:
    """The market order that takes the position to zero; a short position is bought back."""
    order_side, terms = "SELL" if held > 0 else "BUY", {"quantity": format(abs(held), "f")}
    payload = {"symbol": symbol, "order_side": order_side, "spec": {"Market": terms}}
    return Create(payload, symbol, order_side, "AUTO", Spec("Market", terms))
