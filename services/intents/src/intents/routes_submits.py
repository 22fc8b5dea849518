"""Submitting intents over HTTP, one by one and in batches: operations of the blueprint of `routes`."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from flask import g, request
from flask.typing import ResponseReturnValue

from chassis import http_rules, keys, problems, ratelimit, strict_json, tenancy, tracing
from chassis.access import BadId, allow, charge
from chassis.authentication import KeyRow
from chassis.callers import leaves_room
from chassis.openapi import describe
from chassis.principals import Principal, api_key
from chassis.problems import Answer, Problem, RouteMatch
from control_rules import KeyBounds
from intents import model, routes, schemas, schemas_commands, schemas_submits, usecases
from intents.model import IdempotencyKey, Submission
from intents.routes import STATUSES, deps, json_response
from intents.store import FactsQuery
from intents.usecases import PendingSubmit, Policy

bp = routes.bp
SUBMITTERS = (api_key("intent:edit"),)
SIBLING_REFUSED = 424
_LIVE = "On a live account CREATE and REPLACE need the `trading_live` entitlement of the organization."
_NOTE = (
    f"{_LIVE} While commands wait too long to be sent, CREATE and REPLACE are 503 `overloaded` with `Retry-After`; "
    "CANCEL passes."
)
_ONCE = {"Idempotency-Key": "1 to 255 printable characters; the same key and body are done once within 24 hours."}


def _facts_and_keys(key: str, account_id: UUID | BadId) -> Sequence[KeyRow]:
    """The caller's key and all that deciding the command needs, in one read."""
    g.attempt = schemas_submits.attempt(request)
    command = g.attempt.command
    query = FactsQuery(
        None if isinstance(account_id, BadId) else account_id,
        command and command.symbol,
        command and command.ref_intent_id,
        request.headers.get("Idempotency-Key"),
        key,
        command and command.client_id,
    )
    with tenancy.serving_keys([keys.digest(key)]):
        g.facts, rows = usecases.load_facts(deps(), query)
    return rows


@bp.post("/v1/accounts/<uuid:account_id>/intents")
@allow(*SUBMITTERS, find_keys=_facts_and_keys)
@describe(
    "Append an intent command",
    body=schemas_submits.SubmitIntent,
    answers={200: schemas.Action, 201: schemas.Action},
    errors=(404, 409, 413, 415, 422),
    query={"dry_run": {"type": "boolean", "default": False}},
    headers=_ONCE,
    answer_headers=("Idempotent-Replayed",),
    note=_NOTE,
    schemas=schemas_commands.SCHEMAS,
    codes=(
        "entitlement_required",
        "intent_terminal",
        "intent_busy",
        "client_id_taken",
        "idempotent_request_in_flight",
        "idempotency_key_reused",
        "broker_cannot",
        "control_rejected",
        "overloaded",
    ),
)
def submit_intent(account_id: UUID) -> ResponseReturnValue:
    model.tradable(g.facts.account, g.principal, g.attempt.command)
    dry_run, command = _dry_run(), g.attempt.loaded()
    key = schemas_submits.idempotency_key(request.headers.get("Idempotency-Key"), command)
    submission = submission_of(account_id, g.principal, command, key, g.trace, dry_run=dry_run)
    [outcome] = usecases.submit(deps(), [PendingSubmit(submission, g.facts)], Policy.EACH, _deadline())
    if isinstance(outcome, Exception):
        raise outcome
    return json_response(model.record(outcome.action), status_of(outcome), headers_of(outcome))


def submission_of(
    account_id: UUID,
    principal: Principal,
    command: model.Command,
    key: IdempotencyKey | None,
    trace: tracing.Trace,
    *,
    dry_run: bool = False,
) -> Submission:
    actor = model.Actor(principal.kind, principal.id)
    return Submission(
        account_id,
        command,
        actor,
        principal,
        key,
        dry_run,
        traceparent=trace.traceparent,
        request_id=trace.request_id,
        key_bounds=KeyBounds.of(principal.bounds.symbols, principal.bounds.max_notional_per_day),
    )


def answer_of(outcome: usecases.Outcome, match: RouteMatch, request_id: str | None) -> Answer:
    """The answer to a submit that Flask does not serve."""
    if isinstance(outcome, Exception):
        return problems.answer(outcome, STATUSES, match, request_id)
    headers = [("Content-Type", "application/json"), *headers_of(outcome)]
    return Answer(status_of(outcome), headers, strict_json.dumps(model.record(outcome.action)))


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
    body=schemas_submits.SubmitBatch,
    answers={200: schemas.BatchResults},
    errors=(404, 409, 413, 415, 422),
    query={"dry_run": {"type": "boolean", "default": False}},
    headers=_ONCE,
    note=_NOTE,
    schemas=schemas_commands.SCHEMAS,
    heavy=True,
    codes=("entitlement_required", "idempotent_request_in_flight", "batch_rejected", "overloaded"),
)
def submit_batch(account_id: UUID) -> ResponseReturnValue:
    parsed = schemas_submits.attempt_batch(request)
    account = usecases.load_facts(deps(), FactsQuery(account_id)).facts.account
    model.tradable(account, g.principal, parsed.first_cancel)
    dry_run, key = _dry_run(), request.headers.get("Idempotency-Key")
    batch = parsed.loaded()
    charge(ratelimit.units_of_commands(len(batch.commands)))
    attempts = zip(batch.commands, schemas_submits.batch_keys(key, len(batch.commands)), strict=True)
    pending = [_pending(account_id, attempt, own_key, dry_run=dry_run) for attempt, own_key in attempts]
    policy = Policy.ATOMIC if batch.atomic and not dry_run else Policy.EACH
    outcomes = usecases.submit(deps(), pending, policy, _deadline(), leaves_room=leaves_room() and not dry_run)
    if batch.atomic:
        _raise_overload(outcomes)
    return _answer_batch([_outcome(place, outcome) for place, outcome in enumerate(outcomes)], atomic=batch.atomic)


def _pending(account_id: UUID, attempt: schemas_submits.Attempt, key: str | None, *, dry_run: bool) -> PendingSubmit:
    if attempt.command is None:
        return PendingSubmit(attempt.error or Problem(400))
    once = None if key is None else IdempotencyKey(key, schemas_submits.request_hash(attempt.command))
    return PendingSubmit(submission_of(account_id, g.principal, attempt.command, once, g.trace, dry_run=dry_run))


def _outcome(place: int, outcome: usecases.Outcome) -> dict[str, Any]:
    if isinstance(outcome, usecases.Result):
        return {"status": status_of(outcome), "action": model.record(outcome.action)}
    if isinstance(outcome, usecases.SiblingRefused):
        return {"status": SIBLING_REFUSED}
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


def _raise_overload(outcomes: Sequence[usecases.Outcome]) -> None:
    """Nothing is wrong with any command of the batch: it may be sent again as it is."""
    for outcome in outcomes:
        if isinstance(outcome, model.Overloaded):
            raise outcome


def _answer_batch(results: list[dict[str, Any]], *, atomic: bool) -> ResponseReturnValue:
    if atomic and any("action" not in result for result in results):
        raise model.BatchRejected(_as_a_whole(results))
    return json_response({"results": results})


def _as_a_whole(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """With the first refusal alone: a dry run decides each command by itself, but answers as the batch would be."""
    first = next((place for place, result in enumerate(results) if "problem" in result), None)
    return [result if place == first else {"status": SIBLING_REFUSED} for place, result in enumerate(results)]
