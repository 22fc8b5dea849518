"""Errors as the caller sees them: problem+json (RFC 9457), or plain text where the specification says so.

A domain error is any exception class a service lists in its `STATUSES` table. Its `code` is the class name in
snake_case, its detail the message or else the docstring, and an optional `problem` attribute adds members such as
`reasons`. Every server renders errors with `problem_of` and `render`, which know no request and no framework.
"""

import json
import re
from collections.abc import Callable, Mapping
from http import HTTPStatus
from itertools import accumulate
from typing import Any, NamedTuple, TypeVar

from flask.json.provider import DefaultJSONProvider
from marshmallow import ValidationError
from sqlalchemy.exc import DataError, SQLAlchemyError
from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound

from chassis import db, logs

log = logs.get(__name__)

View = TypeVar("View", bound=Callable[..., Any])

RETRY_AFTER_S = 2
MAX_INSTANCE = 256
MAX_ERRORS, MAX_ERRORS_LENGTH = 20, 600
MAX_NAME = 64
CODES = {
    400: "bad_request",
    401: "unauthenticated",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    408: "request_timeout",
    409: "conflict",
    412: "precondition_failed",
    413: "body_too_large",
    414: "uri_too_long",
    415: "not_json",
    422: "invalid",
    429: "rate_limited",
    431: "headers_too_large",
    500: "internal",
    503: "unavailable",
}


