"""The OpenAPI document against the service: whatever can be sent is answered as the document says, never with 500."""

from typing import Any

import pytest
import schemathesis
from flask import Flask
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import ignored_auth, negative_data_rejection, positive_data_acceptance

from chassis import openapi
from intents import model, schemas
from tip_testing.commands import create, limit

from .conftest import Desk

# All of the default checks, but for these:
EXCLUDED = [
    # The generated key is replaced by a good one, else every answer would be 401; callers have tests of their own.
    ignored_auth,
    # And so is the generated account: what was wrong with a request may be only what was replaced.
    negative_data_rejection,
    # "Greater than zero", "a cursor we gave" and "an intent that exists" have no word in the document; see below.
    positive_data_acceptance,
]
OPERATIONS = [
    ("POST", "/intents"),
    ("POST", "/intents/batch"),
    ("GET", "/intents"),
    ("GET", "/intents/stats"),
    ("GET", "/intents/verify"),
    ("GET", "/intents/{intent_id}"),
    ("GET", "/intents/{intent_id}/actions"),
    ("GET", "/orders"),
    ("GET", "/refusals"),
    ("GET", "/positions"),
    ("GET", "/balances"),
    ("POST", "/intents/cancel"),
    ("POST", "/positions/close"),
    ("GET", "/bulk-operations/{bulk_operation_id}"),
    ("GET", "/quotes/{symbol}"),
    ("POST", "/refresh"),
]


@pytest.fixture(scope="module")
def api(app: Flask) -> Any:
    return schemathesis.openapi.from_wsgi("/openapi.json", app)


def test_the_page_shows_what_can_be_submitted_and_what_it_needs(app: Flask) -> None:
    page = app.test_client().get("/docs").text

    for word in (
        "REPLACE",
        "ref_intent_id",
        "StopLimit",
        "stop_price",
        "route_strategy",
        "last_month",
        "trading_live",
        "overloaded",
    ):
        assert word in page


def test_every_answer_with_a_body_says_what_it_is(app: Flask) -> None:
    operations = openapi.document([app])["paths"]

    for path in ("/v1/accounts/{account_id}/statement", "/.well-known/log-jwks.json"):
        assert operations[path]["get"]["responses"]["200"]["content"]


@pytest.mark.parametrize("mode", list(GenerationMode))
@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_generated_requests_are_answered_as_the_document_says(
    api: Any, desk: Desk, method: str, path: str, mode: GenerationMode
) -> None:
    intent_id = desk.created(limit())["intent_id"]
    operation = api[f"/v1/accounts/{{account_id}}{path}"][method]
    bulk_operation_id = desk.client.post(f"{desk.path}/cancel", json={"symbol": "X"}, headers=desk.headers).json["id"]
    ids = {"intent_id": intent_id, "bulk_operation_id": bulk_operation_id}
    ours = {"account_id": str(desk.account_id), **ids, "symbol": "ABC"}
    statuses = set()

    @settings(max_examples=20, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(operation.as_strategy(generation_mode=mode), st.booleans())
    def answered(case: Any, of_ours: bool) -> None:
        if of_ours:
            case.path_parameters = {name: ours[name] for name in case.path_parameters or ()}
        response = case.call(headers=desk.headers)
        statuses.add(response.status_code)
        case.validate_response(response, excluded_checks=EXCLUDED)

    answered()

    assert statuses
    assert mode is not GenerationMode.POSITIVE or statuses & {200, 201, 404, 422}


def test_what_the_document_allows_to_be_submitted_is_accepted(api: Any, desk: Desk) -> None:
    operation = api["/v1/accounts/{account_id}/intents"]["POST"]
    statuses = []

    @settings(max_examples=100, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(operation.as_strategy(generation_mode=GenerationMode.POSITIVE))
    def submitted(case: Any) -> None:
        answer = desk.client.post(desk.path, json=case.body, headers=desk.headers)
        statuses.append(answer.status_code)
        refused = {error["code"] for error in answer.json.get("errors", ())} if answer.status_code == 422 else set()
        taken = answer.status_code == 409 and answer.json["code"] == "client_id_taken"
        unable = answer.status_code == 422 and answer.json["code"] == "broker_cannot"
        unpriced = {reason["code"] for reason in answer.json.get("reasons", ())} == {"REFERENCE_PRICE_UNKNOWN"}
        # Only "greater than zero", "not used before", "the first leg's quantity" and, of an order by its notional, "has
        # a price" have no word in the document.
        known = refused in ({"range"}, {"quantity"}) or taken or unable or unpriced
        assert answer.status_code in (201, 404) or known, answer.json

    submitted()

    assert statuses.count(201) > 3


def test_a_record_has_exactly_the_documented_fields(desk: Desk) -> None:
    record = desk.created(create())

    assert set(record) == set(schemas.Action().fields)
    assert set(record["state"]) == set(schemas.Action().fields["state"].schema.fields)
    assert set(desk.get("/stats").json) == {
        field.data_key or name for name, field in schemas.Statistics().fields.items()
    }
    assert model.KINDS.keys() == {"Market", "Limit", "Stop", "StopLimit", "TrailingStop"}


NAMED = ("Location", "Idempotent-Replayed", "ETag", "Retry-After", "RateLimit", "RateLimit-Policy", "X-Request-Id")


@pytest.mark.parametrize(
    ("path", "body", "says_replayed"),
    [
        ("", create(), True),
        ("/cancel", {"symbol": "NOTHING"}, True),
        ("/batch", {"commands": [create()["command"]]}, False),
    ],
    ids=["submit", "cancel", "batch"],
)
def test_answers_have_the_headers_that_the_document_gives_them(
    app: Flask, desk: Desk, path: str, body: Any, says_replayed: bool
) -> None:
    answers = [desk.submit(body, query=path, Idempotency_Key="once") for _ in range(2)]
    responses = openapi.document([app])["paths"][f"/v1/accounts/{{account_id}}/intents{path}"]["post"]["responses"]

    for answer in answers:
        assert {name for name in NAMED if name in answer.headers} <= set(responses[str(answer.status_code)]["headers"])
    assert ("Idempotent-Replayed" in answers[1].headers) == says_replayed
    assert ("Idempotent-Replayed" in responses[str(answers[1].status_code)]["headers"]) == says_replayed
