"""Answers that are not a success: their size, and what a page of HTML may do."""

import json

import pytest
from flask.testing import FlaskClient
from marshmallow import ValidationError

from chassis.problems import problem_of
from identity.app import create_app
from tip_testing.platform_plugin import Platform

PATH = "/api/v1/auth/api-key/validate"
BODIES = {
    "many unknown fields": json.dumps({f"{number:x}": 0 for number in range(6000)}),
    "a long name": json.dumps({"x" * 60_000: 0}),
    "a long name to escape": json.dumps({"\u2028" * 10_000: 0}),
    "a long value": json.dumps({"api_key": "x" * 60_000}),
}


@pytest.fixture(scope="module")
def client(platform: Platform) -> FlaskClient:
    return create_app(platform.web_environment("identity")).test_client()


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_a_refusal_repeats_little_of_what_was_sent(client: FlaskClient, body: str) -> None:
    answer = client.post(PATH, data=body, content_type="application/json")

    assert answer.status_code in (401, 422)
    assert len(answer.data) < 4096


def test_of_many_wrong_fields_the_first_are_listed_and_all_are_counted(client: FlaskClient) -> None:
    answer = client.post(PATH, json={f"field{number}": 0 for number in range(50)}).json

    count = len(answer["errors"])
    assert 5 < count < 51
    assert f"The first {count} of 51 are listed" in answer["detail"], "the one that is missing counts, too"


def test_one_error_is_listed_however_long_it_is() -> None:
    problem = problem_of(ValidationError({"name": ["Too long. " * 200, "Again."]}), {})

    assert [error["code"] for error in problem.members["errors"]] == ["invalid"]


def test_a_long_path_is_not_sent_back(client: FlaskClient) -> None:
    answer = client.get("/" + "%01" * 2000)

    assert answer.status_code == 404 and len(answer.data) < 4096


def test_a_page_uses_our_own_files_and_sends_to_nobody_else(client: FlaskClient) -> None:
    answer = client.get("/docs")

    policy = dict(part.strip().split(" ", 1) for part in answer.headers["Content-Security-Policy"].split(";"))
    assert policy == {
        "default-src": "'none'",
        "style-src": "'self'",
        "script-src": "'self'",
        "connect-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    assert answer.headers["X-Frame-Options"] == "DENY" and answer.headers["X-Content-Type-Options"] == "nosniff"
