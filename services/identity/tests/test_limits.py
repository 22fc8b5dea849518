"""How much of everything an organization may have: generous, configurable, and never one too many."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest
from flask.testing import FlaskClient

from identity.app import create_app
from identity.config import Config
from tip_testing.identity_fixtures import IdentityFixtures, Organization
from tip_testing.platform_plugin import Platform

Headers = dict[str, str]
KEY = {"name": "Desk", "environment": "paper", "permissions": ["intent:read"]}
MOST = 5  # an organization of the tests is made with three keys and three members


@pytest.fixture(scope="module")
def limited(platform: Platform) -> FlaskClient:
    names = (
        "API_KEYS_PER_ORGANIZATION",
        "MEMBERS_PER_ORGANIZATION",
        "INVITATIONS_PER_ORGANIZATION",
        "SERVICE_ACCOUNTS_LIMIT",
    )
    return create_app(platform.web_environment("identity", **dict.fromkeys(names, str(MOST)))).test_client()


def add_key(client: FlaskClient, headers: Headers) -> Any:
    return client.post("/v1/api-keys", json=KEY, headers=headers)


def add_member(client: FlaskClient, headers: Headers, organization: Organization, subject: str | None = None) -> Any:
    path = f"/v1/organizations/{organization.id}/memberships/{subject or uuid4().hex}"
    return client.put(path, json={"role": "member"}, headers=headers)


def test_a_key_too_many_is_refused_until_another_is_deleted(limited: FlaskClient, admin: Headers) -> None:
    added = [add_key(limited, admin) for _ in range(3)]

    assert [answer.status_code for answer in added] == [201, 201, 409]
    assert added[2].json["code"] == "limit_reached"
    limited.delete(added[0].headers["Location"], headers=admin)
    assert add_key(limited, admin).status_code == 201


def test_keys_made_at_the_same_time_never_exceed_the_limit(
    limited: FlaskClient, admin: Headers, organization: Organization
) -> None:
    app = limited.application
    with ThreadPoolExecutor(6) as callers:
        statuses = list(callers.map(lambda _: add_key(app.test_client(), admin).status_code, range(6)))

    kept = limited.get("/v1/api-keys", headers=admin).json["data"]
    assert len(kept) == MOST
    assert statuses.count(201) == 2 and set(statuses) <= {201, 409, 503}  # 503: a lock waited for too long


def test_another_organization_has_its_own_limit(
    limited: FlaskClient, identity: IdentityFixtures, admin: Headers
) -> None:
    while add_key(limited, admin).status_code == 201:
        pass
    other = {"Authorization": f"Bearer {identity.organization().tokens['admin']}"}

    assert add_key(limited, other).status_code == 201


def test_a_member_too_many_is_refused_and_a_change_of_one_is_not(
    limited: FlaskClient, admin: Headers, organization: Organization
) -> None:
    subjects = [uuid4().hex for _ in range(3)]
    added = [add_member(limited, admin, organization, subject) for subject in subjects]

    assert [answer.status_code for answer in added] == [201, 201, 409]
    assert added[2].json["code"] == "limit_reached"
    assert add_member(limited, admin, organization, subjects[0]).status_code == 200
    assert len(limited.get(f"/v1/organizations/{organization.id}/memberships", headers=admin).json["data"]) == MOST


def test_an_invitation_too_many_is_refused_and_a_second_one_of_the_same_user_is_not(
    limited: FlaskClient, admin: Headers, organization: Organization
) -> None:
    path = f"/v1/organizations/{organization.id}/invitations"
    bodies = [{"subject": f"guest-{number}", "role": "member"} for number in range(MOST + 1)]

    answers = [limited.post(path, json=body, headers=admin) for body in bodies]

    assert [answer.status_code for answer in answers] == [201] * MOST + [409]
    assert answers[-1].json["code"] == "limit_reached"
    assert limited.post(path, json=bodies[0], headers=admin).status_code == 201


def test_nobody_accepts_into_a_full_organization(
    limited: FlaskClient, identity: IdentityFixtures, admin: Headers, organization: Organization
) -> None:
    subject = f"guest-{uuid4().hex}"
    guest = {"Authorization": f"Bearer {identity.user_without_organization(subject)}"}
    body = {"subject": subject, "role": "member"}
    code = limited.post(f"/v1/organizations/{organization.id}/invitations", json=body, headers=admin).json["code"]
    for _ in range(2):
        add_member(limited, admin, organization)

    refused = limited.post("/v1/invitations/accept", json={"code": code}, headers=guest)

    assert (refused.status_code, refused.json["code"]) == (409, "limit_reached")


def test_a_service_account_too_many_is_refused(limited: FlaskClient, operator: Headers) -> None:
    answer, made = None, 0
    while answer is None or answer.status_code == 201:
        answer = limited.post("/v1/service-accounts", json={"name": "x", "scopes": ["intent:read"]}, headers=operator)
        made += 1
        assert made <= MOST + 1

    assert (answer.status_code, answer.json["code"]) == (409, "limit_reached")


@pytest.mark.parametrize("variable", ["API_KEYS_PER_ORGANIZATION", "MEMBERS_PER_ORGANIZATION"])
def test_a_limit_of_nothing_is_no_configuration(platform: Platform, variable: str) -> None:
    with pytest.raises(Exception, match=f"{variable}: must be at least 1"):
        Config.from_env(platform.environment("identity", **{variable: "0"}))
