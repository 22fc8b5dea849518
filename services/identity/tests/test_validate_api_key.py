"""POST /api/v1/auth/api-key/validate, as the specification and the contract have it."""

import pytest
from flask.testing import FlaskClient
from sqlalchemy import text

from chassis import keys
from identity.app import create_app
from tip_local.platform_plugin import Platform
from tip_local.world import World

PATH = "/api/v1/auth/api-key/validate"


@pytest.fixture(scope="module")
def client(platform: Platform) -> FlaskClient:
    return create_app(platform.environment("identity")).test_client()


def test_a_known_key_is_described_by_exactly_the_specified_fields(client: FlaskClient, world: World) -> None:
    organization = world.organization()

    answer = client.post(PATH, json={"api_key": organization.api_keys["live"]})

    assert answer.status_code == 200
    assert set(answer.json) == {"id", "organization_id", "environment", "disabled", "created_at"}
    assert answer.json["organization_id"] == str(organization.id)
    assert answer.json["environment"] == "live"
    assert answer.json["disabled"] is False
    assert answer.json["created_at"].endswith("Z")


def test_a_disabled_key_is_still_known_and_says_so(client: FlaskClient, world: World) -> None:
    organization = world.organization()
    with world.deps.engine.begin() as tx:
        tx.execute(
            text("UPDATE identity.api_key SET disabled = true WHERE organization_id = :id"), {"id": organization.id}
        )

    answer = client.post(PATH, json={"api_key": organization.api_keys["paper"]})

    assert (answer.status_code, answer.json["disabled"]) == (200, True)


@pytest.mark.parametrize("key", [keys.generate("paper"), "tip_paper_" + "A" * 36, "x", "tip_demo_" + "A" * 36])
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


def test_guessing_is_limited_per_address(platform: Platform) -> None:
    client = create_app(platform.environment("identity", VALIDATE_RATE_LIMIT_PER_MINUTE="5")).test_client()

    statuses = [
        client.post(
            PATH, json={"api_key": keys.generate("paper")}, environ_base={"REMOTE_ADDR": "127.9.9.9"}
        ).status_code
        for _ in range(8)
    ]

    assert statuses == [401] * 5 + [429] * 3
