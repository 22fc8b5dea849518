"""The second factor of local people, how often one may guess, and what an operator does about a login by hand."""

import contextvars
import html
import json
import re

import pytest
import segno
from flask.testing import FlaskClient
from sqlalchemy import text

from identity import admin as by_hand
from identity import model
from identity.app import create_app, dependencies
from identity.config import Config
from identity.usecases import login, passwords
from tip_local.home import random_key
from tip_testing.identity_fixtures import IdentityFixtures, Organization
from tip_testing.login_browser import LOGIN_ENVIRONMENT, App, Browser
from tip_testing.platform_plugin import Platform

from .login_pages import person


@pytest.fixture(scope="module")
def client(platform: Platform) -> FlaskClient:
    return create_app(platform.web_environment("identity", **LOGIN_ENVIRONMENT)).test_client()


def test_a_second_factor_is_needed_once_it_is_set_up_and_its_code_is_taken_once(
    identity: IdentityFixtures, organization: Organization, browser: Browser, other_browser: Browser
) -> None:
    alice = person(identity, organization)
    browser.set_password(alice)
    assert browser.set_up_totp(alice).status_code == 303
    [used] = alice.used

    assert "Second factor" in other_browser.follow(other_browser.sign_in(alice)).text
    assert other_browser.get(App().authorize_path()).text.count("Second factor") > 0
    assert other_browser.submit("/login/totp", code=used).status_code == 403
    assert "Signed in as" not in other_browser.get("/login").text
    assert other_browser.submit("/login/totp", code=alice.next_code()).status_code == 303
    assert "Signed in as" in other_browser.get("/login").text


def test_a_second_factor_can_be_guessed_at_five_times_only(
    identity: IdentityFixtures, organization: Organization, browser: Browser, other_browser: Browser
) -> None:
    alice = person(identity, organization)
    browser.set_password(alice)
    browser.set_up_totp(alice)
    other_browser.follow(other_browser.sign_in(alice))
    for _ in range(6):
        assert other_browser.submit("/login/totp", code="abcdef").status_code == 403

    other_browser.submit("/login/totp", code=alice.next_code())
    assert "Signed in as" not in other_browser.get("/login").text


def test_whoever_fails_too_often_in_a_row_fails_in_every_session(
    identity: IdentityFixtures, organization: Organization, browser: Browser, other_browser: Browser, platform: Platform
) -> None:
    alice = person(identity, organization)
    browser.set_password(alice)
    browser.set_up_totp(alice)
    with platform.admin() as connection:
        connection.execute(text("UPDATE identity.totp SET failures = 49"))
    other_browser.follow(other_browser.sign_in(alice))
    assert other_browser.submit("/login/totp", code="abcdef").status_code == 403

    assert other_browser.submit("/login/totp", code=alice.next_code()).status_code == 403
    alice.one_time_code = passwords.reset_login(identity.deps, alice.email, totp=True)
    assert browser.set_password(alice).status_code == 303


def test_an_operator_takes_a_lost_second_factor_away(
    identity: IdentityFixtures, organization: Organization, browser: Browser, other_browser: Browser
) -> None:
    alice = person(identity, organization)
    browser.set_password(alice)
    browser.set_up_totp(alice)

    alice.one_time_code = passwords.reset_login(identity.deps, alice.email, totp=True)
    other_browser.set_password(alice)

    assert "Signed in as" in other_browser.get("/login").text


def test_an_organization_can_require_a_second_factor(
    identity: IdentityFixtures,
    organization: Organization,
    browser: Browser,
    client: FlaskClient,
    operator: dict[str, str],
) -> None:
    alice, app = person(identity, organization), App()
    browser.set_password(alice)
    before = app.tokens(browser)
    answer = client.patch(f"/v1/organizations/{organization.id}", json={"totp_required": True}, headers=operator)
    assert (answer.status_code, answer.json["totp_required"]) == (200, True)

    assert app.refresh(client, before["refresh_token"]).json["error"] == "invalid_grant"
    browser.get(app.authorize_path())
    refused = browser.submit(app.authorize_path(), decision="allow")
    assert (refused.status_code, "Second factor required" in refused.text) == (403, True)
    browser.set_up_totp(alice)
    assert app.tokens(browser)["access_token"]


