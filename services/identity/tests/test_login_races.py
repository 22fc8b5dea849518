"""Signing in while something else happens to the login: a reset, a crowd, a membership that ends."""

import threading
from collections.abc import Callable

import pytest
from argon2 import PasswordHasher
from flask.testing import FlaskClient
from sqlalchemy import text

from identity import usecases
from identity.app import create_app
from identity.usecases import passwords
from tip_testing.identity_fixtures import IdentityFixtures, Organization
from tip_testing.login_browser import LOGIN_ENVIRONMENT, App, Browser, Person
from tip_testing.platform_plugin import Platform

from .login_pages import person

OLD_PARAMETERS = PasswordHasher(time_cost=1, memory_cost=8_192, parallelism=1)


@pytest.fixture(scope="module")
def client(platform: Platform) -> FlaskClient:
    return create_app(platform.web_environment("identity", **LOGIN_ENVIRONMENT)).test_client()


@pytest.fixture
def alice(identity: IdentityFixtures, organization: Organization, browser: Browser) -> Person:
    made = person(identity, organization)
    assert browser.set_password(made).status_code == 303
    return made


@pytest.fixture
def while_verifying(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Something that happens after a password was found to be right, and before anything comes of it."""

    def arrange(action: Callable[[], object]) -> None:
        verify = passwords._matches

        def matches(hashed: str, password: str) -> bool:
            found = verify(hashed, password)
            action()
            return found

        monkeypatch.setattr(passwords, "_matches", matches)

    return arrange


def stored_hash(platform: Platform, who: Person) -> str:
    query = "SELECT hash FROM identity.password JOIN identity.app_user ON id = user_id WHERE subject = :email"
    with platform.admin() as connection:
        return str(connection.execute(text(query), {"email": who.email}).scalar_one())


def hash_as_of_old(platform: Platform, who: Person) -> None:
    query = "UPDATE identity.password SET hash = :hash FROM identity.app_user WHERE id = user_id AND subject = :email"
    with platform.admin() as connection:
        connection.execute(text(query), {"hash": OLD_PARAMETERS.hash(who.password), "email": who.email})
        connection.commit()


@pytest.mark.parametrize("outdated", [True, False], ids=["hashed as of old", "hashed as of today"])
def test_a_sign_in_that_a_reset_overtakes_is_refused_and_changes_nothing(
    platform: Platform,
    identity: IdentityFixtures,
    alice: Person,
    other_browser: Browser,
    while_verifying: Callable[[Callable[[], object]], None],
    outdated: bool,
) -> None:
    if outdated:
        hash_as_of_old(platform, alice)
    after_reset: list[str] = []

    def reset() -> None:
        passwords.reset_login(identity.deps, alice.email, totp=False)
        after_reset.append(stored_hash(platform, alice))

    while_verifying(reset)

    assert other_browser.sign_in(alice).status_code == 403
    assert stored_hash(platform, alice) == after_reset[-1], "the old password is back"
    assert "Signed in as" not in other_browser.get("/login").text


def test_a_password_hashed_as_of_old_is_hashed_anew_at_the_next_sign_in(
    platform: Platform, alice: Person, other_browser: Browser
) -> None:
    hash_as_of_old(platform, alice)
    before = stored_hash(platform, alice)

    assert other_browser.sign_in(alice).status_code == 303
    assert "m=19456" in stored_hash(platform, alice) != before
    assert other_browser.sign_in(alice).status_code == 303


def test_a_crowd_that_signs_in_waits_a_while_and_is_sent_away(
    alice: Person, other_browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passwords, "_AT_ONCE", threading.BoundedSemaphore(1))
    monkeypatch.setattr(passwords, "PATIENCE_S", 0.05)

    with passwords._one_of_few():
        busy = other_browser.sign_in(alice)

    assert (busy.status_code, busy.headers["Retry-After"]) == (503, "5")
    assert "Try again in a few seconds" in busy.text and busy.headers["Content-Type"].startswith("text/html")
    assert other_browser.sign_in(alice).status_code == 303


def test_who_is_removed_and_made_a_member_again_signs_in_again(
    identity: IdentityFixtures, organization: Organization, alice: Person, browser: Browser
) -> None:
    app = App()
    old = app.tokens(browser)["refresh_token"]

    usecases.remove_member(identity.deps, None, organization.id, alice.email)
    usecases.change_member(identity.deps, None, organization.id, alice.email, "admin")

    assert app.refresh(browser.client, old).json["error"] == "invalid_grant"
    assert App().tokens(browser)["access_token"]
