"""RFC 9700, the best current practice of OAuth security, as a list of facts; the section is in each docstring."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from flask.testing import FlaskClient
from sqlalchemy import text

from identity import model_login
from identity.app import create_app
from identity.usecases import grants
from tip_testing.identity_fixtures import IdentityFixtures, Organization
from tip_testing.login_browser import CALLBACK, LOGIN_ENVIRONMENT, App, Browser, returned
from tip_testing.platform_plugin import Platform

WEB_APP = "https://desk.example.com/callback?from=tip"


@pytest.fixture(scope="module")
def client(platform: Platform, identity: IdentityFixtures) -> FlaskClient:
    grants.put_client(identity.deps, model_login.Client("desk", "The desk", (WEB_APP,)))
    return create_app(platform.web_environment("identity", **LOGIN_ENVIRONMENT)).test_client()


@pytest.fixture
def browser(signed_in_browser: Browser) -> Browser:
    return signed_in_browser


@pytest.mark.parametrize(
    "uri",
    [
        "https://desk.example.com/callback",
        "https://desk.example.com/callback?from=tip&more=1",
        "https://desk.example.com/callback/?from=tip",
        "https://desk.example.com:8443/callback?from=tip",
        "https://desk.example.com.evil.example/callback?from=tip",
        "https://desk.example.com@evil.example/callback?from=tip",
        "http://desk.example.com/callback?from=tip",
        "https://desk.example.com/callback?from=tip#fragment",
        "https://desk.example.com/Callback?from=tip",
        "//desk.example.com/callback?from=tip",
        "javascript:alert(1)",
        'https://"\\desk.example.com',
        "",
    ],
)
def test_a_redirect_uri_is_compared_exactly_and_nobody_is_sent_to_another(browser: Browser, uri: str) -> None:
    """§2.1, §4.1.3"""
    answer = browser.get(App("desk").authorize_path(redirect_uri=uri))

    assert (answer.status_code, answer.mimetype) == (400, "text/html")
    assert "Location" not in answer.headers


@pytest.mark.parametrize(
    ("uri", "allowed"),
    [
        ("http://127.0.0.1:1/callback", True),
        ("http://127.0.0.1:65535/callback", True),
        ("http://[::1]:4711/callback", True),
        ("http://127.0.0.1/callback", True),
        ("http://localhost:4711/callback", False),
        ("http://127.0.0.1:4711/other", False),
        ("http://127.0.0.1:4711@evil.example/callback", False),
        ("http://127.0.0.1.evil.example/callback", False),
        ("http://x@127.0.0.1:4711/callback", False),
        ("https://127.0.0.1:4711/callback", False),
    ],
)
def test_only_the_port_of_a_loopback_address_may_differ(browser: Browser, uri: str, allowed: bool) -> None:
    """§2.1, RFC 8252 §7.3"""
    assert browser.get(App().authorize_path(redirect_uri=uri)).status_code == (200 if allowed else 400)


def test_an_unknown_client_is_sent_nowhere(browser: Browser) -> None:
    """§4.11.2: the server is no open redirector"""
    answer = browser.get(App("nobody").authorize_path())

    assert (answer.status_code, "Location" in answer.headers) == (400, False)


@pytest.mark.parametrize(
    "changes",
    [
        {"code_challenge": None, "code_challenge_method": None},
        {"code_challenge_method": "plain"},
        {"code_challenge_method": None},
        {"code_challenge": None},
        {"code_challenge": "too-short"},
    ],
    ids=str,
)
def test_without_pkce_by_s256_there_is_no_code(browser: Browser, changes: dict[str, str | None]) -> None:
    """§2.1.1, §4.8: also no downgrade"""
    app = App()

    answer = returned(browser.get(app.authorize_path(**changes)))

    assert (answer["error"], answer["state"]) == ("invalid_request", app.state)
    assert "code" not in answer


def test_a_code_is_of_no_use_without_its_verifier(browser: Browser) -> None:
    """§2.1.1, §4.5.3.1"""
    app = App()

    assert app.exchange(browser.client, app.code(browser), code_verifier="").json["error"] == "invalid_request"
    wrong = app.exchange(browser.client, app.code(browser), code_verifier=App().verifier)
    assert (wrong.status_code, wrong.json["error"]) == (400, "invalid_grant")


def test_a_code_is_of_no_use_to_another_client_or_at_another_redirect_uri(browser: Browser) -> None:
    """§4.5: injection of a code"""
    app = App()

    assert app.exchange(browser.client, app.code(browser), client_id="desk").json["error"] == "invalid_grant"
    other = app.exchange(browser.client, app.code(browser), redirect_uri="http://127.0.0.1:4712/callback")
    assert other.json["error"] == "invalid_grant"


def test_a_code_is_used_once_and_a_second_use_ends_what_the_first_one_got(browser: Browser) -> None:
    """§2.1.1 by RFC 6749 §4.1.2"""
    app = App()
    code = app.code(browser)
    tokens = app.exchange(browser.client, code).json

    assert app.exchange(browser.client, code).json["error"] == "invalid_grant"
    assert app.refresh(browser.client, tokens["refresh_token"]).json["error"] == "invalid_grant"


def test_a_code_runs_out(browser: Browser, platform: Platform) -> None:
    app = App()
    code = app.code(browser)
    with platform.admin() as connection:
        connection.execute(text("UPDATE identity.authorization_code SET expires_at = now()"))

    assert app.exchange(browser.client, code).json["error"] == "invalid_grant"


def test_the_implicit_grant_and_the_password_grant_do_not_exist(browser: Browser) -> None:
    """§2.1.2, §2.4"""
    for kind in ("token", "id_token", "code token", "none", 'x"y'):
        answer = browser.get(App().authorize_path(response_type=kind))
        assert answer.status_code == 400 or returned(answer)["error"] == "unsupported_response_type"
    form = {"grant_type": "password", "username": "a", "password": "b", "client_id": "tip", "client_secret": "c"}
    assert browser.client.post("/oauth/token", data=form).json["error"] == "unsupported_grant_type"


def test_the_answer_names_its_issuer(browser: Browser) -> None:
    """§4.4.2.1: mix-up, by RFC 9207"""
    app = App()
    browser.get(app.authorize_path())
    allowed = returned(browser.submit(app.authorize_path(), decision="allow"))
    browser.get(app.authorize_path())
    denied = returned(browser.submit(app.authorize_path(), decision="deny"))
    mistaken = returned(browser.get(app.authorize_path(code_challenge_method="plain")))

    described = browser.client.get("/.well-known/oauth-authorization-server").json
    assert {answer["iss"] for answer in (allowed, denied, mistaken)} == {described["issuer"]}
    assert (denied["error"], denied["state"]) == ("access_denied", app.state)


def test_a_redirect_after_a_form_does_not_send_the_form_on(browser: Browser) -> None:
    """§4.12: 303 and not 307"""
    app = App()
    browser.get(app.authorize_path())

    assert browser.submit(app.authorize_path(), decision="allow").status_code == 303


def test_a_refresh_token_is_spent_by_its_use_and_a_second_use_ends_the_family(browser: Browser) -> None:
    """§4.14.2"""
    app, client = App(), browser.client
    first = app.tokens(browser)["refresh_token"]
    second = app.refresh(client, first).json["refresh_token"]
    third = app.refresh(client, second).json["refresh_token"]

    assert len({first, second, third}) == 3
    assert app.refresh(client, first).json["error"] == "invalid_grant"
    assert app.refresh(client, third).json["error"] == "invalid_grant"


def test_of_two_that_refresh_with_one_token_at_once_at_most_one_gets_tokens(browser: Browser) -> None:
    """§4.14.2"""
    app, answers = App(), []
    token = app.tokens(browser)["refresh_token"]
    clients = [browser.client.application.test_client() for _ in range(4)]

    def refresh(client: FlaskClient) -> None:
        answers.append(app.refresh(client, token))

    threads = [threading.Thread(target=refresh, args=[client]) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [answer.status_code for answer in answers].count(200) == 1


def test_a_refresh_token_is_its_clients_alone(browser: Browser) -> None:
    """§2.2.2, §4.14"""
    app, client = App(), browser.client
    token = app.tokens(browser)["refresh_token"]

    assert app.refresh(client, token, client_id="desk").json["error"] == "invalid_grant"
    assert app.refresh(client, token).status_code == 200


def test_a_refresh_token_ends_with_the_membership(
    browser: Browser, identity: IdentityFixtures, organization: Organization, platform: Platform
) -> None:
    """§4.14.2: it counts for no more than the person may"""
    app = App()
    token = app.tokens(browser)["refresh_token"]
    with platform.admin() as connection:
        connection.execute(
            text("UPDATE identity.membership SET removed_at = now() WHERE organization_id = :id"),
            {"id": organization.id},
        )

    assert app.refresh(browser.client, token).json["error"] == "invalid_grant"


def test_a_refresh_token_can_be_revoked_by_its_client_and_by_no_other(browser: Browser) -> None:
    """RFC 7009"""
    app, client = App(), browser.client
    tokens = app.tokens(browser)

    def revoke(token: str, client_id: str) -> Any:
        return client.post("/oauth/revoke", data={"token": token, "client_id": client_id})

    assert revoke(tokens["refresh_token"], "desk").status_code == 200
    fresh = app.refresh(client, tokens["refresh_token"]).json["refresh_token"]
    assert revoke(fresh, "tip").status_code == 200
    assert app.refresh(client, fresh).json["error"] == "invalid_grant"
    assert revoke("nobodys", "tip").status_code == 200
    assert revoke(tokens["access_token"], "tip").json["error"] == "unsupported_token_type"
    assert revoke("t", "nobody").json["error"] == "invalid_client"


def test_an_access_token_is_for_one_audience_and_lives_briefly(
    browser: Browser, as_bearer: Callable[[str], dict[str, str]], organization: Organization
) -> None:
    """§2.3, §4.10"""
    tokens = App().tokens(browser)
    shown = browser.client.get("/v1/auth/self", headers=as_bearer(tokens["access_token"])).json

    assert (tokens["token_type"], tokens["expires_in"]) == ("Bearer", 600)
    assert (shown["principal_type"], shown["organization_id"]) == ("user", str(organization.id))


def test_no_credential_is_taken_from_a_query(client: FlaskClient) -> None:
    """§4.3.2: it would be in logs and histories"""
    answer = client.post("/oauth/token?client_id=tip", data={"grant_type": "refresh_token", "refresh_token": "t"})

    assert answer.status_code == 400


def test_scopes_are_refused_because_a_role_decides(browser: Browser) -> None:
    assert returned(browser.get(App().authorize_path(scope="openid")))["error"] == "invalid_scope"


def test_plain_http_is_refused_except_on_this_machine(platform: Platform) -> None:
    """§2.6: end-to-end TLS"""
    environment = platform.web_environment("identity", PUBLIC_URL="http://id.example.com")
    client = create_app(environment).test_client()

    assert client.get(App().authorize_path()).status_code == 400
    assert App().refresh(client, "t").json["error"] == "insecure_transport"


def test_the_metadata_says_what_is_offered(client: FlaskClient) -> None:
    """§2.6, RFC 8414"""
    from authlib.oauth2.rfc8414 import AuthorizationServerMetadata

    described = client.get("/.well-known/oauth-authorization-server").json

    assert described == client.get("/.well-known/openid-configuration").json
    assert described["code_challenge_methods_supported"] == ["S256"]
    assert described["response_types_supported"] == ["code"]
    AuthorizationServerMetadata(described).validate()


def test_a_client_is_registered_with_good_redirect_uris_only(identity: IdentityFixtures) -> None:
    for uri in ("http://desk.example.com/", "https://x/#f", "javascript:x", "https://u@x/", "", CALLBACK + "#f"):
        with pytest.raises(model_login.BadClient):
            grants.put_client(identity.deps, model_login.Client("bad", "Bad", (uri,)))
