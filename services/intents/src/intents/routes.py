"""intents over HTTP."""

from functools import partial
from typing import Any, cast
from uuid import UUID

from flask import Blueprint, Response, current_app, g, request
from flask.typing import ResponseReturnValue

from chassis import cursors, ratelimit, strict_json
from chassis.access import allow, charge, page_size
from chassis.cursors import Cursors
from chassis.openapi import describe
from chassis.principals import ANY_ROLE, api_key, service_account, user
from chassis.problems import Problem
from intents import model, schemas, usecases
from intents.model import chain

bp = Blueprint("intents", __name__)

STATUSES: dict[type[Exception], int] = {
    model.AccountNotFound: 404,
    model.IntentNotFound: 404,
    model.BulkOperationNotFound: 404,
    model.Forbidden: 403,
    model.EntitlementRequired: 403,
    model.IntentTerminal: 409,
    model.IntentBusy: 409,
    model.StatementNotSigned: 409,
    model.LimitReached: 409,
    model.ClientIdTaken: 409,
    model.IdempotentRequestInFlight: 409,
    model.IdempotencyKeyReused: 422,
    model.InvalidReplacement: 422,
    model.BrokerCannot: 422,
    model.ControlRejected: 422,
    model.BatchRejected: 422,
    model.OutcomeUnknown: 503,
    model.Overloaded: 503,
}
READERS = (user(*ANY_ROLE), api_key("intent:read"), service_account("intent:read"))
PAGE: dict[str, dict[str, Any]] = {
    "limit": {"type": "integer", "minimum": 1, "maximum": cursors.MAX_LIMIT, "default": cursors.DEFAULT_LIMIT},
    "next_cursor": {"type": "string"},
}
ORGANIZATION = {"x-organization-id": "The organization whose account this is; for service accounts."}


def deps() -> usecases.Deps:
    return cast("usecases.Deps", current_app.extensions["deps"])


@bp.get("/v1/accounts/<uuid:account_id>/intents")
@allow(*READERS)
@describe(
    "List action records",
    answers={200: schemas.ActionPage},
    errors=(404,),
    query=PAGE,
    headers=ORGANIZATION,
)
def list_intents(account_id: UUID) -> ResponseReturnValue:
    about = _about(account_id, "list")
    return _paged(usecases.list_actions(deps(), _reader(account_id), partial(_place, about)), about)


@bp.get("/v1/accounts/<uuid:account_id>/intents/stats")
@allow(*READERS)
@describe(
    "Intent statistics",
    answers={200: schemas.Statistics},
    errors=(404,),
    query={"time_window": {"type": "string", "enum": list(model.WINDOWS), "default": "last_day"}},
    headers=ORGANIZATION,
)
def stats(account_id: UUID) -> ResponseReturnValue:
    found = usecases.statistics(deps(), _reader(account_id), _time_window)
    return json_response(schemas.Statistics().dump(found))


def _time_window() -> str:
    given = request.args.get("time_window")
    time_window = "last_day" if given is None else given
    if time_window not in model.WINDOWS:
        raise Problem(400, "bad_time_window", f"time_window must be one of {', '.join(model.WINDOWS)}.")
    charge(ratelimit.STATISTICS_UNITS)
    return time_window


@bp.get("/v1/accounts/<uuid:account_id>/intents/verify")
@allow(*READERS)
@describe(
    "Check the chain of the log",
    answers={200: schemas.Verification},
    errors=(404,),
    query={"next_cursor": {"type": "string"}},
    headers=ORGANIZATION,
    heavy=True,
)
def verify(account_id: UUID) -> ResponseReturnValue:
    about = _about(account_id, "verify")
    found = usecases.verify(deps(), _reader(account_id), partial(_link, about))
    return json_response(
        {
            "account_id": str(account_id),
            "valid": found.broken is None,
            "checked": found.checked,
            "last_sequence": found.last_sequence,
            "signed_sequence": found.signed_sequence,
            "log_epoch": str(found.epoch),
            "first_broken": found.broken._asdict() if found.broken else None,
            "next_cursor": _cursors().write(about, [str(found.epoch), found.last_sequence, found.hash.hex()])
            if found.unfinished and found.broken is None
            else None,
        }
    )


def _link(about: tuple[str, ...], epoch: UUID, last_sequence: int) -> tuple[int, bytes]:
    sequence, previous = _continued(about, request.args.get("next_cursor"), epoch) or [0, chain.GENESIS.hex()]
    charge(ratelimit.units_of_rows(usecases.rows_to_verify(sequence, last_sequence)))
    return sequence, bytes.fromhex(previous)


@bp.get("/v1/accounts/<uuid:account_id>/intents/<uuid:intent_id>")
@allow(*READERS)
@describe("Latest action of an intent", answers={200: schemas.Action}, errors=(404,), headers=ORGANIZATION)
def latest(account_id: UUID, intent_id: UUID) -> ResponseReturnValue:
    return json_response(model.record(usecases.latest_action(deps(), _reader(account_id), intent_id)))


@bp.get("/v1/accounts/<uuid:account_id>/intents/<uuid:intent_id>/actions")
@allow(*READERS)
@describe(
    "Action history of an intent",
    answers={200: schemas.ActionPage},
    errors=(404,),
    query=PAGE,
    headers=ORGANIZATION,
)
def actions(account_id: UUID, intent_id: UUID) -> ResponseReturnValue:
    about = _about(account_id, f"actions:{intent_id}")
    return _paged(usecases.action_history(deps(), _reader(account_id), intent_id, partial(_place, about)), about)


def _reader(account_id: UUID) -> usecases.Reader:
    return usecases.Reader(g.principal, account_id)


def _cursors() -> Cursors:
    return cast("Cursors", current_app.extensions["cursors"])


def _about(account_id: UUID, query: str) -> tuple[str, ...]:
    return str(g.principal.organization_id), str(account_id), query


def _continued(about: tuple[str, ...], cursor: str | None, epoch: UUID) -> list[Any] | None:
    """What a cursor says beside its epoch. After a restore its sequence would mean another place in the log."""
    position = _cursors().read(about, cursor)
    if position is None:
        return None
    written_in, *place = position
    if written_in != str(epoch):
        raise Problem(400, "bad_cursor", "The log was restored after next_cursor was made. Begin the list anew.")
    return place


def _place(about: tuple[str, ...], epoch: UUID) -> tuple[int, int]:
    limit = page_size(request.args.get("limit"))
    [after] = _continued(about, request.args.get("next_cursor"), epoch) or [0]
    return after, limit


def _paged(page: usecases.Page, about: tuple[str, ...]) -> Response:
    following = None if page.last is None else _cursors().write(about, [str(page.epoch), page.last])
    return json_response({"data": [model.record(action) for action in page.actions], "next_cursor": following})


def json_response(body: Any, status: int = 200, headers: list[tuple[str, str]] | None = None) -> Response:
    return Response(strict_json.dumps(body), status, headers, content_type="application/json")
