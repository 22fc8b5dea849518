"""Somebody who is invited to an organization and has never signed in: from the code to the first token."""

from secrets import token_hex
from typing import Any

import pytest
from flask.testing import FlaskClient

from identity.app import create_app
from tip_testing.identity_fixtures import IdentityFixtures, Organization
from tip_testing.login_browser import LOGIN_ENVIRONMENT, App, Browser, Person
from tip_testing.platform_plugin import Platform

from .login_pages import person

Headers = dict[str, str]


@pytest.fixture(scope="module")
def client(platform: Platform) -> FlaskClient:
    return create_app(platform.web_environment("identity", **LOGIN_ENVIRONMENT)).test_client()


def invite(client: FlaskClient, admin: Headers, organization: Organization, email: str) -> dict[str, Any]:
    path = f"/v1/organizations/{organization.id}/invitations"
    answer = client.post(path, json={"subject": email, "role": "member"}, headers=admin)
    assert answer.status_code == 201, answer.text
    return dict(answer.json)


def enter(browser: Browser, code: str) -> Any:
    browser.get("/login/invitation")
    return browser.submit("/login/invitation", code=code)


def test_an_invited_person_sets_a_password_becomes_a_member_and_gets_a_token(
    client: FlaskClient, organization: Organization, admin: Headers, browser: Browser
) -> None:
    invited = invite(client, admin, organization, f"Bob-{token_hex(6)}@Example.org")
    bob = Person(invited["subject"], invited["one_time_code"])
    browser.set_password(bob)
    app = App()

    assert "belong to no active organization" in browser.get(app.authorize_path()).text
    assert f"a member of {invited_to(client, admin, organization)} now" in enter(browser, invited["code"]).text
    token = app.tokens(browser)["access_token"]
    shown = client.get("/v1/auth/self", headers={"Authorization": f"Bearer {token}"})
    assert (shown.json["role"], shown.json["organization_id"]) == ("member", str(organization.id))


def invited_to(client: FlaskClient, admin: Headers, organization: Organization) -> str:
    name: str = client.get(f"/v1/organizations/{organization.id}", headers=admin).json["name"]
    return name


def test_whoever_is_known_gets_no_code_to_set_a_password_with_and_the_answer_does_not_say_so(
    client: FlaskClient, identity: IdentityFixtures, organization: Organization, admin: Headers, browser: Browser
) -> None:
    other = identity.organization()
    carol = person(identity, other)

    invited = invite(client, admin, organization, carol.email)
    of_nobody = invite(client, admin, organization, f"{token_hex(6)}@example.org")

    assert shape(invited) == shape(of_nobody)
    assert opens_nothing(browser, invited)
    assert browser.set_password(carol).status_code == 303
    assert "a member of" in enter(browser, invited["code"]).text


def shape(invited: dict[str, Any]) -> dict[str, tuple[type, int]]:
    """What somebody sees who does not try the codes."""
    return {name: (type(value), len(value)) for name, value in invited.items() if name not in ("subject", "expires_at")}


def opens_nothing(browser: Browser, invited: dict[str, Any]) -> bool:
    return bool(browser.set_password(Person(invited["subject"], invited["one_time_code"])).status_code == 403)


def test_a_second_invitation_of_a_new_person_replaces_no_login(
    client: FlaskClient, organization: Organization, admin: Headers, browser: Browser
) -> None:
    email = f"{token_hex(6)}@example.org"
    first, second = (invite(client, admin, organization, email) for _ in range(2))

    assert opens_nothing(browser, second)
    browser.set_password(Person(email, first["one_time_code"]))
    assert enter(browser, first["code"]).status_code == 403
    assert "a member of" in enter(browser, second["code"]).text


def test_a_code_that_is_not_theirs_makes_nobody_a_member(
    client: FlaskClient, identity: IdentityFixtures, organization: Organization, admin: Headers, browser: Browser
) -> None:
    dave = person(identity, identity.organization())
    invited = invite(client, admin, organization, f"{token_hex(6)}@example.org")
    browser.set_password(dave)

    for code in (invited["code"], "tip_invitation_unknown", ""):
        answer = enter(browser, code)
        assert (answer.status_code, "No open invitation of yours" in answer.text) == (403, True)


@pytest.mark.parametrize("written", [" {}", "{} ", "\u2003{}", "{}"], ids=["before", "after", "wide", "plain"])
def test_no_spelling_of_an_address_gets_a_code_for_somebody_who_is_known(
    client: FlaskClient, identity: IdentityFixtures, organization: Organization, admin: Headers, browser: Browser,
    written: str,
) -> None:  # fmt: skip
    victim = person(identity, identity.organization())
    path = f"/v1/organizations/{organization.id}/invitations"
    for email in (victim.email, victim.email.upper()):
        answer = client.post(path, json={"subject": written.format(email), "role": "member"}, headers=admin)
        assert answer.status_code == 422 or opens_nothing(browser, answer.json)

    assert browser.set_password(victim).status_code == 303, "their own code still counts"


def test_whoever_claimed_an_address_is_made_a_member_by_an_invitation_only(
    client: FlaskClient, identity: IdentityFixtures, organization: Organization, admin: Headers, browser: Browser
) -> None:
    email = f"{token_hex(6)}@example.org"
    invited = invite(client, admin, organization, email)
    other = identity.organization()
    path = f"/v1/organizations/{other.id}/memberships/{email}"
    of_other = {"Authorization": f"Bearer {other.tokens['admin']}"}

    before = client.put(path, json={"role": "admin"}, headers=of_other)
    browser.set_password(Person(email, invited["one_time_code"]))
    after = client.put(path, json={"role": "admin"}, headers=of_other)
    enter(browser, invite(client, of_other, other, email)["code"])
    changed = client.put(path, json={"role": "admin"}, headers=of_other)

    assert [answer.status_code for answer in (before, after, changed)] == [409, 409, 200]
    assert before.json["code"] == "login_exists"