class Problem(Exception):
    """An answer that is not a success, decided below the routes."""

    def __init__(
        self,
        status: int,
        code: str | None = None,
        detail: str = "",
        *,
        headers: Mapping[str, str] | None = None,
        **members: Any,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code or CODES.get(status, "error")
        self.detail = detail
        self.headers = dict(headers or {})
        self.members = members


_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="tip", ApiKey realm="tip"'}
_UNEXPECTED = "Something went wrong on our side. The request id finds it in the logs."
_NO_DATABASE = "The database does not answer; nothing was written. Try again."
_DUE_HEADERS: Mapping[int, Mapping[str, str]] = {401: _CHALLENGE, 503: {"Retry-After": str(RETRY_AFTER_S)}}


def unauthenticated(detail: str = "A valid credential is required.") -> Problem:
    return Problem(401, detail=detail, headers=_CHALLENGE)


def unavailable(detail: str = "A dependency is down; nothing was written. Try again.") -> Problem:
    return Problem(503, detail=detail, headers={"Retry-After": str(RETRY_AFTER_S)})


def outcome_unknown() -> Problem:
    detail = "The database was lost at the very commit: it is not known whether it was done. Look before you try again."
    return Problem(503, "outcome_unknown", detail, headers={"Retry-After": str(RETRY_AFTER_S)})


def not_found() -> Problem:
    """The same answer for what does not exist and what belongs to somebody else."""
    return Problem(404, detail="There is nothing here that you may see.")


def plain_text_errors(view: View) -> View:
    """Mark a view whose errors the specification wants as plain text."""
    view.plain_text_errors = True  # type: ignore[attr-defined]
    return view


class Answer(NamedTuple):
    """An HTTP response."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes


class RouteMatch(NamedTuple):
    """What a request was matched to: the service and route that metrics name, and the path that the caller sent."""

    service: str
    route: str
    path: str
    plain_text: bool = False
    """Whether the specification wants errors of this route as plain text."""
    is_route: bool = True
    """Whether a view serves this method at this path."""


def problem_of(error: Exception, statuses: Mapping[type[Exception], int], *, is_route: bool = True) -> Problem:
    """The problem that the caller sees for the error; `statuses` is the service's table of domain errors."""
    status = next((statuses[kind] for kind in type(error).__mro__ if kind in statuses), None)
    if status is not None:
        return _of_domain_error(error, status)
    if isinstance(error, Problem):
        return error
    if isinstance(error, ValidationError):
        return _of_validation(error)
    if isinstance(error, HTTPException):
        return _of_http(error, is_route)
    return _of_database(error) or Problem(500, detail=_UNEXPECTED)


def render(problem: Problem, match: RouteMatch, request_id: str | None) -> Answer:
    if match.plain_text:
        content_type, text = "text/plain; charset=utf-8", problem.detail or HTTPStatus(problem.status).phrase
    else:
        body = document(problem, match.path, request_id)
        content_type, text = "application/problem+json", json.dumps(body, default=DefaultJSONProvider.default)
    return Answer(problem.status, [("Content-Type", content_type), *problem.headers.items()], text.encode())


def answer(
    error: Exception, statuses: Mapping[type[Exception], int], match: RouteMatch, request_id: str | None
) -> Answer:
    """Render the error; one that is no caller's fault is logged."""
    problem = problem_of(error, statuses, is_route=match.is_route)
    log_fault(error, problem, match.path)
    return render(problem, match, request_id)


def log_fault(error: Exception, problem: Problem, path: str) -> None:
    if db.is_unavailable(error):
        log.warning("database_unavailable", **db.log_fields(error))
    elif problem.status == 500:
        log.error("unexpected_error", exc_info=error, path=path)


def document(problem: Problem, instance: str, request_id: str | None) -> dict[str, Any]:
    """The body of the answer; a path that is longer than any of ours is not sent back whole."""
    return {
        "type": f"urn:tip:problem:{problem.code}",
        "title": HTTPStatus(problem.status).phrase,
        "status": problem.status,
        "detail": problem.detail,
        "instance": instance[:MAX_INSTANCE],
        "code": problem.code,
        "request_id": request_id,
        **problem.members,
    }


def _of_domain_error(error: Exception, status: int) -> Problem:
    detail, headers = str(error) or _first_paragraph(error), _DUE_HEADERS.get(status, {})
    return Problem(status, code_of(type(error)), detail, headers=headers, **getattr(error, "problem", {}))


def code_of(error: type[Exception]) -> str:
    return str(getattr(error, "code", None) or re.sub(r"(?<=[a-z])(?=[A-Z])", "_", error.__name__).lower())


def _first_paragraph(error: Exception) -> str:
    paragraph, _, _ = (type(error).__doc__ or "").strip().partition("\n\n")
    return " ".join(paragraph.split())


def _of_validation(error: ValidationError) -> Problem:
    errors = pointers(error.messages)
    listed = _listed(errors)
    more = f" The first {len(listed)} of {len(errors)} are listed." if len(errors) > len(listed) else ""
    return Problem(422, detail=f"Some fields are not acceptable.{more}", errors=listed)


def _listed(errors: list[dict[str, str]]) -> list[dict[str, str]]:
    """The first ones, as many as there is room for: a refusal is hardly longer than its request."""
    ends = accumulate(len(json.dumps(error)) for error in errors)
    room = sum(end <= MAX_ERRORS_LENGTH for end in ends)
    return errors[: max(1, min(room, MAX_ERRORS))]


def _of_http(error: HTTPException, is_route: bool) -> Problem:
    headers = {}
    if isinstance(error, MethodNotAllowed) and error.valid_methods:
        headers["Allow"] = ", ".join(error.valid_methods)
    nowhere = isinstance(error, NotFound) and not is_route
    detail = "There is nothing at this path; /docs lists what there is." if nowhere else error.description
    return Problem(error.code or 500, detail=detail or "", headers=headers)


def _of_database(error: Exception) -> Problem | None:
    if not isinstance(error, SQLAlchemyError):
        return None
    if db.is_unavailable(error):
        return outcome_unknown() if db.was_committing(error) else unavailable(_NO_DATABASE)
    return Problem(400, detail="A value cannot be stored.") if isinstance(error, DataError) else None


def pointers(messages: Any, path: str = "") -> list[dict[str, str]]:
    """marshmallow's nested messages as a flat list with JSON pointers."""
    if isinstance(messages, dict):
        found: list[dict[str, str]] = []
        for key, inner in messages.items():
            found += pointers(inner, path if key == "_schema" else f"{path}/{_escape(str(key))}")
        return found
    return [{"pointer": path, "code": _message_code(message), "message": str(message)} for message in messages]


def _escape(key: str) -> str:
    """The name in a pointer. One that is longer than any of ours is cut: an answer does not repeat what was sent."""
    return key[:MAX_NAME].replace("~", "~0").replace("/", "~1")


_MARSHMALLOW_CODES = {
    "Missing data for required field.": "required",
    "Unknown field.": "unknown_field",
    "Field may not be null.": "null",
    "Invalid input type.": "type",
}


def _message_code(message: Any) -> str:
    return getattr(message, "code", None) or _MARSHMALLOW_CODES.get(str(message), "invalid")
