"""The JSON of bulk operations."""

import hashlib
import json

from marshmallow import Schema, fields

from chassis.fields import Choice, Identifier, Instant, Text, Whole
from intents import model
from intents.model import bulk_operations
from intents.model.bulk_operations import BulkRequest, BulkStatus, BulkType
from intents.schemas_submits import Symbol, checked_key

REASON_LONGEST = 64
MOST_INTENTS = 2**31 - 1


class CancelIntents(Schema):
    symbol = Symbol(longest=64, allow_none=True, load_default=None)
    order_side = Choice(model.ORDER_SIDES, allow_none=True, load_default=None)
    reason = Text(longest=REASON_LONGEST, allow_none=True, load_default=None)


class ClosePositions(Schema):
    symbol = Symbol(longest=64, allow_none=True, load_default=None)
    reason = Text(longest=REASON_LONGEST, allow_none=True, load_default=None)


class ClosingRefusal(Schema):
    symbol = Text(longest=32, required=True)
    reasons = fields.List(fields.Dict(), required=True)


class AwaitedOrder(Schema):
    intent_id = Identifier(required=True)
    status = Choice(tuple(model.Status), required=True)
    reason_code = Text(longest=64, required=True, allow_none=True)
    outcome = Choice(("unknown",), required=True, allow_none=True)


class BulkActor(Schema):
    type = Choice(("api_key", "user", "service_account", "system"), required=True)
    id = Text(longest=255, required=True)


class BulkOperation(Schema):
    id = Identifier(required=True)
    account_id = Identifier(required=True)
    organization_id = Identifier(required=True, attribute="request.organization_id")
    type = Choice(tuple(BulkType), required=True, attribute="request.type")
    symbol = Text(longest=32, required=True, allow_none=True, attribute="request.symbol")
    order_side = Choice(model.ORDER_SIDES, required=True, allow_none=True, attribute="request.order_side")
    reason = Text(longest=REASON_LONGEST, required=True, attribute="request.reason")
    actor = fields.Nested(BulkActor, required=True, attribute="request.actor")
    status = Choice(tuple(BulkStatus), required=True)
    total = Whole(least=0, most=MOST_INTENTS, required=True)
    done = Whole(least=0, most=MOST_INTENTS, required=True)
    refusals = fields.List(
        fields.Nested(ClosingRefusal),
        required=True,
        metadata={"description": "Positions whose closing order the controls have refused."},
    )
    waiting_for = fields.List(
        fields.Nested(AwaitedOrder),
        required=True,
        metadata={"description": "Of a read: up to 20 of its orders that have not ended, and why not."},
    )
    created_at = Instant(required=True)
    updated_at = Instant(required=True)
    completed_at = Instant(required=True, allow_none=True)


def idempotency_key(header: str | None, request: BulkRequest) -> model.IdempotencyKey | None:
    """The value of Idempotency-Key, with what the request says."""
    if header is None:
        return None
    said = [request.type, request.symbol, request.order_side, request.reason]
    return model.IdempotencyKey(checked_key(header), hashlib.sha256(json.dumps(said).encode()).digest())


def location(operation: bulk_operations.BulkOperation) -> str:
    return f"/v1/accounts/{operation.account_id}/bulk-operations/{operation.id}"
