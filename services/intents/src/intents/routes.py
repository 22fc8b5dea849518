"""intents over HTTP."""

from collections.abc import Sequence
from functools import partial
from typing import Any, cast
from uuid import UUID

from flask import Blueprint, Response, current_app, g, json, request
from flask.typing import ResponseReturnValue
from marshmallow import ValidationError

from chassis import cursors, http_rules, problems, ratelimit
from chassis.access import BadId, KeyRow, allow, charge, page_size
from chassis.cursors import Cursors
from chassis.openapi import describe
from chassis.principals import ANY_ROLE, api_key, service_account, user
from chassis.problems import Answer, Place, Problem
from intents import model, schemas, usecases
from intents.model import IdempotencyKey, chain
from intents.store import FactsQuery

bp = Blueprint("intents", __name__)

STATUSES: dict[type[Exception], int] = {
    model.AccountNotFound: 404,
    model.IntentNotFound: 404,
    model.Forbidden: 403,
    model.EntitlementRequired: 403,
    model.IntentTerminal: 409,
    model.IntentBusy: 409,
    model.IdempotentRequestInFlight: 409,
    model.IdempotencyKeyReused: 422,
    model.InvalidReplacement: 422,
    model.ControlRejected: 422,
    model.BatchRejected: 422,
    model.OutcomeUnknown: 503,
}
_REFUSALS = (*(error for error, status in STATUSES.items() if status < 500), ValidationError, Problem)
SUBMITTERS = (api_key("intent:edit"),)
_READERS = (user(*ANY_ROLE), api_key("intent:read"), service_account("intent:read"))
_PAGE: dict[str, dict[str, Any]] = {
    "limit": {"type": "integer", "minimum": 1, "maximum": cursors.MAX_LIMIT, "default": cursors.DEFAULT_LIMIT},
    "next_cursor": {"type": "string"},
}
_ORGANIZATION = {"x-organization-id": "The organization whose account this is; for service accounts."}
_ONCE = {"Idempotency-Key": "1 to 255 printable characters; the same key and body are done once within 24 hours."}


def deps() -> usecases.Deps:
    return cast("usecases.Deps", current_app.extensions["deps"])


def _facts_and_keys(key: str, account_id: UUID | BadId) -> Sequence[KeyRow]:
    """The caller's key and all that deciding the command needs, in one read."""
    g.attempt = schemas.attempt(request)
    command = g.attempt.command
    query = FactsQuery(
        None if isinstance(account_id, BadId) else account_id,
        command and command.symbol,
        command and command.ref_intent_id,
        request.headers.get("Idempotency-Key"),
        key,
    )
    g.facts, keys = usecases.load_facts(deps(), query)
    return keys


@bp.post("/v1/accounts/<uuid:account_id>/intents")
@allow(*SUBMITTERS, find_keys=_facts_and_keys)
@describe(
    "Append an intent command",
    body=schemas.SubmitIntent,
    answers={200: schemas.Action, 201: schemas.Action},
    errors=(404, 409, 413, 415, 422),
    query={"dry_run": {"type": "boolean", "default": False}},
    headers=_ONCE,
    note="On a live account the organization needs the `trading_live` entitlement.",
)
def submit_intent(account_id: UUID) -> ResponseReturnValue:
    model.tradable(g.facts.account, g.principal)
    dry_run, key = _dry_run(), request.headers.get("Idempotency-Key")
    asked = submission(account_id, g.attempt.loaded(), key, dry_run)
    result = usecases.submit(deps(), g.principal, g.facts, asked, _deadline())
    answer = answer_of(result, Place("intents", "", request.path), None)
    return Response(answer.body, answer.status, answer.headers)


def answer_of(outcome: usecases.Result | Exception, place: Place, request_id: str | None) -> Answer:
    """The answer to a submit, whoever serves it."""
    if isinstance(outcome, Exception):
        return problems.answer(outcome, STATUSES, place, request_id)
    headers = [("Content-Type", "application/json"), *headers_of(outcome)]
    return Answer(status_of(outcome), headers, json.dumps(model.record(outcome.action)).encode())


def submission(account_id: UUID, command: model.Command, key: str | None, dry_run: bool = False) -> usecases.Submission:
    once = None if key is None else IdempotencyKey(schemas.idempotency_key(key), schemas.request_hash(command))
    return usecases.Submission(account_id, command, once, dry_run)


def status_of(result: usecases.Result) -> int:
    return 201 if result.created else 200


def headers_of(result: usecases.Result) -> list[tuple[str, str]]:
    found = []
    if result.created:
        found.append(("Location", f"/v1/accounts/{result.action.account_id}/intents/{result.action.intent_id}"))
    if result.replayed:
        found.append(("Idempotent-Replayed", "true"))
    return found


def _deadline() -> usecases.Deadline:
    return usecases.Deadline.of_request(request.environ.get(http_rules.ARRIVED))


def _dry_run() -> bool:
    given = request.args.get("dry_run")
    if given not in (None, "true", "false"):
        raise Problem(400, "bad_dry_run", "dry_run must be true or false.")
    return given == "true"


