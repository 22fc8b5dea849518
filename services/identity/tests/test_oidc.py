"""Users of an OpenID Connect provider that nobody here wrote: canaille, as a real process."""

from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest
from flask.testing import FlaskClient

from chassis import oidc, tokens
from chassis.principals import Role, Users
from identity import model, usecases
from identity.app import create_app
from tip_testing.identity_fixtures import IdentityFixtures
from tip_testing.platform_plugin import Platform

Bearer = Callable[[str], dict[str, str]]


@pytest.fixture(scope="module")
def client(platform: Platform, canaille: Any) -> FlaskClient:
    return create_app(platform.web_environment("identity", **canaille.environment())).test_client()


@pytest.fixture(scope="module")
def identity(platform: Platform, canaille: Any) -> Iterator[IdentityFixtures]:
    identity = IdentityFixtures(platform.administrator_environment("identity", **canaille.environment()))
    yield identity
    identity.close()


@pytest.fixture(scope="module")
def desk(identity: IdentityFixtures) -> model.Organization:
    return usecases.create_organization(identity.deps, "canaille", f"desk-{uuid4().hex[:8]}", "Desk")


@pytest.fixture
def name() -> str:
    return f"user-{uuid4().hex[:8]}"


def test_a_providers_user_is_known_by_the_token_alone(
    client: FlaskClient, canaille: Any, desk: model.Organization, name: str, as_bearer: Bearer
) -> None:
    subject = canaille.add_user(name, desk.external_id, "desk-leads")

    answer = client.get("/v1/users/me", headers=as_bearer(canaille.user_token(name)))

    assert answer.status_code == 200
    assert answer.json == {
        "id": None,
        "provider": "canaille",
        "subject": subject,
        "organization_id": str(desk.id),
        "role": "admin",
        "memberships": [],
    }


def test_a_membership_here_decides_over_the_providers_claim(
    client: FlaskClient,
    canaille: Any,
    identity: IdentityFixtures,
    desk: model.Organization,
    name: str,
    as_bearer: Bearer,
) -> None:
    subject = canaille.add_user(name, desk.external_id, "desk-leads")
    token = as_bearer(canaille.user_token(name))
    usecases.put_member(identity.deps, desk, subject, "read_only")

    assert client.get("/v1/auth/self", headers=token).json["role"] == "read_only"


def test_a_membership_taken_away_here_counts_more_than_the_claim_from_the_next_request_on(
    client: FlaskClient,
    canaille: Any,
    identity: IdentityFixtures,
    desk: model.Organization,
    name: str,
    as_bearer: Bearer,
) -> None:
    subject = canaille.add_user(name, desk.external_id, "desk")
    token = as_bearer(canaille.user_token(name))
    assert client.get("/v1/auth/self", headers=token).json["role"] == "member"

    usecases.remove_member(identity.deps, None, desk.id, subject)

    after = client.get("/v1/auth/self", headers=token)
    assert (after.status_code, after.json["role"], after.json["organization_id"]) == (200, None, None)


def test_a_user_of_an_organization_we_do_not_have_is_a_user_without_one(
    client: FlaskClient, canaille: Any, name: str, as_bearer: Bearer
) -> None:
    canaille.add_user(name, "nobody-knows-it", "desk-leads")

    answer = client.get("/v1/auth/self", headers=as_bearer(canaille.user_token(name)))

    assert (answer.json["organization_id"], answer.json["role"]) == (None, None)


def test_a_user_without_a_role_we_know_has_no_organization(
    client: FlaskClient, canaille: Any, desk: model.Organization, name: str, as_bearer: Bearer
) -> None:
    canaille.add_user(name, desk.external_id, f"visitors-{name}")

    answer = client.get("/v1/auth/self", headers=as_bearer(canaille.user_token(name)))

    assert (answer.json["organization_id"], answer.json["role"]) == (None, None)


def test_a_user_deletes_themself_at_the_provider_and_stays_deleted_with_a_valid_token(
    client: FlaskClient, canaille: Any, desk: model.Organization, name: str, events: Any, as_bearer: Bearer
) -> None:
    subject = canaille.add_user(name, desk.external_id, "desk")
    token = as_bearer(canaille.user_token(name))

    answer = client.delete("/v1/users/me", headers=token)

    assert answer.status_code == 204
    assert not canaille.has_user(subject)
    assert [event["subject"] for event in events.of("user.deleted")].count(subject) == 1
    assert client.get("/v1/auth/self", headers=token).status_code == 401
    again = client.delete("/v1/users/me", headers=token)
    assert (again.status_code, again.get_data(as_text=True)) == (401, "unauthorized")


