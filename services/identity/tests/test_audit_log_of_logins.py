"""Sign-ins and resets in the audit log: in that of every organization of the person, and of no other."""

from typing import Any

import pytest
from flask.testing import FlaskClient

from identity import usecases
from identity.app import create_app
from identity.usecases import passwords
from tip_testing.identity_fixtures import IdentityFixtures, Organization
from tip_testing.login_browser import LOGIN_ENVIRONMENT, Browser
from tip_testing.platform_plugin import Platform

from .conftest import bearer
from .login_pages import join, person


@pytest.fixture(scope="module")
def client(platform: Platform) -> FlaskClient:
    return create_app(platform.web_environment("identity", **LOGIN_ENVIRONMENT)).test_client()


def logins(client: FlaskClient, organization: Organization, email: str) -> list[tuple[str, str, Any]]:
    """Oldest first."""
    path = f"/v1/organizations/{organization.id}/audit-entries?target={email}"
    found = client.get(path, headers=bearer(organization.tokens["admin"])).json["data"]
    return [
        (entry["type"], entry["actor"]["id"], entry["to"]) for entry in reversed(found) if entry["type"][:5] == "login"
    ]


def test_sign_ins_and_resets_are_in_the_log_of_each_organization_of_the_person(
    client: FlaskClient, identity: IdentityFixtures, organization: Organization, browser: Browser
) -> None:
    others = identity.organization(), identity.organization(), identity.organization()
    second, left, stranger = others
    alice = person(identity, organization)
    alice.one_time_code = join(identity, second, alice.email).one_time_code
    usecases.change_member(identity.deps, None, left.id, alice.email, "member")
    usecases.remove_member(identity.deps, None, left.id, alice.email)

    browser.set_password(alice)
    browser.set_up_totp(alice)
    passwords.reset_login(identity.deps, alice.email, totp=True)

    expected = [
        ("login.signed_in", alice.email, {"method": "one_time_code", "second_factor": False}),
        ("login.signed_in", alice.email, {"method": "password", "second_factor": True}),
        ("login.reset", "by-hand", {"second_factor_removed": True}),
    ]
    assert logins(client, organization, alice.email) == logins(client, second, alice.email) == expected
    assert logins(client, left, alice.email) == logins(client, stranger, alice.email) == []


def test_a_sign_in_that_is_refused_is_in_the_service_s_log_without_the_address(
    client: FlaskClient,
    identity: IdentityFixtures,
    organization: Organization,
    browser: Browser,
    other_browser: Browser,
    capfd: pytest.CaptureFixture[str],
) -> None:
    alice = person(identity, organization)
    browser.set_password(alice)
    alice.password = "of somebody else"
    capfd.readouterr()

    assert other_browser.sign_in(alice).status_code == 403

    written = capfd.readouterr()
    assert "sign_in_refused" in written.out + written.err and alice.email not in written.out + written.err
    assert len(logins(client, organization, alice.email)) == 1


def test_a_second_factor_that_is_missing_is_no_sign_in_yet(
    client: FlaskClient,
    identity: IdentityFixtures,
    organization: Organization,
    browser: Browser,
    other_browser: Browser,
) -> None:
    alice = person(identity, organization)
    browser.set_password(alice)
    browser.set_up_totp(alice)
    before = len(logins(client, organization, alice.email))

    other_browser.follow(other_browser.sign_in(alice))
    assert len(logins(client, organization, alice.email)) == before
    other_browser.submit("/login/totp", code=alice.next_code())
    assert len(logins(client, organization, alice.email)) == before + 1
