"""DELETE /v1/users/me: what it means for the user, for admins, and when it is sent many times at once."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from flask.testing import FlaskClient

from identity.app import create_app
from tip_testing.identity_fixtures import IdentityFixtures, Organization
from tip_testing.platform_plugin import Platform

from .user_deletions import deletions, new_member

Bearer = Callable[[str], dict[str, str]]


@pytest.fixture(scope="module")
def organization(identity: IdentityFixtures) -> Organization:
    return identity.organization()


@pytest.fixture
def subject(identity: IdentityFixtures, organization: Organization) -> str:
    """A member who may be deleted."""
    return new_member(identity, organization)


def test_a_deleted_user_is_gone_for_ever_and_published_once(
    client: FlaskClient,
    identity: IdentityFixtures,
    organization: Organization,
    subject: str,
    events: Any,
    as_bearer: Bearer,
) -> None:
    token = as_bearer(identity.user_token(subject, organization.external_id))

    answer = client.delete("/v1/users/me", headers=token)

    assert (answer.status_code, answer.data) == (204, b"")
    [published] = deletions(events, subject)
    assert set(published) == {"event_id", "event_type", "occurred_at", "user_id", "provider", "subject"}
    again = client.delete("/v1/users/me", headers=token)
    assert (again.status_code, again.get_data(as_text=True)) == (401, "unauthorized")
    assert client.get("/v1/auth/self", headers=token).status_code == 401
    assert len(deletions(events, subject)) == 1


def test_a_deleted_user_stays_out_although_an_admin_makes_them_a_member_again(
    client: FlaskClient, identity: IdentityFixtures, organization: Organization, subject: str, as_bearer: Bearer
) -> None:
    token = as_bearer(identity.user_token(subject, organization.external_id))
    client.delete("/v1/users/me", headers=token)

    path = f"/v1/organizations/{organization.id}/memberships/{subject}"
    answer = client.put(path, json={"role": "admin"}, headers=as_bearer(organization.tokens["admin"]))

    assert answer.status_code in (200, 201)
    assert client.get("/v1/auth/self", headers=token).status_code == 401


def test_to_an_admin_of_another_organization_a_deleted_user_looks_like_an_unknown_one(
    client: FlaskClient, identity: IdentityFixtures, organization: Organization, subject: str, as_bearer: Bearer
) -> None:
    deleted_token = as_bearer(identity.user_token(subject, organization.external_id))
    client.delete("/v1/users/me", headers=deleted_token)
    other = identity.organization()
    admin, members = as_bearer(other.tokens["admin"]), f"/v1/organizations/{other.id}/memberships"

    def answers(name: str) -> list[Any]:
        calls = [
            client.put(f"{members}/{name}", json={"role": "member"}, headers=admin),
            client.get(f"{members}/{name}", headers=admin),
            client.put(f"{members}/{name}", json={"role": "read_only"}, headers=admin),
            client.delete(f"{members}/{name}", headers=admin),
        ]
        return [(answer.status_code, answer.json and {**answer.json, "subject": "", "user_id": ""}) for answer in calls]

    def without_moments(given: list[Any]) -> list[Any]:
        return [(status, body and {**body, "created_at": ""}) for status, body in given]

    assert without_moments(answers(subject)) == without_moments(answers(f"unknown-{subject}"))
    assert [status for status, _body in answers(subject)] == [201, 200, 200, 204]


def test_a_deleted_user_whom_an_admin_makes_a_member_still_may_do_nothing(
    client: FlaskClient, identity: IdentityFixtures, organization: Organization, subject: str, as_bearer: Bearer
) -> None:
    client.delete("/v1/users/me", headers=as_bearer(identity.user_token(subject, organization.external_id)))
    other = identity.organization()

    put = client.put(
        f"/v1/organizations/{other.id}/memberships/{subject}",
        json={"role": "admin"},
        headers=as_bearer(other.tokens["admin"]),
    )

    assert put.status_code == 201
    token = as_bearer(identity.user_token(subject, other.external_id, "admin"))
    assert client.get("/v1/api-keys", headers=token).status_code == 401


def test_deleting_from_many_clients_at_once_publishes_once(
    platform: Platform,
    identity: IdentityFixtures,
    organization: Organization,
    subject: str,
    events: Any,
    as_bearer: Bearer,
) -> None:
    app = create_app(platform.web_environment("identity"))
    token = as_bearer(identity.user_token(subject, organization.external_id))

    with ThreadPoolExecutor(8) as threads:
        statuses = list(
            threads.map(lambda _: app.test_client().delete("/v1/users/me", headers=token).status_code, range(8))
        )

    assert 204 in statuses and set(statuses) <= {204, 401, 503}, "503: who waited too long for the others"
    assert len(deletions(events, subject)) == 1


def test_every_error_of_this_endpoint_is_plain_text(
    client: FlaskClient, identity: IdentityFixtures, as_bearer: Bearer
) -> None:
    both = as_bearer(identity.user_without_organization()) | {"x-api-key": "x"}
    for answer, status in (
        (client.delete("/v1/users/me"), 401),
        (client.delete("/v1/users/me", headers=both), 400),
    ):
        assert answer.status_code == status
        assert answer.content_type == "text/plain; charset=utf-8"
