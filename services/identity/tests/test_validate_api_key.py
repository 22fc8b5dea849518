"""POST /api/v1/auth/api-key/validate, as the specification and the contract have it."""

from collections.abc import Callable

import pytest
from flask.testing import FlaskClient
from sqlalchemy import event, text

from chassis import keys
from identity.app import create_app
from tip_testing.identity_fixtures import IdentityFixtures
from tip_testing.platform_plugin import Platform

PATH = "/api/v1/auth/api-key/validate"


def test_a_known_key_is_described_by_exactly_the_specified_fields(
    client: FlaskClient, identity: IdentityFixtures
) -> None:
    organization = identity.organization()

    answer = client.post(PATH, json={"api_key": organization.api_keys["live"]})

    assert answer.status_code == 200
    added = {"expires_at": None, "bounds": None}  # to what the specification has
    assert answer.json.items() >= added.items()
    assert set(answer.json) == {"id", "organization_id", "environment", "disabled", "created_at", *added}
    assert answer.json["organization_id"] == str(organization.id)
    assert answer.json["environment"] == "live"
    assert answer.json["disabled"] is False
    assert answer.json["created_at"].endswith("Z")


def test_a_disabled_key_is_still_known_and_says_so(client: FlaskClient, identity: IdentityFixtures) -> None:
    organization = identity.organization()
    with identity.deps.engine.begin() as tx:
        tx.execute(
            text("UPDATE identity.api_key SET disabled = true WHERE organization_id = :id"), {"id": organization.id}
        )

    answer = client.post(PATH, json={"api_key": organization.api_keys["paper"]})

    assert (answer.status_code, answer.json["disabled"]) == (200, True)


@pytest.mark.parametrize(
    ("change", "disabled"),
    [
        ("api_key SET expires_at = now() - interval '1 second' WHERE organization_id = :id", True),
        ("api_key SET expires_at = now() + interval '1 hour' WHERE organization_id = :id", False),
        ("organization SET disabled = true WHERE id = :id", True),
    ],
)
def test_a_key_that_opens_nothing_is_known_as_disabled(
    client: FlaskClient, identity: IdentityFixtures, platform: Platform, change: str, disabled: bool
) -> None:
    organization = identity.organization()
    with platform.admin() as connection:
        connection.execute(text(f"UPDATE identity.{change}"), {"id": organization.id})

    for key in organization.api_keys.values():
        answer = client.post(PATH, json={"api_key": key})
        used = client.get("/v1/auth/self", headers={"x-api-key": key})
        assert (answer.status_code, answer.json["disabled"]) == (200, disabled)
        assert (used.status_code == 401) is disabled, "both say the same of a key"


@pytest.mark.parametrize(
    "key",
    [keys.generate("paper"), "tip_paper_" + "A" * 36, "x", "tip_demo_" + "A" * 36],
    ids=["never issued", "wrong checksum", "no key at all", "another environment"],
)
def test_an_unknown_or_malformed_key_is_refused_as_unauthenticated(client: FlaskClient, key: str) -> None:
    answer = client.post(PATH, json={"api_key": key})

    assert answer.status_code == 401
    assert answer.content_type == "application/problem+json"
    assert answer.json["code"] == "unknown_key"
    assert "WWW-Authenticate" in answer.headers


def test_a_missing_key_is_named_by_a_pointer(client: FlaskClient) -> None:
    answer = client.post(PATH, json={})

    assert answer.status_code == 422
    assert answer.json["errors"] == [
        {"pointer": "/api_key", "code": "required", "message": "Missing data for required field."}
    ]


@pytest.mark.usefixtures("patient_redis")
def test_guessing_is_limited_per_address(platform: Platform) -> None:
    client = create_app(platform.web_environment("identity", VALIDATE_RATE_LIMIT_PER_MINUTE="5")).test_client()

    statuses = [
        client.post(
            PATH, json={"api_key": keys.generate("paper")}, environ_base={"REMOTE_ADDR": "127.9.9.9"}
        ).status_code
        for _ in range(8)
    ]

    assert statuses == [401] * 5 + [429] * 3


