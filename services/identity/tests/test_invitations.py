"""Invitations and leaving: how somebody becomes a member of an organization by their own will, and stops being one."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from flask.testing import FlaskClient
from sqlalchemy import text

from chassis.principals import Kind, Principal, Role
from identity import model, usecases
from identity.app import create_app
from identity.providers.oidc import OidcProvider
from identity.store import people
from tip_testing.identity_fixtures import IdentityFixtures, Organization
from tip_testing.platform_plugin import Platform

Bearer = Callable[[str], dict[str, str]]
Headers = dict[str, str]


@pytest.fixture
def subject() -> str:
    return f"guest-{uuid4().hex}@example.com"


@pytest.fixture
def guest(identity: IdentityFixtures, subject: str, as_bearer: Bearer) -> Headers:
    """Somebody who has signed in, and belongs nowhere."""
    return as_bearer(identity.user_without_organization(subject))


def at(organization: Organization) -> str:
    return f"/v1/organizations/{organization.id}/invitations"


def invite(client: FlaskClient, admin: Headers, organization: Organization, subject: str, role: str = "member") -> Any:
    answer = client.post(at(organization), json={"subject": subject, "role": role}, headers=admin)
    assert answer.status_code == 201, answer.text
    return answer


def accept(client: FlaskClient, guest: Headers, code: str) -> Any:
    return client.post("/v1/invitations/accept", json={"code": code}, headers=guest)


def test_an_invited_user_becomes_a_member_by_the_code_once(
    client: FlaskClient, identity: IdentityFixtures, organization: Organization, admin: Headers, guest: Headers,
    subject: str, as_bearer: Bearer,
) -> None:  # fmt: skip
    made = invite(client, admin, organization, subject, "read_only")
    shown = client.get(made.headers["Location"], headers=admin)
    listed = client.get(at(organization), headers=admin)

    first, second = (accept(client, guest, made.json["code"]) for _ in range(2))

    assert shown.json == {name: value for name, value in made.json.items() if name not in ("code", "one_time_code")}
    assert listed.json["data"] == [shown.json]
    assert made.json["invited_by"] == identity.subject(organization.external_id, "admin")
    assert (first.status_code, second.status_code) == (200, 404)
    assert first.json["organization_id"] == str(organization.id) and first.json["role"] == "read_only"
    token = as_bearer(identity.user_token(subject, organization.external_id))
    assert client.get("/v1/auth/self", headers=token).json["role"] == "read_only"
    assert client.get(made.headers["Location"], headers=admin).status_code == 404
    assert client.get(at(organization), headers=admin).json["data"] == []


def test_the_story_of_a_member_is_in_the_audit_log_under_their_subject(
    client: FlaskClient, organization: Organization, admin: Headers, guest: Headers, subject: str
) -> None:
    accept(client, guest, invite(client, admin, organization, subject).json["code"])
    client.delete(f"/v1/users/me/memberships/{organization.id}", headers=guest)

    path = f"/v1/organizations/{organization.id}/audit-entries?target={subject}"
    found = [(entry["type"], entry["actor"]["id"] == subject) for entry in client.get(path, headers=admin).json["data"]]
    assert found[::-1] == [
        ("invitation.created", False),
        ("invitation.accepted", True),
        ("membership.updated", True),
        ("membership.deleted", True),
    ]


def test_a_code_is_worth_nothing_to_anybody_else(
    client: FlaskClient, identity: IdentityFixtures, organization: Organization, admin: Headers, guest: Headers,
    as_bearer: Bearer, subject: str,
) -> None:  # fmt: skip
    code = invite(client, admin, organization, subject).json["code"]
    stranger = as_bearer(identity.user_without_organization())

    refused = [
        accept(client, stranger, code),
        accept(client, guest, "tip_invitation_unknown"),
        accept(client, admin, code),
    ]

    bodies = [{**answer.json, "request_id": ""} for answer in refused]
    assert [answer.status_code for answer in refused] == [404] * 3 and bodies[0] == bodies[1] == bodies[2]
    assert accept(client, guest, code).status_code == 200


def test_an_invitation_ends_when_it_is_revoked_replaced_or_old(
    client: FlaskClient, organization: Organization, admin: Headers, guest: Headers, subject: str, platform: Platform
) -> None:
    first = invite(client, admin, organization, subject)
    second = invite(client, admin, organization, subject)
    assert accept(client, guest, first.json["code"]).status_code == 404
    assert client.delete(second.headers["Location"], headers=admin).status_code == 204
    assert client.delete(second.headers["Location"], headers=admin).status_code == 404
    assert accept(client, guest, second.json["code"]).status_code == 404
    third = invite(client, admin, organization, subject)
    with platform.admin() as connection:
        old = "UPDATE identity.invitation SET expires_at = now() WHERE id = :id"
        connection.execute(text(old), {"id": third.json["id"]})
    assert accept(client, guest, third.json["code"]).status_code == 404
    assert client.get(third.headers["Location"], headers=admin).status_code == 404
    assert accept(client, guest, invite(client, admin, organization, subject).json["code"]).status_code == 200


@pytest.mark.parametrize("taken", ["demoted", "removed", "deleted"])
def test_an_invitation_is_worth_what_its_inviter_may_still_give(
    client: FlaskClient, identity: IdentityFixtures, organization: Organization, guest: Headers, subject: str,
    as_bearer: Bearer, taken: str,
) -> None:  # fmt: skip
    inviter = f"inviter-{uuid4().hex}"
    usecases.change_member(identity.deps, None, organization.id, inviter, "admin")
    headers = as_bearer(identity.user_token(inviter, organization.external_id))
    code = invite(client, headers, organization, subject, "admin").json["code"]
    if taken == "demoted":
        usecases.change_member(identity.deps, None, organization.id, inviter, "member")
    elif taken == "removed":
        usecases.remove_member(identity.deps, None, organization.id, inviter)
    else:
        assert client.delete("/v1/users/me", headers=headers).status_code == 204

    assert accept(client, guest, code).status_code == 404
    if taken != "deleted":
        usecases.change_member(identity.deps, None, organization.id, inviter, "admin")
        assert accept(client, guest, code).status_code == 200


def test_nobody_becomes_a_member_of_a_disabled_organization(
    client: FlaskClient, organization: Organization, admin: Headers, operator: Headers, guest: Headers, subject: str
) -> None:
    code = invite(client, admin, organization, subject).json["code"]
    client.patch(f"/v1/organizations/{organization.id}", json={"disabled": True}, headers=operator)

    assert accept(client, guest, code).status_code == 404


def test_a_member_is_not_invited_and_keeps_their_role(
    client: FlaskClient, identity: IdentityFixtures, organization: Organization, admin: Headers, guest: Headers,
    subject: str,
) -> None:  # fmt: skip
    code = invite(client, admin, organization, subject, "read_only").json["code"]
    usecases.change_member(identity.deps, None, organization.id, subject, "admin")

    accepted = accept(client, guest, code)
    invited = client.post(at(organization), json={"subject": subject, "role": "member"}, headers=admin)

    assert [(answer.status_code, answer.json["code"]) for answer in (accepted, invited)] == [(409, "member_exists")] * 2
    path = f"/v1/organizations/{organization.id}/memberships/{subject}"
    assert client.get(path, headers=admin).json["role"] == "admin"


def test_a_removed_member_may_be_invited_again(
    client: FlaskClient, organization: Organization, admin: Headers, guest: Headers, subject: str
) -> None:
    accept(client, guest, invite(client, admin, organization, subject).json["code"])
    client.delete(f"/v1/organizations/{organization.id}/memberships/{subject}", headers=admin)

    assert accept(client, guest, invite(client, admin, organization, subject).json["code"]).status_code == 200


def test_a_deleted_user_is_invited_like_an_unknown_one(
    client: FlaskClient, identity: IdentityFixtures, organization: Organization, admin: Headers, as_bearer: Bearer
) -> None:
    other, gone = identity.organization(), f"gone-{uuid4().hex}"
    usecases.change_member(identity.deps, None, other.id, gone, "member")
    client.delete("/v1/users/me", headers=as_bearer(identity.user_token(gone, other.external_id)))

    answers = [invite(client, admin, organization, subject) for subject in (gone, f"never-{uuid4().hex}")]

    assert answers[0].json.keys() == answers[1].json.keys()


def test_an_address_is_invited_however_it_is_written(
    client: FlaskClient, organization: Organization, admin: Headers, guest: Headers, subject: str
) -> None:
    made = invite(client, admin, organization, subject.upper())

    assert made.json["subject"] == subject
    assert accept(client, guest, made.json["code"]).status_code == 200


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"subject": "x"}, "/role"),
        ({"role": "member"}, "/subject"),
        ({"subject": "x", "role": "owner"}, "/role"),
        ({"subject": "", "role": "member"}, "/subject"),
        ({"subject": "zero\u200bwidth", "role": "member"}, "/subject"),
        ({"subject": "x", "role": "member", "code": "mine"}, "/code"),
    ],
)
def test_an_invitation_that_cannot_be_is_refused(
    client: FlaskClient, organization: Organization, admin: Headers, body: dict[str, str], pointer: str
) -> None:
    answer = client.post(at(organization), json=body, headers=admin)

    assert (answer.status_code, [error["pointer"] for error in answer.json["errors"]]) == (422, [pointer])


def test_guessing_codes_is_limited(platform: Platform, guest: Headers) -> None:
    app = create_app(platform.web_environment("identity", INVITATION_RATE_LIMIT_PER_MINUTE="3"))
    client = app.test_client()

    def present() -> int:
        answer = client.post("/v1/invitations/accept", json={"code": "x"}, headers=guest)
        return answer.status_code

    for _ in range(8):  # a minute may end in between, but not twice
        if (status := present()) == 429:
            break
        assert status == 404
    assert status == 429


def test_a_member_leaves_also_an_organization_that_the_token_does_not_name(
    client: FlaskClient, identity: IdentityFixtures, organization: Organization, guest: Headers, subject: str,
    admin: Headers,
) -> None:  # fmt: skip
    usecases.change_member(identity.deps, None, organization.id, subject, "read_only")
    path = f"/v1/users/me/memberships/{organization.id}"

    assert [client.delete(path, headers=guest).status_code for _ in range(2)] == [204, 404]
    member = f"/v1/organizations/{organization.id}/memberships/{subject}"
    assert client.get(member, headers=admin).status_code == 404


def test_the_last_admin_cannot_leave(
    client: FlaskClient, identity: IdentityFixtures, organization: Organization, admin: Headers, guest: Headers,
    subject: str,
) -> None:  # fmt: skip
    path = f"/v1/users/me/memberships/{organization.id}"

    refused = client.delete(path, headers=admin)

    assert (refused.status_code, refused.json["code"]) == (409, "last_admin")
    usecases.change_member(identity.deps, None, organization.id, subject, "admin")
    assert client.delete(path, headers=admin).status_code == 204


def with_claims(identity: IdentityFixtures) -> usecases.Deps:
    """As with an OpenID Connect provider, whose tokens may say who belongs to an organization."""
    return replace(identity.deps, provider=OidcProvider(identity.provider, "https://provider.example", ""))


def test_a_member_by_the_claim_alone_leaves_and_the_claim_counts_no_longer(
    identity: IdentityFixtures, organization: Organization, subject: str
) -> None:
    claimed = Principal(Kind.USER, subject, organization.id, role=Role.MEMBER, provider=identity.provider)

    usecases.leave_organization(with_claims(identity), claimed, organization.id)

    with identity.deps.engine.connect() as tx:
        assert people.standing(tx, organization.id, identity.provider, subject) == model.Standing(None)


def test_an_invitation_by_an_admin_of_the_claim_alone_counts_until_they_are_removed_here(
    identity: IdentityFixtures, organization: Organization, subject: str
) -> None:
    deps = with_claims(identity)
    claimed = Principal(Kind.USER, f"lead-{uuid4().hex}", organization.id, role=Role.ADMIN, provider=identity.provider)
    guests = [Principal(Kind.USER, f"{number}-{subject}", provider=identity.provider) for number in range(2)]
    codes = [usecases.create_invitation(deps, claimed, organization.id, guest.id, "member")[1] for guest in guests]

    assert usecases.accept_invitation(deps, guests[0], codes[0]).role == "member"
    usecases.remove_member(deps, None, organization.id, claimed.id)
    with pytest.raises(model.NotFound):
        usecases.accept_invitation(deps, guests[1], codes[1])