@bp.post("/v1/accounts/<uuid:account_id>/intents/batch")
@allow(*SUBMITTERS)
@describe(
    "Append up to 100 intent commands",
    body=schemas.SubmitBatch,
    answers={200: schemas.BatchResults},
    errors=(404, 409, 413, 415, 422),
    query={"dry_run": {"type": "boolean", "default": False}},
    headers=_ONCE,
    note="On a live account the organization needs the `trading_live` entitlement.",
    heavy=True,
)
def submit_batch(account_id: UUID) -> ResponseReturnValue:
    facts, _keys = usecases.load_facts(deps(), FactsQuery(account_id))
    account = model.tradable(facts.account, g.principal)
    dry_run, key = _dry_run(), request.headers.get("Idempotency-Key")
    batch = schemas.batch(request)
    charge(ratelimit.units_of_commands(len(batch.commands)))
    keys = schemas.batch_keys(key, len(batch.commands))
    attempts = [
        partial(_attempted, account_id, attempt, key, dry_run)
        for attempt, key in zip(batch.commands, keys, strict=True)
    ]
    if batch.atomic and not dry_run:
        outcomes = usecases.submit_all(deps(), g.principal, account, attempts, batch.references, _REFUSALS, _deadline())
    else:
        outcomes = usecases.submit_each(deps(), g.principal, attempts, _deadline())
    return _answer_batch([_outcome(*one) for one in enumerate(outcomes)], atomic=batch.atomic)


def _attempted(account_id: UUID, attempt: schemas.Attempt, key: str | None, dry_run: bool) -> usecases.Submission:
    command = attempt.loaded()
    once = None if key is None else IdempotencyKey(key, schemas.request_hash(command))
    return usecases.Submission(account_id, command, once, dry_run)


def _outcome(place: int, outcome: usecases.Outcome) -> dict[str, Any]:
    if isinstance(outcome, usecases.Result):
        return {"status": status_of(outcome), "action": model.record(outcome.action)}
    if outcome is None:
        return {"status": 424}
    problem = problems.problem_of(outcome, STATUSES)
    problems.log_fault(outcome, problem, request.path)
    document = problems.document(problem, request.path, g.trace.request_id)
    return {"status": problem.status, "problem": _in_batch(place, document)}


def _in_batch(place: int, problem: dict[str, Any]) -> dict[str, Any]:
    """With pointers into the body of the batch."""
    if "errors" not in problem:
        return problem
    at = f"/commands/{place}"
    errors = [error | {"pointer": at + error["pointer"].removeprefix("/command")} for error in problem["errors"]]
    return problem | {"errors": errors}


def _answer_batch(results: list[dict[str, Any]], *, atomic: bool) -> ResponseReturnValue:
    if atomic and any("action" not in result for result in results):
        raise model.BatchRejected(results)
    return _json({"results": results})


@bp.get("/v1/accounts/<uuid:account_id>/intents")
@allow(*_READERS)
@describe(
    "List action records",
    answers={200: schemas.ActionPage},
    errors=(404,),
    query=_PAGE,
    headers=_ORGANIZATION,
)
def list_intents(account_id: UUID) -> ResponseReturnValue:
    about = _about(account_id, "list")
    return _paged(usecases.list_actions(deps(), _reader(account_id), partial(_place, about)), about)


@bp.get("/v1/accounts/<uuid:account_id>/intents/stats")
@allow(*_READERS)
@describe(
    "Intent statistics",
    answers={200: schemas.Statistics},
    errors=(404,),
    query={"time_window": {"type": "string", "enum": list(model.WINDOWS), "default": "last_day"}},
    headers=_ORGANIZATION,
)
def stats(account_id: UUID) -> ResponseReturnValue:
    found = usecases.statistics(deps(), _reader(account_id), _time_window)
    return _json(schemas.Statistics().dump(found))


def _time_window() -> str:
    asked = request.args.get("time_window")
    time_window = "last_day" if asked is None else asked
    if time_window not in model.WINDOWS:
        raise Problem(400, "bad_time_window", f"time_window must be one of {', '.join(model.WINDOWS)}.")
    charge(ratelimit.STATISTICS_UNITS)
    return time_window


@bp.get("/v1/accounts/<uuid:account_id>/intents/verify")
@allow(*_READERS)
@describe(
    "Check the chain of action records",
    answers={200: schemas.Verification},
    errors=(404,),
    query={"next_cursor": {"type": "string"}},
    headers=_ORGANIZATION,
    heavy=True,
)
def verify(account_id: UUID) -> ResponseReturnValue:
    about = _about(account_id, "verify")
    found = usecases.verify(deps(), _reader(account_id), partial(_link, about))
    return _json(
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
@allow(*_READERS)
@describe("Latest action of an intent", answers={200: schemas.Action}, errors=(404,), headers=_ORGANIZATION)
def latest(account_id: UUID, intent_id: UUID) -> ResponseReturnValue:
    return _json(model.record(usecases.latest_action(deps(), _reader(account_id), intent_id)))


@bp.get("/v1/accounts/<uuid:account_id>/intents/<uuid:intent_id>/actions")
@allow(*_READERS)
@describe(
    "Action history of an intent",
    answers={200: schemas.ActionPage},
    errors=(404,),
    query=_PAGE,
    headers=_ORGANIZATION,
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
    return _json({"data": [model.record(action) for action in page.actions], "next_cursor": following})


def _json(body: Any, status: int = 200, headers: list[tuple[str, str]] | None = None) -> Response:
    return Response(json.dumps(body), status, headers, content_type="application/json")
