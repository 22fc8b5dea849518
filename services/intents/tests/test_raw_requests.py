"""intents as gunicorn serves it, with the fast path for submits in front, and requests written byte by byte."""

import json
from collections.abc import Iterator
from uuid import UUID

import pytest

from tip_local.identity_seed import add_account
from tip_testing import raw_http
from tip_testing.commands import create
from tip_testing.identity_fixtures import IdentityFixtures, Organization
from tip_testing.platform_plugin import Platform
from tip_testing.ports import reserved_port
from tip_testing.processes import running

ORDER = json.dumps(create()).encode()


@pytest.fixture(scope="module")
def port(platform: Platform) -> Iterator[int]:
    port = reserved_port()
    environment = {**platform.web_environment("intents"), "WEB_PORT": str(port), "WEB_WORKERS": "1"}
    command = ("-m", "gunicorn", "-c", "python:chassis.gunicorn_conf", "intents.app:create_front()")
    with running(*command, environment=environment, ready=lambda _: _answers(port)):
        yield port


def _answers(port: int) -> bool:
    try:
        return raw_http.request(port, b"GET /health/ready HTTP/1.1\r\nHost: tip\r\n\r\n").status == 200
    except (OSError, AssertionError):
        return False


@pytest.fixture(scope="module")
def organization(identity: IdentityFixtures) -> Organization:
    return identity.organization()


@pytest.fixture(scope="module")
def account_id(platform: Platform, organization: Organization) -> UUID:
    with platform.admin() as connection:
        return add_account(connection, organization.id)


def submit(port: int, account_id: UUID, *headers: str, query: str = "", length: int | None = None) -> raw_http.Answer:
    lines = [
        f"POST /v1/accounts/{account_id}/intents{query} HTTP/1.1",
        "Host: tip",
        "Content-Type: application/json",
        f"Content-Length: {len(ORDER) if length is None else length}",
        *headers,
    ]
    return raw_http.request(port, "\r\n".join([*lines, "", ""]).encode() + ORDER)


def rows(platform: Platform) -> int:
    with platform.admin() as connection:
        return int(connection.exec_driver_sql("SELECT count(*) FROM intents.action").scalar_one())


def test_a_request_without_a_second_credential_is_answered(
    port: int, account_id: UUID, organization: Organization
) -> None:
    assert submit(port, account_id, f"x-api-key: {organization.api_keys['paper']}").status == 201


@pytest.mark.parametrize("first", ["x-api-key", "Authorization"])
@pytest.mark.parametrize("second", ["x-api-key", "X-API-KEY", "Authorization"])
def test_two_credentials_are_refused_whatever_they_are(
    port: int, account_id: UUID, organization: Organization, platform: Platform, first: str, second: str
) -> None:
    def line(name: str) -> str:
        is_key = name.lower() == "x-api-key"
        return f"{name}: " + (organization.api_keys["paper"] if is_key else f"Bearer {organization.tokens['admin']}")

    before = rows(platform)

    assert submit(port, account_id, line(first), line(second)).problem == (400, "two_credentials")
    assert rows(platform) == before


def test_a_bearer_with_a_comma_in_it_is_one_credential_that_is_wrong(port: int, account_id: UUID) -> None:
    assert submit(port, account_id, "Authorization: Bearer a,b").problem == (401, "unauthenticated")


def test_a_submit_with_an_unknown_parameter_is_refused_and_writes_nothing(
    port: int, account_id: UUID, organization: Organization, platform: Platform
) -> None:
    before, key = rows(platform), f"x-api-key: {organization.api_keys['paper']}"

    assert submit(port, account_id, key, query="?unknown=1").problem == (400, "unknown_query")
    assert submit(port, account_id, key, query="?dry_run=true&dry_run=true").problem == (400, "repeated_query")
    assert rows(platform) == before


def test_a_submit_of_a_huge_length_is_refused_at_once(port: int, account_id: UUID, organization: Organization) -> None:
    key = f"x-api-key: {organization.api_keys['paper']}"

    assert submit(port, account_id, key, length=10**12).problem == (413, "body_too_large")
