"""The audit log: every change of an organization, its people, keys and entitlements, and who made it."""

import contextvars
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest
from flask.testing import FlaskClient
from sqlalchemy import exc, text

from identity import usecases
from identity.app import dependencies
from identity.config import WorkerConfig
from tip_testing.identity_fixtures import IdentityFixtures, Organization
from tip_testing.platform_plugin import Platform

from .matrix_stage import ENDPOINTS, Stage
from .user_deletions import new_member

Bearer = Callable[[str], dict[str, str]]
Headers = dict[str, str]
KEY = {"name": "Desk", "environment": "paper", "permissions": ["intent:read"]}

# By endpoint of the matrix, which knows them all: what it records.
RECORDED = {
    "create_organization": "organization.created",
    "change_organization": "organization.updated",
    "put_member": "membership.updated",
    "remove_member": "membership.deleted",
    "leave_organization": "membership.deleted",
    "create_invitation": "invitation.created",
    "revoke_invitation": "invitation.deleted",
    "accept_invitation": "membership.updated",
    "create_key": "api_key.created",
    "change_key": "api_key.updated",
    "delete_key": "api_key.deleted",
    "put_entitlement": "entitlement.updated",
    "remove_entitlement": "entitlement.deleted",
    "delete_me": "user.deleted",
}
OF_THE_PLATFORM = {
    "create_service_account": "service_account.created",
    "change_service_account": "service_account.updated",
    "rotate_secret": "service_account.updated",
    "delete_service_account": "service_account.deleted",
}
CHANGE_NOTHING = {"validate", "token", "begin_device", "consent", "revoke_token"}


def an_admin(stage: Stage) -> str:
    return stage.identity.subject(stage.own.external_id, "admin")


def a_guest(stage: Stage) -> str:
    subject = f"guest-{stage.made}"
    usecases.put_user(stage.identity.deps, stage.identity.provider, subject)
    return subject


OF_USERS: dict[str, Callable[[Stage], str]] = {
    "put_member": an_admin,
    "remove_member": an_admin,
    "create_invitation": an_admin,
    "revoke_invitation": an_admin,
    "delete_me": an_admin,
    "leave_organization": lambda stage: stage.new_member("own"),
    "accept_invitation": a_guest,
}
"""Who changes what no service account may."""


@pytest.fixture
def stage(identity: IdentityFixtures) -> Stage:
    return Stage(identity, identity.organization(), identity.organization(), {}, None)


def at(organization: Organization) -> str:
    return f"/v1/organizations/{organization.id}/audit-entries"


def entries(client: FlaskClient, headers: Headers, path: str, **query: object) -> list[Any]:
    answer = client.get(path, query_string=query, headers=headers)
    assert answer.status_code == 200, answer.text
    return list(answer.json["data"])


def alone(do: Callable[..., Any], *arguments: object) -> Any:
    """As a process of its own would, which answers no request; those of this thread have left theirs."""
    return contextvars.Context().run(do, *arguments)


def test_every_endpoint_that_changes_something_records_it_or_says_why_not(client: FlaskClient, stage: Stage) -> None:
    writing = {name for name, request in ENDPOINTS.items() if request(stage, "own")[0] != "GET"}

    assert writing == RECORDED.keys() | OF_THE_PLATFORM.keys() | CHANGE_NOTHING


@pytest.mark.parametrize("endpoint", sorted(RECORDED))
def test_a_change_is_recorded_with_who_made_it_and_by_which_request(
    client: FlaskClient, identity: IdentityFixtures, stage: Stage, as_bearer: Bearer, endpoint: str
) -> None:
    service = identity.service_account()
    operator = as_bearer(service.token)
    actor, headers = {"type": "service_account", "id": service.client_id}, operator
    method, path, body = ENDPOINTS[endpoint](stage, "own")
    if endpoint in OF_USERS:
        subject = OF_USERS[endpoint](stage)
        token = identity.user_token(subject, stage.own.external_id)
        actor, headers = {"type": "user", "id": subject}, as_bearer(token)
    request_id = uuid4().hex
    about = {"x-request-id": request_id, "x-organization-id": str(stage.own.id)}

    answer = client.open(path, method=method, json=body, headers=headers | about)

    assert answer.status_code < 300, answer.text
    organization_id = answer.json["id"] if endpoint == "create_organization" else stage.own.id
    newest = entries(client, operator, f"/v1/organizations/{organization_id}/audit-entries")[0]
    assert (newest["type"], newest["actor"]) == (RECORDED[endpoint], actor)
    assert newest["request_id"] == request_id


@pytest.mark.parametrize("endpoint", sorted(OF_THE_PLATFORM))
def test_a_change_of_a_service_account_is_in_the_services_own_log(
    client: FlaskClient,
    identity: IdentityFixtures,
    stage: Stage,
    as_bearer: Bearer,
    capsys: pytest.CaptureFixture[str],
    endpoint: str,
) -> None:
    method, path, body = ENDPOINTS[endpoint](stage, "own")
    service = identity.service_account()
    capsys.readouterr()

    answer = client.open(path, method=method, json=body, headers=as_bearer(service.token))

    assert answer.status_code < 300, answer.text
    logged = "".join(capsys.readouterr())
    assert all(word in logged for word in ("platform_change", OF_THE_PLATFORM[endpoint], service.client_id))


