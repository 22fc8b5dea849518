"""Every error as the caller sees it: pure functions, no app and no request."""

import json
from decimal import Decimal
from uuid import UUID

import pytest
from flask import Flask
from marshmallow import ValidationError
from sqlalchemy import exc
from werkzeug.exceptions import MethodNotAllowed, NotFound

from chassis import problems, tracing, web
from chassis.problems import Problem, RouteMatch, problem_of, render

MATCH = RouteMatch("service", "/v1/things", "/v1/things")


class ThingTaken(Exception):
    """Somebody else has the thing."""


class ThingTakenTwice(ThingTaken):
    """Two others have the thing. Wait until both have given it back, which may take long, or look for another
    one.

    What stands here is for the reader of the code.
    """


def lost(statement: str | None) -> exc.OperationalError:
    return exc.OperationalError(statement, None, Exception("gone"), connection_invalidated=True)


STATUSES: dict[type[Exception], int] = {ThingTaken: 409}
ERRORS: dict[str, tuple[Exception, int, str, str]] = {
    # the error, then status, code and a part of the detail
    "a domain error": (ThingTaken(), 409, "thing_taken", "Somebody else"),
    "a domain error with a message": (ThingTaken("It is mine."), 409, "thing_taken", "It is mine."),
    "a kind of it that has no status": (ThingTakenTwice(), 409, "thing_taken_twice", "or look for another one."),
    "a problem": (Problem(412, detail="No."), 412, "precondition_failed", "No."),
    "a bad field": (ValidationError({"name": ["No."]}), 422, "invalid", "not acceptable"),
    "a wrong method": (MethodNotAllowed(["GET"]), 405, "method_not_allowed", "not allowed"),
    "a thing that is gone": (NotFound(), 404, "not_found", "not found"),
    "a lost connection": (lost("SELECT 1"), 503, "unavailable", "nothing was written"),
    "a lost commit": (lost(None), 503, "outcome_unknown", "not known"),
    "a value no column takes": (exc.DataError("x", None, Exception("x")), 400, "bad_request", "cannot be stored"),
    "a query of ours that is wrong": (exc.ProgrammingError("x", None, Exception("x")), 500, "internal", "our side"),
    "a bug": (ZeroDivisionError("secret"), 500, "internal", "our side"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_has_one_status_code_and_detail_wherever_it_is_rendered(name: str) -> None:
    error, status, code, detail = ERRORS[name]

    answer = render(problem_of(error, STATUSES), MATCH, "r-1")

    body = json.loads(answer.body)
    assert (answer.status, body["status"], body["code"]) == (status, status, code)
    assert detail in body["detail"] and "secret" not in body["detail"]
    assert (body["instance"], body["request_id"]) == ("/v1/things", "r-1")
    assert dict(answer.headers)["Content-Type"] == "application/problem+json"
    assert ("Retry-After" in dict(answer.headers)) is (status == 503)


def test_the_problem_of_a_path_that_is_no_route_says_where_the_routes_are_listed() -> None:
    assert "/docs" in problem_of(NotFound(), {}, is_route=False).detail
    assert "/docs" not in problem_of(NotFound(), {}).detail


def test_the_methods_of_a_path_are_named_to_who_tries_another() -> None:
    assert problem_of(MethodNotAllowed(["GET", "POST"]), {}).headers == {"Allow": "GET, POST"}


def test_an_error_is_plain_text_where_the_specification_says_so() -> None:
    answer = render(Problem(403, detail="Not you."), MATCH._replace(plain_text=True), None)

    assert (answer.body, dict(answer.headers)["Content-Type"]) == (b"Not you.", "text/plain; charset=utf-8")


def test_members_of_a_problem_may_be_what_json_has_no_word_for() -> None:
    answer = render(Problem(422, amount=Decimal("1.50"), account_id=UUID(int=1)), MATCH, None)

    body = json.loads(answer.body)
    assert (body["amount"], body["account_id"]) == ("1.50", str(UUID(int=1)))


def app() -> Flask:
    made = web.bare("shop", {})

    @made.get("/things/<uuid:thing_id>")
    def thing(thing_id: UUID) -> str:
        return str(thing_id)

    @made.delete("/me")
    @problems.plain_text_errors
    def me() -> str:
        return ""

    return made


@pytest.mark.parametrize(
    ("method", "path", "match"),
    [
        ("GET", "/things/x", RouteMatch("shop", "/things/<uuid:thing_id>", "/things/x")),
        ("HEAD", "//things/x", RouteMatch("shop", "/things/<uuid:thing_id>", "/things/x")),
        ("DELETE", "/me", RouteMatch("shop", "/me", "/me", plain_text=True)),
        ("GET", "/me", RouteMatch("shop", "unmatched", "/me", plain_text=True, is_route=False)),
        ("POST", "/things/x", RouteMatch("shop", "unmatched", "/things/x", is_route=False)),
        ("GET", "/nothing", RouteMatch("shop", "unmatched", "/nothing", is_route=False)),
    ],
)
def test_a_request_is_matched_before_any_app_has_seen_it(method: str, path: str, match: RouteMatch) -> None:
    assert web.match_route(app(), method, path) == match


def test_a_finished_answer_to_head_announces_a_body_and_has_none() -> None:
    answer = render(Problem(404), MATCH, None)

    finished = web.finish(answer, MATCH, "HEAD", tracing.Trace.begin("r-1"), {}, 0.0)

    assert finished.body == b"" and dict(finished.headers)["Content-Length"] == str(len(answer.body))
    assert dict(finished.headers)["X-Request-Id"] == "r-1"
