"""Signing in with the local provider: passwords, one-time codes, second factors, sessions."""

from collections.abc import Callable

import pytest
from flask.testing import FlaskClient
from sqlalchemy import text

from identity import usecases
from identity.app import create_app
from identity.usecases import login, passwords
from tip_testing.identity_fixtures import IdentityFixtures, Organization
from tip_testing.login_browser import LOGIN_ENVIRONMENT, App, Browser, returned
from tip_testing.platform_plugin import Platform

from .login_pages import join, person


@pytest.fixture(scope="module")
def client(platform: Platform) -> FlaskClient:
    return create_app(platform.web_environment("identity", **LOGIN_ENVIRONMENT)).test_client()


def test_a_one_time_code_sets_the_password_once(
    identity: IdentityFixtures, organization: Organization, browser: Browser, other_browser: Browser
) -> None:
    alice = person(identity, organization)

    assert browser.follow(browser.set_password(alice)).status_code == 200
    assert f"Signed in as {alice.email}" in browser.page
    again = other_browser.set_password(alice)

    assert (again.status_code, "is not right" in again.text) == (403, True)
    assert "Signed in as" in other_browser.follow(other_browser.sign_in(alice)).text


def test_a_code_counts_however_it_is_typed_and_for_the_address_in_any_case(
    identity: IdentityFixtures, organization: Organization, browser: Browser
) -> None:
    alice = person(identity, organization)
    alice.one_time_code = alice.one_time_code.lower().replace("-", " ")
    alice.email = f" {alice.email.upper()} "

    assert browser.set_password(alice).status_code == 303


def test_a_new_code_replaces_the_old_one(
    identity: IdentityFixtures, organization: Organization, browser: Browser
) -> None:
    alice = person(identity, organization)
    again = join(identity, organization, alice.email)

    assert browser.set_password(alice).status_code == 403
    assert browser.set_password(again).status_code == 303


def test_a_first_sign_in_by_code_goes_on_where_the_client_sent_the_person(
    identity: IdentityFixtures, organization: Organization, browser: Browser
) -> None:
    alice, app = person(identity, organization), App()
    browser.get(app.authorize_path())
    browser.submit("/login", **{"with": "code", "email": alice.email})
    answer = browser.submit("/login/code", email=alice.email, code=alice.one_time_code, password=alice.password)

    assert answer.headers["Location"] == app.authorize_path()
    assert "Allow tip on the command line?" in browser.follow(answer).text


def test_a_code_runs_out(
    identity: IdentityFixtures, organization: Organization, browser: Browser, platform: Platform
) -> None:
    alice = person(identity, organization)
    with platform.admin() as connection:
        connection.execute(text("UPDATE identity.one_time_code SET expires_at = now()"))

    assert browser.set_password(alice).status_code == 403


def test_guessing_at_a_code_does_not_use_it_up(
    identity: IdentityFixtures, organization: Organization, browser: Browser
) -> None:
    alice = person(identity, organization)
    code, alice.one_time_code = alice.one_time_code, "WRONG"
    for _ in range(12):
        assert browser.set_password(alice).status_code == 403

    alice.one_time_code = code
    assert browser.set_password(alice).status_code == 303


def test_a_short_password_is_refused_and_the_code_still_counts(
    identity: IdentityFixtures, organization: Organization, browser: Browser
) -> None:
    alice = person(identity, organization)
    good, alice.password = alice.password, "short"

    answer = browser.set_password(alice)
    assert (answer.status_code, "12 to 128 characters" in answer.text) == (403, True)
    alice.password = good
    assert browser.set_password(alice).status_code == 303


