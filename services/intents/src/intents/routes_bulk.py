"""Bulk operations over HTTP: `POST …/intents/cancel`, `POST …/positions/close` and `GET …/bulk-operations/{id}`."""

from typing import Any
from uuid import UUID

from flask import Blueprint, g, jsonify, request
from flask.typing import ResponseReturnValue

from chassis.access import allow
from chassis.openapi import describe
from chassis.principals import api_key
from control_rules import KeyBounds
from intents import model, schemas_bulk, usecases
from intents.model.bulk_operations import BulkRequest, BulkType
from intents.routes import ORGANIZATION, READERS, deps
from intents.usecases import Reader

bp = Blueprint("bulk", __name__)
CANCELED_BY_CALLER = "CANCEL_ALL"
CLOSED_BY_CALLER = "CLOSE_POSITIONS"
_ONCE = {"Idempotency-Key": "1 to 255 printable characters; the same key and body are done once."}


@bp.post("/v1/accounts/<uuid:account_id>/intents/cancel")
@allow(api_key("intent:edit"))
@describe(
    "Cancel all open intents, or those of a symbol or side",
    body=schemas_bulk.CancelIntents,
    answers={202: schemas_bulk.BulkOperation},
    errors=(404, 409, 413, 415, 422),
    headers=_ONCE,
    answer_headers=("Location", "Idempotent-Replayed"),
    note="It needs no entitlement, and passes whatever the controls say.",
    codes=("limit_reached", "idempotent_request_in_flight", "idempotency_key_reused"),
)
def cancel_intents(account_id: UUID) -> ResponseReturnValue:
    account = usecases.account_of(deps(), Reader(g.principal, account_id))
    body = schemas_bulk.CancelIntents().load(_optional_body())
    reason = body.pop("reason") or CANCELED_BY_CALLER
    return _requested(
        BulkRequest(account.id, account.organization_id, BulkType.CANCEL_ORDERS, _actor(), reason, **body)
    )


@bp.post("/v1/accounts/<uuid:account_id>/positions/close")
@allow(api_key("intent:edit"))
@describe(
    "Close all positions, or that of a symbol, by market orders",
    body=schemas_bulk.ClosePositions,
    answers={202: schemas_bulk.BulkOperation},
    errors=(404, 409, 413, 415, 422),
    headers=_ONCE,
    answer_headers=("Location", "Idempotent-Replayed"),
    note="On a live account the organization needs the `trading_live` entitlement. Open orders of the symbols are "
    "canceled first. REDUCING lets the closing orders pass; HALTED does not: 422 `control_rejected`.",
    codes=(
        "entitlement_required",
        "limit_reached",
        "idempotent_request_in_flight",
        "idempotency_key_reused",
        "control_rejected",
    ),
)
def close_positions(account_id: UUID) -> ResponseReturnValue:
    facts = usecases.facts_of_account(deps(), account_id)
    account = model.tradable(facts.account, g.principal)
    body = schemas_bulk.ClosePositions().load(_optional_body())
    bounds = KeyBounds.of(g.principal.bounds.symbols, None)
    model.refuse_closing(model.with_key_bounds(facts, bounds), body["symbol"])
    reason = body["reason"] or CLOSED_BY_CALLER
    wanted = (account.id, account.organization_id, BulkType.CLOSE_POSITIONS, _actor(), reason, body["symbol"])
    return _requested(BulkRequest(*wanted))


@bp.get("/v1/accounts/<uuid:account_id>/bulk-operations/<uuid:bulk_operation_id>")
@allow(*READERS)
@describe(
    "Read how far a bulk operation has come",
    answers={200: schemas_bulk.BulkOperation},
    errors=(404,),
    headers=ORGANIZATION,
)
def read_bulk_operation(account_id: UUID, bulk_operation_id: UUID) -> ResponseReturnValue:
    found = usecases.read_bulk_operation(deps(), Reader(g.principal, account_id), bulk_operation_id)
    return jsonify(schemas_bulk.BulkOperation().dump(found))


def _requested(wanted: BulkRequest) -> ResponseReturnValue:
    key = schemas_bulk.idempotency_key(request.headers.get("Idempotency-Key"), wanted)
    operation, replayed = usecases.request_bulk_operation(deps(), wanted, key)
    headers = {"Location": schemas_bulk.location(operation)}
    if replayed:
        headers["Idempotent-Replayed"] = "true"
    return jsonify(schemas_bulk.BulkOperation().dump(operation)), 202, headers


def _actor() -> model.Actor:
    return model.Actor(g.principal.kind, g.principal.id)


def _optional_body() -> Any:
    return request.get_json() if request.get_data(cache=True) else {}