@pytest.mark.usefixtures("patient_redis")
def test_guessing_is_limited_per_key_prefix_from_any_address(platform: Platform, identity: IdentityFixtures) -> None:
    client = create_app(platform.web_environment("identity", VALIDATE_RATE_LIMIT_PER_MINUTE="5")).test_client()
    known = identity.organization().api_keys["paper"]

    statuses = [
        client.post(
            PATH, json={"api_key": _another_with_prefix_of(known)}, environ_base={"REMOTE_ADDR": f"127.9.8.{number}"}
        ).status_code
        for number in range(8)
    ]

    assert statuses == [401] * 5 + [429] * 3


@pytest.mark.usefixtures("patient_redis")
def test_guessing_by_header_is_limited_per_prefix_and_leaves_the_keys_owner_alone(
    platform: Platform, identity: IdentityFixtures
) -> None:
    client = create_app(platform.web_environment("identity", RATE_LIMIT_PER_MINUTE="5")).test_client()
    known = identity.organization().api_keys["paper"]

    def use(key: str, number: int) -> int:
        address = {"REMOTE_ADDR": f"127.9.7.{number}"}
        return client.get("/v1/auth/self", headers={"x-api-key": key}, environ_base=address).status_code

    guesses = [use(_another_with_prefix_of(known), number) for number in range(8)]

    assert guesses == [401] * 5 + [429] * 3
    assert use(known, 99) == 200


def _another_with_prefix_of(known: str) -> str:
    start = keys.prefix(known)
    body = start + keys.generate("paper")[len(start) : -6]
    return body + keys._checksum(body)


@pytest.mark.parametrize(
    "change", [lambda key: key[:-1] + ("A" if key[-1] != "A" else "B"), lambda key: key[:-1], str.upper]
)
def test_a_key_whose_checksum_is_wrong_is_refused_without_querying_the_database(
    platform: Platform, identity: IdentityFixtures, change: Callable[[str], str]
) -> None:
    client = create_app(platform.web_environment("identity")).test_client()
    statements: list[str] = []
    engine = client.application.extensions["deps"].engine
    event.listen(engine, "before_cursor_execute", lambda _c, _k, statement, *_: statements.append(statement))
    good = identity.organization().api_keys["paper"]

    validated = client.post(PATH, json={"api_key": change(good)})
    used = client.get("/v1/auth/self", headers={"x-api-key": change(good)})

    assert (validated.status_code, used.status_code) == (401, 401)
    assert statements == []
    assert client.post(PATH, json={"api_key": good}).status_code == 200
    assert len(statements) == 1, "and a good one costs exactly one"


def test_a_key_with_a_known_beginning_and_another_end_is_unknown(
    client: FlaskClient, identity: IdentityFixtures
) -> None:
    known = identity.organization().api_keys["paper"]

    assert client.post(PATH, json={"api_key": _another_with_prefix_of(known)}).status_code == 401
    assert client.post(PATH, json={"api_key": known}).status_code == 200


@pytest.mark.parametrize(
    ("body", "content_type", "status"),
    [
        (b'{"api_key": "x"', "application/json", 400),
        (b'{"api_key": "x", "api_key": "y"}', "application/json", 400),
        (b'{"api_key": "\\u0000"}', "application/json", 400),
        (b"api_key=x", "application/x-www-form-urlencoded", 415),
        (b'{"api_key": 7}', "application/json", 422),
        (b'{"api_key": "x", "more": 1}', "application/json", 422),
        (b"[]", "application/json", 422),
        (b"x" * 70_000, "application/json", 413),
    ],
)
def test_a_bad_body_is_refused_with_what_is_wrong_with_it(
    client: FlaskClient, body: bytes, content_type: str, status: int
) -> None:
    assert client.post(PATH, data=body, content_type=content_type).status_code == status