def test_an_unknown_person_is_answered_like_a_wrong_password(
    identity: IdentityFixtures, organization: Organization, browser: Browser
) -> None:
    alice = person(identity, organization)
    browser.set_password(alice)
    browser.get("/login/signed-out")
    browser.client.delete_cookie("tip_session")

    def answer(email: str) -> tuple[int, str]:
        browser.get("/login")
        said = browser.submit("/login", email=email, password="not the password")
        return said.status_code, said.text.replace(email, "")

    assert answer(alice.email) == answer("nobody@example.org")
    assert answer(alice.email)[0] == 403


def test_only_digests_and_a_hash_are_stored(
    identity: IdentityFixtures, organization: Organization, browser: Browser, platform: Platform
) -> None:
    alice = person(identity, organization)
    code = alice.one_time_code.replace("-", "")
    browser.set_password(alice)
    tokens = App().tokens(browser)
    browser.set_up_totp(alice)
    cookie = browser.client.get_cookie("tip_session")
    assert cookie and alice.totp

    with platform.admin() as connection:
        tables = connection.execute(
            text(
                "SELECT CAST(oid AS regclass)::text FROM pg_class WHERE relnamespace = 'identity'::regnamespace"
                " AND relkind = 'r'"
            )
        ).scalars()
        stored = "".join(
            str(connection.execute(text(f"SELECT string_agg(t::text, '') FROM {table} t")).scalar()) for table in tables
        )

    for secret in (code, alice.password, cookie.value, tokens["refresh_token"], alice.totp.secret):
        assert secret not in stored
        assert secret.encode().hex() not in stored
    assert "$argon2id$" in stored


def test_a_session_cookie_is_for_http_alone_and_of_this_site_alone(
    identity: IdentityFixtures, organization: Organization, browser: Browser, platform: Platform
) -> None:
    answer = browser.set_password(person(identity, organization))
    secure = create_app(platform.web_environment("identity", PUBLIC_URL="https://id.example.com")).test_client()

    [cookie] = [line for line in answer.headers.getlist("Set-Cookie") if line.startswith("tip_session=")]
    assert "HttpOnly" in cookie and "SameSite=Lax" in cookie and "Path=/" in cookie
    [cookie] = secure.get("/login").headers.getlist("Set-Cookie")
    assert cookie.startswith("__Host-tip_browser=") and "Secure" in cookie and "HttpOnly" in cookie


def test_signing_out_ends_the_session_and_everywhere_ends_all(
    identity: IdentityFixtures, organization: Organization, browser: Browser, other_browser: Browser
) -> None:
    alice, app = person(identity, organization), App()
    browser.set_password(alice)
    other_browser.sign_in(alice)
    tokens = app.tokens(browser)
    browser.get("/login")
    browser.submit("/login/sign-out", everywhere="no")

    assert "Signed in as" not in browser.get("/login").text
    assert "Signed in as" in other_browser.get("/login").text
    refreshed = app.refresh(browser.client, tokens["refresh_token"])
    assert refreshed.status_code == 200

    browser.sign_in(alice)
    browser.get("/login")
    answer = browser.submit("/login/sign-out", everywhere="yes")
    assert answer.headers["Location"] == "/login/signed-out"
    assert "Signed in as" not in other_browser.get("/login").text
    assert app.refresh(browser.client, refreshed.json["refresh_token"]).json["error"] == "invalid_grant"


def test_a_new_password_ends_what_was_signed_in_with_the_old_one(
    identity: IdentityFixtures, organization: Organization, browser: Browser, other_browser: Browser
) -> None:
    alice, app = person(identity, organization), App()
    browser.set_password(alice)
    tokens = app.tokens(browser)

    alice.one_time_code = passwords.reset_login(identity.deps, alice.email, totp=False)
    other_browser.set_password(alice)

    assert "Signed in as" not in browser.get("/login").text
    assert app.refresh(browser.client, tokens["refresh_token"]).json["error"] == "invalid_grant"


