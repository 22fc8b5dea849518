"""What every service answers, whatever the request."""

import json
import re
from urllib.parse import urlsplit, urlunsplit

import pytest
from flask.testing import FlaskClient
from sqlalchemy import text

from chassis import tracing
from identity.app import create_app
from tip_testing.cuttable_proxy import CuttableProxy
from tip_testing.identity_fixtures import IdentityFixtures
from tip_testing.platform_plugin import Platform
from tip_testing.servers_plugin import PostgresServer


@pytest.fixture(scope="module")
def client(platform: Platform) -> FlaskClient:
    return create_app(platform.web_environment("identity")).test_client()


def test_a_request_id_is_taken_from_the_caller_when_sane_and_made_otherwise(client: FlaskClient) -> None:
    sent = client.get("/health/live", headers={"X-Request-Id": "abc-1"}).headers["X-Request-Id"]
    made = client.get("/health/live", headers={"X-Request-Id": "x" * 200}).headers["X-Request-Id"]

    assert sent == "abc-1"
    assert re.fullmatch(r"[0-9a-f]{32}", made)


def test_a_trace_goes_on_under_the_callers_id_with_a_step_of_its_own(client: FlaskClient) -> None:
    parent = f"00-{'a' * 32}-{'b' * 16}-01"
    answered = client.get("/health/live", headers={"traceparent": parent}).headers["traceparent"]

    assert answered.split("-")[1] == "a" * 32
    assert answered.split("-")[2] != "b" * 16


@pytest.mark.parametrize("bad", ["", "00-zz-bb-01", f"00-{'0' * 32}-{'b' * 16}-01", f"ff-{'a' * 32}-{'b' * 16}-01"])
def test_a_malformed_trace_is_replaced(bad: str) -> None:
    assert re.fullmatch(r"00-[0-9a-f]{32}-[0-9a-f]{16}-01", tracing.Trace.begin(None, bad).traceparent)


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nowhere", 404, "not_found"),
        ("GET", "/api/v1/auth/api-key/validate", 405, "method_not_allowed"),
        ("POST", "/api/v1/auth/api-key/validate/", 404, "not_found"),
        ("POST", "/api/v1//auth/api-key/validate", 404, "not_found"),
        ("POST", "/API/v1/auth/api-key/validate", 404, "not_found"),
    ],
)
def test_what_is_not_there_is_a_problem_with_a_code(
    client: FlaskClient, method: str, path: str, status: int, code: str
) -> None:
    answer = client.open(path, method=method)

    assert (answer.status_code, answer.content_type) == (status, "application/problem+json")
    body = json.loads(answer.data)
    assert (body["code"], body["status"], body["instance"]) == (code, status, path)
    assert body["request_id"] == answer.headers["X-Request-Id"]


def test_nothing_has_no_content_type(client: FlaskClient, identity: IdentityFixtures) -> None:
    headers = {"Authorization": f"Bearer {identity.organization().tokens['member']}"}

    answer = client.delete("/v1/users/me", headers=headers)

    assert (answer.status_code, answer.data, answer.content_type) == (204, b"", None)


def test_the_problem_of_an_unknown_path_or_parameter_says_what_there_is(
    client: FlaskClient, identity: IdentityFixtures
) -> None:
    headers = {"Authorization": f"Bearer {identity.organization().tokens['admin']}"}

    assert "/docs" in client.get("/v1/nowhere").json["detail"]
    assert "limit" in client.get("/v1/api-keys?size=7", headers=headers).json["detail"]


def test_answers_are_not_to_be_stored_or_guessed_at(client: FlaskClient) -> None:
    headers = client.get("/health/live").headers

    assert (headers["Cache-Control"], headers["X-Content-Type-Options"]) == ("no-store", "nosniff")


def test_a_service_is_ready_only_with_its_database(fresh_platform: Platform) -> None:
    nowhere = "postgresql://tip_identity:x@127.0.0.1:1/tip"
    lost = create_app(fresh_platform.web_environment("identity", DATABASE_URL=nowhere)).test_client()

    assert lost.get("/health/live").status_code == 200
    answer = lost.get("/health/ready")
    assert (answer.status_code, answer.json["code"]) == (503, "unavailable")
    assert answer.headers["Retry-After"] == "2"


def test_a_database_that_comes_back_is_used_again(fresh_platform: Platform, postgres_server: PostgresServer) -> None:
    client = create_app(fresh_platform.web_environment("identity")).test_client()
    assert client.get("/health/ready").status_code == 200
    with fresh_platform.admin() as connection:
        connection.exec_driver_sql(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name = 'identity'"
        )

    assert client.get("/health/ready").status_code == 200


def test_metrics_count_by_route_and_never_by_path(client: FlaskClient) -> None:
    client.post("/api/v1/auth/api-key/validate", json={"api_key": "x"})
    client.get("/somewhere-unique-4711")

    exposed = client.get("/metrics").text
    assert 'tip_http_requests_total{method="POST",route="/api/v1/auth/api-key/validate"' in exposed
    assert "somewhere-unique" not in exposed


def test_an_invented_method_makes_no_series_of_its_own(client: FlaskClient) -> None:
    for number in range(3):
        client.open("/nowhere", method=f"FOO{number}")

    exposed = client.get("/metrics").text
    assert "FOO" not in exposed
    assert 'method="other"' in exposed


def test_the_document_is_openapi_3_1_and_the_page_needs_no_other_host(client: FlaskClient) -> None:
    document = client.get("/openapi.json").json
    page = client.get("/docs").text

    assert document["openapi"] == "3.1.0"
    operation = document["paths"]["/api/v1/auth/api-key/validate"]["post"]
    assert operation["requestBody"]["content"]["application/json"]["schema"] == {
        "$ref": "#/components/schemas/ValidateApiKeyRequest"
    }
    assert "/api/v1/auth/api-key/validate" in page
    assert not re.search(r"(src|href)=\"(https?:)?//", page)


@pytest.mark.parametrize(
    ("words", "code"), [(b"COMMIT\0", "outcome_unknown"), (b"INSERT INTO identity.api_key", "unavailable")]
)
def test_what_was_lost_with_the_commit_is_not_reported_as_undone(
    platform: Platform, identity: IdentityFixtures, words: bytes, code: str
) -> None:
    organization = identity.organization()
    address = urlsplit(platform.database_url("identity_web"))
    assert address.hostname and address.port
    proxy = CuttableProxy(address.hostname, address.port)
    moved = address._replace(netloc=f"{address.username}:{address.password}@127.0.0.1:{proxy.port}")
    app = create_app({**platform.web_environment("identity"), "DATABASE_URL": urlunsplit(moved)})
    admin = {"Authorization": f"Bearer {organization.tokens['admin']}"}
    body = {"name": "lost", "environment": "paper", "permissions": ["intent:read"]}
    assert app.test_client().post("/v1/api-keys", json=body, headers=admin).status_code == 201
    proxy.cut(words, deliver=True)

    answer = app.test_client().post("/v1/api-keys", json=body, headers=admin)
    proxy.close()
    with platform.admin() as connection:
        found = text("SELECT count(*) FROM identity.api_key WHERE organization_id = :id AND name = 'lost'")
        written = connection.execute(found, {"id": organization.id}).scalar_one()

    assert (answer.status_code, answer.json["code"]) == (503, code)
    assert proxy.words is None
    assert ("nothing was written" in answer.json["detail"]) is (code == "unavailable")
    assert written == (2 if code == "outcome_unknown" else 1)
    app.extensions["deps"].engine.dispose()
