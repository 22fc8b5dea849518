"""What is taken away stops working everywhere within one second, in every process and every service.

Nothing about a caller is cached, so the figure is really the next request; the test allows the second that is promised.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from flask import Blueprint, Flask, g, jsonify
from flask.testing import FlaskClient
from sqlalchemy import text

from chassis import db, keys, web
from chassis.access import allow
from chassis.config import ServiceConfig
from chassis.principals import api_key, service_account, user
from identity.app import create_app
from tip_testing.identity_fixtures import IdentityFixtures
from tip_testing.platform_plugin import Platform

LIMIT_S = 1.0
Bearer = Callable[[str], dict[str, str]]


def other_service(platform: Platform) -> Flask:
    """A service with its own database role, which knows identity only by its views."""
    bp = Blueprint("other", __name__)

    @bp.get("/v1/auth/self")
    @allow(user(organization=False), api_key(), service_account(organization=False))
    def show() -> Any:
        organization = g.principal.organization_id
        return jsonify(
            organization_id=organization and str(organization), entitlements=sorted(g.principal.entitlements)
        )

    config = ServiceConfig.from_env(platform.web_environment("intents"))
    engine = db.engine(config.database_url, pool_size=2, name="other")
    return web.create("other", config, engine, [bp], statuses={}, extensions={})


@pytest.fixture(scope="module")
def everywhere(platform: Platform) -> list[FlaskClient]:
    """Two processes of identity and one of another service, all with whatever caches they have."""
    apps = [create_app(platform.web_environment("identity")) for _ in range(2)]
    return [app.test_client() for app in (*apps, other_service(platform))]


def worth(client: FlaskClient, headers: dict[str, str]) -> tuple[int, str | None]:
    answer = client.get("/v1/auth/self", headers=headers)
    return answer.status_code, answer.json.get("organization_id")


def validation(client: FlaskClient, key: str) -> object:
    """What the validation says: `good`, `disabled`, or the status of its refusal."""
    answer = client.post("/api/v1/auth/api-key/validate", json={"api_key": key})
    if answer.status_code != 200:
        return answer.status_code
    return "disabled" if answer.json["disabled"] else "good"


def assert_gone_everywhere(everywhere: list[FlaskClient], headers: dict[str, str], expected: tuple[int, None]) -> None:
    """A request sent later than the limit is refused by every one of them, however slow the machine is."""
    changed_at = time.monotonic()
    for client in everywhere:
        requested_at = time.monotonic()
        while worth(client, headers) != expected:
            assert requested_at - changed_at < LIMIT_S
            requested_at = time.monotonic()


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ("deleted user", (401, None)),
        ("removed role", (200, None)),
        ("disabled organization, its user", (200, None)),
        ("disabled organization, its key", (401, None)),
        ("disabled key", (401, None)),
        ("expired key", (401, None)),
        ("deleted key", (401, None)),
        ("disabled service account", (401, None)),
        ("deleted service account", (401, None)),
    ],
)
def test_what_is_taken_away_stops_working_everywhere_within_a_second(
    everywhere: list[FlaskClient], identity: IdentityFixtures, platform: Platform, operator: dict[str, str],
    as_bearer: Bearer, what: str, expected: tuple[int, None],
) -> None:  # fmt: skip
    organization, account = identity.organization(), identity.service_account(["intent:read"])
    member = as_bearer(organization.tokens["member"])
    key = {"x-api-key": organization.api_keys["paper"]}
    bot = as_bearer(account.token)
    at = f"/v1/organizations/{organization.id}"
    as_operator = operator | {"x-organization-id": str(organization.id)}
    key_id = everywhere[0].get("/v1/auth/self", headers=key).json["id"]
    subject = identity.subject(organization.external_id, "member")
    headers, method, path, body = {
        "deleted user": (member, "DELETE", "/v1/users/me", None),
        "removed role": (member, "DELETE", f"{at}/memberships/{subject}", None),
        "disabled organization, its user": (member, "PATCH", at, {"disabled": True}),
        "disabled organization, its key": (key, "PATCH", at, {"disabled": True}),
        "disabled key": (key, "PATCH", f"/v1/api-keys/{key_id}", {"disabled": True}),
        "expired key": (key, "", "", None),
        "deleted key": (key, "DELETE", f"/v1/api-keys/{key_id}", None),
        "disabled service account": (bot, "PATCH", f"/v1/service-accounts/{account.client_id}", {"disabled": True}),
        "deleted service account": (bot, "DELETE", f"/v1/service-accounts/{account.client_id}", None),
    }[what]
    for client in everywhere:
        assert client.get("/v1/auth/self", headers=headers).status_code == 200

    if method:
        by = {"deleted user": member, "removed role": as_bearer(organization.tokens["admin"])}.get(what, as_operator)
        assert everywhere[0].open(path, method=method, json=body, headers=by).status_code in (200, 204)
    else:
        with platform.admin() as connection:
            connection.execute(text("UPDATE identity.api_key SET expires_at = now() WHERE id = :id"), {"id": key_id})

    assert_gone_everywhere(everywhere, headers, expected)
    if headers is key:
        for client in everywhere[:2]:
            assert validation(client, organization.api_keys["paper"]) == (401 if what == "deleted key" else "disabled")


def test_a_key_stops_at_the_moment_it_expires(
    everywhere: list[FlaskClient], identity: IdentityFixtures, platform: Platform
) -> None:
    key = identity.key(identity.organization().id, "paper")
    assert [worth(client, {"x-api-key": key})[0] for client in everywhere] == [200, 200, 200]
    assert [validation(client, key) for client in everywhere[:2]] == ["good", "good"]
    with platform.admin() as connection:
        connection.execute(
            text("UPDATE identity.api_key SET expires_at = now() + interval '0.3 seconds' WHERE prefix = :prefix"),
            {"prefix": keys.prefix(key)},
        )
    time.sleep(0.35)

    assert [worth(client, {"x-api-key": key})[0] for client in everywhere] == [401, 401, 401]
    assert [validation(client, key) for client in everywhere[:2]] == ["disabled", "disabled"]


def test_an_entitlement_taken_away_is_gone_with_the_next_request(
    everywhere: list[FlaskClient], identity: IdentityFixtures, operator: dict[str, str]
) -> None:
    organization = identity.organization(entitlements=["trading_live"])
    key = {"x-api-key": organization.api_keys["live"]}
    assert everywhere[2].get("/v1/auth/self", headers=key).json["entitlements"] == ["trading_live"]

    path = f"/v1/organizations/{organization.id}/entitlements/trading_live"
    assert everywhere[0].delete(path, headers=operator).status_code == 204

    assert everywhere[2].get("/v1/auth/self", headers=key).json["entitlements"] == []


def test_an_organization_that_is_enabled_again_works_again(
    everywhere: list[FlaskClient], identity: IdentityFixtures, operator: dict[str, str]
) -> None:
    organization = identity.organization()
    key = {"x-api-key": organization.api_keys["live"]}
    for disabled, status in ((True, 401), (False, 200)):
        everywhere[0].patch(f"/v1/organizations/{organization.id}", json={"disabled": disabled}, headers=operator)
        assert [worth(client, key)[0] for client in everywhere] == [status] * 3
        validations = [validation(client, organization.api_keys["live"]) for client in everywhere[:2]]
        assert validations == ["disabled" if disabled else "good"] * 2


def test_a_token_for_one_organization_gives_nothing_in_another(
    identity: IdentityFixtures, everywhere: list[FlaskClient]
) -> None:
    mine, other = identity.organization(), identity.organization()
    subject = identity.subject(mine.external_id, "admin")
    stretched = identity.user_token(subject, other.external_id, "admin")

    for client in everywhere:
        assert worth(client, {"Authorization": f"Bearer {stretched}"}) == (200, None)


def test_an_unknown_user_with_a_well_signed_token_is_nobody(
    identity: IdentityFixtures, everywhere: list[FlaskClient]
) -> None:
    organization = replace(identity.organization())
    token = identity.user_token(f"unknown-{uuid4().hex}", organization.external_id, "admin")

    assert [worth(client, {"Authorization": f"Bearer {token}"})[0] for client in everywhere] == [401] * 3
