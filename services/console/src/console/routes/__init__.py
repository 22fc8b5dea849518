"""The pages of the console."""

from typing import Any
from urllib.parse import quote

from flask import Blueprint, Flask, Response, jsonify, request
from flask.typing import ResponseReturnValue

from chassis import metrics, problems
from console import model, providers
from console.api import ApiProblem, OutcomeUnknown, PlatformAway
from console.routes import (
    accounts,
    administration,
    audit,
    audit_log,
    common,
    credentials,
    filters,
    holdings,
    keys,
    manual,
    orders,
    outbox,
    overview,
    people,
    records,
    risk,
    sign_in,
    symbols,
    ticket,
)

STATUSES: dict[type[Exception], int] = {model.SignInFailed: 403, model.SignedOut: 401, PlatformAway: 503}
RISK = (risk.bp, symbols.bp, records.bp, overview.bp)
ADMINISTRATION = (administration.bp, credentials.bp, people.bp, keys.bp, audit_log.bp, outbox.bp, audit.bp)
TRADING = (accounts.bp, orders.bp, ticket.bp, holdings.bp)
PAGES: tuple[Blueprint, ...] = (sign_in.bp, *TRADING, *RISK, *ADMINISTRATION, manual.bp)
operations = Blueprint("operations", __name__)


def register(app: Flask) -> None:
    for blueprint in (*PAGES, operations):
        app.register_blueprint(blueprint)
    app.jinja_env.trim_blocks = app.jinja_env.lstrip_blocks = True
    app.jinja_env.filters |= filters.FILTERS
    app.register_error_handler(model.SignedOut, _ask_to_sign_in)
    app.register_error_handler(ApiProblem, _show_refusal)
    app.register_error_handler(Exception, _show_problem)


def _ask_to_sign_in(_: Exception) -> ResponseReturnValue:
    """Whoever reads a page goes to sign in and comes back to it; a script learns that it has to."""
    if request.method != "GET" or request.headers.get("Sec-Fetch-Dest", "document") != "document":
        return _refused(401, "signed_out", "The session has ended. Load the page again.")
    here = quote(request.full_path.rstrip("?"), safe="/")
    return common.go_to(f"/console/sign-in?next={here}")


def _show_refusal(problem: ApiProblem) -> ResponseReturnValue:
    """What the API refused. A token that it no longer takes is the end of the session."""
    if problem.status == 401:
        return _ask_to_sign_in(problem)
    return _refused(problem.status, problem.code, problem.detail)


def _show_problem(error: Exception) -> ResponseReturnValue:
    """Everything else, also what is our own fault, as a page."""
    problem = problems.problem_of(error, STATUSES)
    problems.log_fault(error, problem, request.path)
    response = _refused(problem.status, problem.code, problem.detail)
    response.headers.update(problem.headers)
    return response


_TITLES = {403: "Not allowed", 404: "Not found", 429: "Too much at once", 503: "Not available"}


def _refused(status: int, code: str, text: str) -> Response:
    if request.headers.get("Accept", "").startswith("application/json"):
        response: Response = jsonify(code=code, detail=text)
        response.status_code = status
        return response
    is_unknown = code == problems.code_of(OutcomeUnknown)
    title = "Not known" if is_unknown else _TITLES.get(status, "That did not work")
    values: dict[str, Any] = {"title": title, "text": text, "code": code, "look": is_unknown}
    is_away = status == 503 and not is_unknown
    begins_anew = is_away and request.path == providers.CALLBACK  # the code in the address may be spent
    values |= {
        "sign_in": status == 401 or code == "sign_in_failed" or begins_anew,
        "again": is_away and not begins_anew,
    }
    return common.page("message.html", status, **values, reloads=values["again"] and request.method == "GET")


@operations.get("/health/live")
def live() -> ResponseReturnValue:
    return jsonify(status="live")


@operations.get("/health/ready")
def ready() -> ResponseReturnValue:
    common.deps().sessions.ping()
    return jsonify(status="ready")


@operations.get("/metrics")
def exposed() -> ResponseReturnValue:
    return Response(metrics.exposition(), content_type="text/plain; version=0.0.4")