def test_an_organization_is_found_by_its_members_and_by_nobody_else(
    client: FlaskClient,
    canaille: Any,
    identity: IdentityFixtures,
    desk: model.Organization,
    name: str,
    as_bearer: Bearer,
) -> None:
    other = usecases.create_organization(identity.deps, "canaille", f"other-{name}", "Other")
    canaille.add_user(name, desk.external_id, "desk")
    token = as_bearer(canaille.user_token(name))

    mine = client.get(f"/v1/organizations/by-provider/canaille/{desk.external_id}", headers=token)
    foreign = client.get(f"/v1/organizations/by-provider/canaille/{other.external_id}", headers=token)

    assert (mine.status_code, mine.json["id"]) == (200, str(desk.id))
    assert foreign.status_code == 404


def test_what_the_provider_signs_is_never_a_service_account_and_what_we_sign_never_a_user(
    client: FlaskClient,
    canaille: Any,
    identity: IdentityFixtures,
    desk: model.Organization,
    name: str,
    as_bearer: Bearer,
) -> None:
    subject = canaille.add_user(name, desk.external_id, "desk-leads")
    ours = identity.user_token(subject, desk.external_id, "admin")

    assert client.get("/v1/auth/self", headers=as_bearer(ours)).status_code == 401
    assert client.get("/v1/auth/self", headers=as_bearer(identity.service_account().token)).status_code == 200
    theirs = client.get("/v1/auth/self", headers=as_bearer(canaille.user_token(name)))
    assert theirs.json["principal_type"] == "user"


def test_a_token_for_another_audience_is_refused(
    platform: Platform, canaille: Any, desk: model.Organization, name: str, as_bearer: Bearer
) -> None:
    environment = canaille.environment() | {"OIDC_AUDIENCE": "another-client"}
    client = create_app(platform.web_environment("identity", **environment)).test_client()
    canaille.add_user(name, desk.external_id, "desk")

    assert client.get("/v1/auth/self", headers=as_bearer(canaille.user_token(name))).status_code == 401


def test_keys_are_kept_while_the_provider_is_away_and_its_new_keys_found_when_it_is_back(
    canaille: Any, desk: model.Organization, name: str
) -> None:
    keys = oidc.provider_keys(canaille.issuer, keep_s=0.0, cooldown_s=0.0)
    verifier = tokens.Verifier(keys, issuer=canaille.issuer, audience=canaille.CLIENT[0])
    canaille.add_user(name, desk.external_id)
    old = canaille.user_token(name)
    assert verifier.claims(old)

    canaille.stop()
    assert verifier.claims(old)
    canaille.start()  # with a new signing key and no users: it keeps everything in memory

    subject = canaille.add_user(name, desk.external_id)
    assert verifier.claims(canaille.user_token(name))["sub"] == subject
    with pytest.raises(tokens.BadToken):
        verifier.claims(old)


def test_a_provider_never_reached_is_an_outage_and_not_a_bad_token(
    platform: Platform, canaille: Any, name: str, desk: model.Organization, as_bearer: Bearer
) -> None:
    canaille.add_user(name, desk.external_id, "desk")
    token = as_bearer(canaille.user_token(name))
    client = create_app(platform.web_environment("identity", **canaille.environment())).test_client()
    canaille.stop()

    refused = client.get("/v1/auth/self", headers=token)
    canaille.start()

    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "2")


@pytest.mark.parametrize(
    ("claim", "roles", "claims", "role"),
    [
        ("org_role", {}, {"org_role": "member"}, Role.MEMBER),
        ("org_role", {}, {"org_role": "owner"}, None),
        ("org_role", {}, {"org_role": 7}, None),
        ("org_role", {}, {}, None),
        ("groups", {"lead": "admin", "desk": "member"}, {"groups": ["desk", "lead"]}, Role.ADMIN),
        ("groups", {"lead": "admin"}, {"groups": ["admin"]}, None),
        ("realm.roles", {}, {"realm": {"roles": ["read_only", None]}}, Role.READ_ONLY),
        ("https://example.org/role", {}, {"https://example.org/role": "admin"}, Role.ADMIN),
    ],
)
def test_the_role_is_read_from_the_claim_the_configuration_names(
    claim: str, roles: dict[str, str], claims: dict[str, Any], role: Role | None
) -> None:
    assert Users("issuer", role_claim=claim, roles=roles).role(claims) == role


@pytest.mark.parametrize(
    "wrong",
    [
        {"OIDC_SCIM_URL": ""},
        {"OIDC_DELETE_URL": "http://x/{subject}"},
        {"OIDC_SCIM_URL": "", "OIDC_DELETE_URL": "http://x/"},
        {"OIDC_SCIM_URL": "canaille/scim/v2"},
        {"OIDC_CLIENT_ID": ""},
        {"OIDC_CLIENT_ID": "", "OIDC_DELETE_TOKEN": "t\u00f6ken"},
        {"OIDC_ROLES": "lead"},
    ],
)
def test_a_configuration_that_could_not_delete_users_does_not_start(
    platform: Platform, canaille: Any, wrong: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        create_app(platform.web_environment("identity", **canaille.environment() | wrong))

    assert stopped.value.code == 2
    assert "OIDC_" in capsys.readouterr().err