def test_what_has_run_out_is_removed_by_the_scheduler(
    identity: IdentityFixtures, organization: Organization, browser: Browser, platform: Platform
) -> None:
    from identity.app import dependencies
    from identity.config import WorkerConfig

    browser.set_password(person(identity, organization))
    App().tokens(browser)
    with platform.admin() as connection:
        connection.execute(text("UPDATE identity.sign_in_session SET expires_at = now()"))
        connection.execute(text("UPDATE identity.token_family SET expires_at = now()"))
    worker = dependencies(WorkerConfig.from_env(platform.environment("identity")))
    login.remove_expired_logins(worker)
    worker.engine.dispose()

    with platform.admin() as connection:
        counted = (
            "SELECT (SELECT count(*) FROM identity.sign_in_session) + (SELECT count(*) FROM identity.refresh_token)"
        )
        assert connection.execute(text(counted)).scalar_one() == 0


def test_a_deleted_person_cannot_sign_in_and_nothing_of_theirs_works(
    identity: IdentityFixtures,
    organization: Organization,
    browser: Browser,
    as_bearer: Callable[[str], dict[str, str]],
) -> None:
    alice, app = person(identity, organization), App()
    browser.set_password(alice)
    tokens = app.tokens(browser)

    gone = browser.client.delete("/v1/users/me", headers=as_bearer(tokens["access_token"]))
    assert gone.status_code == 204
    assert "Signed in as" not in browser.get("/login").text
    assert browser.sign_in(alice).status_code == 403
    assert app.refresh(browser.client, tokens["refresh_token"]).json["error"] == "invalid_grant"


def test_with_an_openid_connect_provider_nobody_signs_in_here(platform: Platform) -> None:
    environment = {"OIDC_ISSUER": "http://127.0.0.1:1", "OIDC_SCIM_URL": "http://127.0.0.1:1", "OIDC_DELETE_TOKEN": "x"}
    client = create_app(platform.web_environment("identity", **LOGIN_ENVIRONMENT, **environment)).test_client()

    answers = [
        client.get("/login"),
        client.get(App().authorize_path()),
        client.get("/login/device"),
        client.post("/oauth/device_authorization", data={"client_id": "tip"}),
        client.post("/oauth/revoke", data={"client_id": "tip", "token": "t"}),
    ]
    assert [(answer.status_code, answer.json["code"]) for answer in answers] == [(404, "login_elsewhere")] * 5
    assert App().refresh(client, "t").json["error"] == "unsupported_grant_type"
    described = client.get("/.well-known/oauth-authorization-server").json
    assert described["grant_types_supported"] == ["client_credentials"]
    assert "authorization_endpoint" not in described


def test_a_person_of_several_organizations_chooses_one(
    identity: IdentityFixtures, browser: Browser, as_bearer: Callable[[str], dict[str, str]]
) -> None:
    first, second, third = (identity.organization() for _ in range(3))
    alice, app = person(identity, first), App()
    usecases.change_member(identity.deps, None, second.id, alice.email, "admin")
    browser.set_password(alice)

    assert browser.get(app.authorize_path()).text.count('type="radio"') == 2
    for wrong in ("", str(third.id), "nonsense"):
        assert browser.submit(app.authorize_path(), decision="allow", organization=wrong).status_code == 403
        browser.get(app.authorize_path())
    answer = browser.submit(app.authorize_path(), decision="allow", organization=str(second.id))
    token = app.exchange(browser.client, returned(answer)["code"]).json["access_token"]

    shown = browser.client.get("/v1/auth/self", headers=as_bearer(token)).json
    assert (shown["organization_id"], shown["role"]) == (str(second.id), "admin")


def test_a_person_of_no_organization_is_told_so(
    identity: IdentityFixtures, organization: Organization, browser: Browser
) -> None:
    alice = person(identity, organization)
    browser.set_password(alice)
    usecases.remove_member(identity.deps, None, organization.id, alice.email)

    answer = browser.get(App().authorize_path())

    assert (answer.status_code, "belong to no active organization" in answer.text) == (403, True)
