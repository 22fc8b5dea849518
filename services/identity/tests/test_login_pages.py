"""What RFC 9700 and its like say of the pages: nothing is kept, framed, forged, or sent away."""

import re

import pytest
from flask.testing import FlaskClient

from identity.app import create_app
from tip_testing.identity_fixtures import IdentityFixtures, Organization
from tip_testing.login_browser import LOGIN_ENVIRONMENT, App, Browser, hidden
from tip_testing.platform_plugin import Platform

from .login_pages import person


@pytest.fixture(scope="module")
def client(platform: Platform) -> FlaskClient:
    return create_app(platform.web_environment("identity", **LOGIN_ENVIRONMENT)).test_client()


@pytest.fixture
def browser(signed_in_browser: Browser) -> Browser:
    return signed_in_browser


def test_answers_with_tokens_and_pages_are_not_kept(browser: Browser) -> None:
    """§4.2.4, §4.3"""
    app = App()
    answers = [
        app.exchange(browser.client, app.code(browser)),
        browser.get("/login"),
        browser.get(app.authorize_path()),
    ]

    assert {answer.headers["Cache-Control"] for answer in answers} == {"no-store"}
    assert answers[2].headers["Referrer-Policy"] == "no-referrer"


def test_a_page_is_framed_by_nobody_and_runs_nothing(browser: Browser) -> None:
    """§4.16: clickjacking"""
    app = App()
    for path in ("/login", "/login/code", "/login/device", "/login/signed-out", app.authorize_path()):
        answer = browser.get(path)
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy and "script-src" not in policy
        assert answer.headers["X-Frame-Options"] == "DENY"
        assert not re.search(r"<script|style=|<style|\son\w+=", answer.text)
    assert "form-action 'self' http://127.0.0.1:4711;" in policy


def test_a_forged_form_changes_nothing(browser: Browser) -> None:
    """§4.7.1: cross-site request forgery"""
    app = App()
    browser.get(app.authorize_path())
    good = hidden(browser.page)
    stranger = Browser(browser.client.application.test_client())
    stranger.get("/login")
    theirs = hidden(stranger.page)["csrf"]

    for csrf in ("", "x" * 64, theirs):
        for path in (
            app.authorize_path(),
            "/login/sign-out",
            "/login/device",
            "/login/totp/setup",
            "/login",
            "/login/code",
        ):
            answer = browser.client.post(path, data=good | {"csrf": csrf, "decision": "allow", "everywhere": "yes"})
            assert (answer.status_code, "too old" in answer.text) == (403, True)
    assert "Signed in as" in browser.get("/login").text


@pytest.mark.parametrize("wanted", ["https://evil.example/", "//evil.example/", "/login/device\r\nX: y", "/v1/x", "\\"])
def test_after_signing_in_one_stays_on_our_pages(
    client: FlaskClient, identity: IdentityFixtures, organization: Organization, wanted: str
) -> None:
    """§4.11: open redirection"""
    alice, browser = person(identity, organization), Browser(client.application.test_client())
    browser.get("/login/code")

    answer = browser.submit(
        "/login/code", email=alice.email, code=alice.one_time_code, password=alice.password, next=wanted
    )

    assert answer.headers["Location"] == "/login"


def test_a_session_is_a_new_one_after_each_step(
    browser: Browser, identity: IdentityFixtures, organization: Organization
) -> None:
    """Nobody signs in with a session that another chose"""
    alice = person(identity, organization)
    fixed = Browser(browser.client.application.test_client())
    fixed.client.set_cookie("tip_session", "chosen-by-another")
    fixed.set_password(alice)
    before = fixed.client.get_cookie("tip_session")
    fixed.set_up_totp(alice)
    after = fixed.client.get_cookie("tip_session")

    assert before and after and len({"chosen-by-another", before.value, after.value}) == 3


def test_nothing_is_granted_without_the_consent_of_the_person(browser: Browser) -> None:
    """RFC 8252 §8.6: a native client can be imitated"""
    app = App()

    assert browser.get(app.authorize_path()).status_code == 200
    assert "tip on the command line" in browser.page


@pytest.mark.parametrize("name", ["response_type", "client_id", "redirect_uri", "code_challenge", "scope"])
@pytest.mark.parametrize("value", ['"x', "\u00e9", "x\n", "\x00"], ids=["a quote", "not ASCII", "a line", "NUL"])
def test_what_no_client_sends_is_refused_in_the_form_as_in_the_query(
    client: FlaskClient, name: str, value: str
) -> None:
    answers = [
        client.post("/oauth/authorize", data={name: value}),
        client.get("/oauth/authorize", query_string={name: value}),
    ]

    assert [answer.status_code for answer in answers] == [400, 400]