def test_the_secrets_of_second_factors_are_resealed_under_a_new_key(
    identity: IdentityFixtures, organization: Organization, browser: Browser, platform: Platform
) -> None:
    alice = person(identity, organization)
    browser.set_password(alice)
    browser.set_up_totp(alice)
    keys = {"SIGNING_KEY_ENCRYPTION_KEY": random_key(), "EARLIER_SIGNING_KEY_ENCRYPTION_KEYS": platform.signing_key}
    changed = dependencies(Config.from_env(platform.administrator_environment("identity", **keys)))

    assert login.reseal_totp_secrets(changed).count >= 1
    assert login.reseal_totp_secrets(changed) == model.Resealed(0, ())
    back = {"SIGNING_KEY_ENCRYPTION_KEY": platform.signing_key}
    back["EARLIER_SIGNING_KEY_ENCRYPTION_KEYS"] = keys["SIGNING_KEY_ENCRYPTION_KEY"]
    restored = dependencies(Config.from_env(platform.administrator_environment("identity", **back)))
    login.reseal_totp_secrets(restored)
    for deps in (changed, restored):
        deps.engine.dispose()


@pytest.fixture
def operators_environment(platform: Platform, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in platform.web_environment("identity").items():
        monkeypatch.setenv(name, value)


def do_by_hand(*arguments: str) -> None:
    """As a process of its own would, which serves nobody when it begins."""
    contextvars.Context().run(by_hand.main, arguments)


@pytest.mark.usefixtures("operators_environment")
def test_a_forgotten_password_is_reset_by_hand(
    identity: IdentityFixtures, organization: Organization, browser: Browser, capsys: pytest.CaptureFixture[str]
) -> None:
    alice = person(identity, organization)
    do_by_hand("reset-login", "--subject", alice.email.upper())
    alice.one_time_code = json.loads(capsys.readouterr().out)["one_time_code"]

    assert browser.set_password(alice).status_code == 303
    with pytest.raises(SystemExit, match="nothing here"):
        do_by_hand("reset-login", "--subject", "nobody@example.org")


@pytest.mark.usefixtures("operators_environment")
def test_a_client_is_registered_by_hand(
    identity: IdentityFixtures, organization: Organization, browser: Browser
) -> None:
    desk = App("desk", "https://desk.example.com/callback")
    browser.set_password(person(identity, organization))
    assert browser.get(desk.authorize_path()).status_code == 400

    do_by_hand("put-client", "--id", "desk", "--name", "The desk", "--redirect-uri", desk.redirect_uri)
    assert desk.tokens(browser)["access_token"]
    with pytest.raises(SystemExit, match="redirect URI is https"):
        do_by_hand("put-client", "--id", "bad", "--name", "Bad", "--redirect-uri", "http://desk.example.com/")


@pytest.mark.usefixtures("patient_redis")
def test_guessing_is_limited_by_address_and_by_person_and_the_page_says_when_to_try_again(
    platform: Platform, identity: IdentityFixtures, organization: Organization
) -> None:
    environment = LOGIN_ENVIRONMENT | {"LOGIN_RATE_LIMIT_PER_MINUTE": "5"}
    app = create_app(platform.web_environment("identity", **environment))
    alice = person(identity, organization)

    def guess(address: str, email: str) -> int:
        browser = Browser(app.test_client())
        browser.client.environ_base["REMOTE_ADDR"] = address
        browser.get("/login")
        answer = browser.submit("/login", email=email, password="a wrong password")
        assert ("Retry-After" in answer.headers) == (answer.status_code == 429)
        assert answer.mimetype == "text/html"
        return answer.status_code

    by_person = [guess(f"127.9.9.{number}", alice.email) for number in range(52)]
    by_address = [guess("127.10.10.10", f"{number}@example.org") for number in range(7)]

    assert by_person == [403] * 50 + [429] * 2
    assert by_address == [403] * 5 + [429] * 2


def test_the_second_factor_is_set_up_by_a_picture_that_the_policy_allows(
    identity: IdentityFixtures, organization: Organization, browser: Browser
) -> None:
    browser.set_password(person(identity, organization))
    browser.get("/login")
    answer = browser.submit("/login/totp/setup")

    [address] = re.findall(r'href="(otpauth://[^"]+)"', answer.text)
    [drawn] = re.findall(r'<svg viewBox.*?stroke="#000" d="([^"]+)"', answer.text)
    expected = segno.make(html.unescape(address), error="m").svg_inline(border=4)
    assert f'd="{drawn}"' in expected
    assert not re.search(r"<script|style=|<style|<img|data:", answer.text)
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