def test_an_entry_says_what_a_key_was_and_is_and_never_the_key(
    client: FlaskClient, organization: Organization, admin: Headers
) -> None:
    made = client.post("/v1/api-keys", json=KEY, headers=admin)
    path, shown = made.headers["Location"], {name: made.json[name] for name in (*KEY, "prefix")}
    client.patch(path, json={"name": "Desk 2", "disabled": True}, headers=admin)
    client.delete(path, headers=admin)

    deleted, updated, created = entries(client, admin, at(organization), target=made.json["id"])

    whole = shown | {"disabled": False, "expires_at": None, "bounds": None}
    assert (created["from"], created["to"]) == (None, whole)
    assert (updated["from"], updated["to"]) == (
        {"name": "Desk", "disabled": False},
        {"name": "Desk 2", "disabled": True},
    )
    assert (deleted["from"], deleted["to"]) == (whole | {"name": "Desk 2", "disabled": True}, None)
    assert made.json["key"] not in json.dumps([deleted, updated, created])


def test_what_changes_nothing_is_neither_recorded_nor_published(
    client: FlaskClient, identity: IdentityFixtures, organization: Organization, admin: Headers, events: Any
) -> None:
    subject = identity.subject(organization.external_id, "member")
    before, published = entries(client, admin, at(organization)), events.all()

    client.put(f"/v1/organizations/{organization.id}/memberships/{subject}", json={"role": "member"}, headers=admin)

    assert (entries(client, admin, at(organization)), events.all()) == (before, published)


def test_a_refused_change_leaves_no_entry(
    client: FlaskClient, identity: IdentityFixtures, organization: Organization, admin: Headers
) -> None:
    before = entries(client, admin, at(organization))
    subject = identity.subject(organization.external_id, "admin")

    refused = client.delete(f"/v1/organizations/{organization.id}/memberships/{subject}", headers=admin)

    assert (refused.status_code, entries(client, admin, at(organization))) == (409, before)


def test_what_is_done_by_hand_says_so(
    client: FlaskClient, identity: IdentityFixtures, organization: Organization, admin: Headers
) -> None:
    alone(usecases.change_member, identity.deps, None, organization.id, "founder", "member")

    [newest] = entries(client, admin, at(organization), target="founder")
    assert newest["actor"] == {"type": "system", "id": "by-hand"}
    assert (newest["from"], newest["to"], newest["request_id"]) == (None, {"role": "member"}, None)


def test_a_deleted_user_is_recorded_in_each_organization_they_belonged_to(
    client: FlaskClient, identity: IdentityFixtures, organization: Organization, operator: Headers, as_bearer: Bearer
) -> None:
    other, stranger = identity.organization(), identity.organization()
    subject = new_member(identity, organization)
    usecases.change_member(identity.deps, None, other.id, subject, "read_only")
    token = identity.user_token(subject, organization.external_id)

    assert client.delete("/v1/users/me", headers=as_bearer(token)).status_code == 204

    found = [
        [
            (entry["from"], entry["to"], entry["actor"]["id"])
            for entry in entries(client, operator, at(of), target=subject)
        ][:1]
        for of in (organization, other, stranger)
    ]
    assert found == [[({"role": "member"}, None, subject)], [({"role": "read_only"}, None, subject)], []]


def test_a_deletion_that_the_scheduler_finishes_is_recorded_too(
    platform: Platform, client: FlaskClient, identity: IdentityFixtures, organization: Organization, admin: Headers
) -> None:
    subject = new_member(identity, organization)
    with platform.admin() as connection:
        begun = "UPDATE identity.app_user SET deletion_begun_at = now() - interval '1 hour' WHERE subject = :subject"
        connection.execute(text(begun), {"subject": subject})
    worker = dependencies(WorkerConfig.from_env(platform.environment("identity")))

    assert alone(usecases.finish_deletions, worker) >= 1

    worker.engine.dispose()
    newest = entries(client, admin, at(organization))[0]
    assert (newest["type"], newest["target"], newest["request_id"]) == ("user.deleted", subject, None)


def test_changes_made_at_the_same_time_are_counted_without_a_gap(
    client: FlaskClient, organization: Organization, admin: Headers
) -> None:
    before = entries(client, admin, at(organization))[0]["sequence"]

    def make(_: int) -> int:
        return client.application.test_client().post("/v1/api-keys", json=KEY, headers=admin).status_code

    with ThreadPoolExecutor(4) as threads:
        made = list(threads.map(make, range(12))).count(201)  # a lock waited for too long is 503

    assert made and [entry["sequence"] for entry in entries(client, admin, at(organization))][:made] == list(
        range(before + made, before, -1)
    )


@pytest.mark.parametrize(
    "change", ["UPDATE identity.audit_entry SET actor_id = 'x'", "DELETE FROM identity.audit_entry"]
)
@pytest.mark.parametrize("role", ["web", "worker", "owner"])
def test_nobody_changes_an_entry(platform: Platform, organization: Organization, role: str, change: str) -> None:
    name = {"web": "tip_identity_web", "worker": "tip_identity", "owner": None}[role]
    wall = "append-only" if name is None else "permission denied"
    with platform.admin() as connection:
        if name:
            connection.execute(text(f"SET ROLE {name}"))
        with pytest.raises(exc.ProgrammingError, match=wall):
            connection.execute(text(change))
