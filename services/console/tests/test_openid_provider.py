"""Signing in at the console where people are those of an OpenID Connect provider that nobody here wrote."""

import json
import shutil
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit
from uuid import uuid4

import pytest
import requests
from browser_pages import browser, watched
from people import TIMEOUT_S
from platform_start import environment, run_script, started
from playwright.sync_api import expect
from separate_platform import GUNICORN, Part

from console import model
from console.app import create_app
from console.routes.common import SESSION
from console.store import Sessions
from tip_local.home import SIGNING_KEY
from tip_local.settings import Settings
from tip_local.stack import Stack, running_stack
from tip_testing.npm_provider import CONSOLE, CONSOLE_SECRET, npm_provider, platform_settings
from tip_testing.ports import reserved_port
from tip_testing.provider_pages import submit_pages
from tip_testing.servers_plugin import new_directory
from tip_testing.waiting import eventually

__all__ = ["browser"]
pytestmark = pytest.mark.timeout(300)
MAKE_ORGANIZATION = """
import os
from chassis import tenancy
from identity import usecases
from identity.app import dependencies
from identity.config import Config
from tip_local.settings import Settings
from tip_local.stack import running_stack
deps = dependencies(Config.from_env({**os.environ, **running_stack(Settings.from_env()).signing_env}))
with tenancy.serving_all():
    usecases.create_organization(deps, "npm", "desk", os.environ["ORGANIZATION_NAME"])
"""
MARKUP = "<img src=x onerror=document.title='broken'>"
ORGANIZATION = f"The desk {MARKUP}"
NOW = datetime(2026, 7, 1, 12, tzinfo=UTC)
CLAIMS = {"iss": "https://id.example", "aud": "console", "nonce": "n", "exp": NOW.timestamp() + 60}


@dataclass(frozen=True)
class Desk:
    """A platform whose users are the provider's."""

    base: str
    issuer: str
    stack: Stack

    @property
    def sessions(self) -> Sessions:
        return Sessions(self.stack.redis_url, self.stack.secrets["cursor_key"])

    def call(self, path, body, **headers):
        answer = requests.post(f"{self.base}{path}", json=body, headers=headers, timeout=TIMEOUT_S)
        assert answer.status_code == 201, answer.text
        return answer.json()

    @contextmanager
    def console(self, **more):
        """A client of one in this process, with other settings."""
        secrets = {"REDIS_URL": self.stack.redis_url, "CURSOR_KEY": self.stack.secrets["cursor_key"]}
        client = {"CONSOLE_CLIENT_ID": CONSOLE, "CONSOLE_CLIENT_SECRET": CONSOLE_SECRET, "OIDC_ISSUER": self.issuer}
        app = create_app({**secrets, **client, "PUBLIC_URL": self.base, **more})
        with closing(app.extensions["deps"].api):
            yield app.test_client()


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    home, port = new_directory("tip-openid-"), str(reserved_port())
    base = f"http://127.0.0.1:{port}"
    with npm_provider(tmp_path_factory.mktemp("provider"), f"{base}/console/callback") as issuer:
        own = {"CONSOLE_CLIENT_ID": CONSOLE, "CONSOLE_CLIENT_SECRET": CONSOLE_SECRET, "TIP_DEMO": "no"}
        variables = environment(home, **platform_settings(issuer), **own) | {"TIP_PORT": port}
        with started(variables):
            run_script(MAKE_ORGANIZATION, variables | {"ORGANIZATION_NAME": ORGANIZATION})
            yield Desk(base, issuer, running_stack(Settings.from_env(variables)))
    shutil.rmtree(home, ignore_errors=True)


class UntilCallback(requests.Session):
    """Somebody who looks at where the provider sends them back to, and does not go there yet."""

    def get_redirect_target(self, resp):
        target = super().get_redirect_target(resp)
        return None if target and "/console/callback" in target else target


def sent_back(address, session):
    """Where the provider sends somebody who has signed in there."""
    answer = submit_pages(address, {"login": "lead-eve", "password": "any"}, session)
    return answer.headers["Location"]


def changed(address, **values):
    parts = urlsplit(address)
    return urlunsplit(parts._replace(query=urlencode(dict(parse_qsl(parts.query)) | values)))


def session_of(context, desk):
    [cookie] = [cookie["value"] for cookie in context.cookies() if cookie["name"] == SESSION]
    return cookie, desk.sessions.find(cookie)


def sign_in(context, name):
    page, errors = watched(context)
    page.goto("/console")
    page.fill("[name=login]", name)
    page.fill("[name=password]", "any")
    page.locator("[type=submit]").click()
    page.locator("[type=submit]").click()
    page.wait_for_url("**/console")
    errors.clear()  # of the provider's own pages
    return page, errors


def trade(desk, token):
    """An account with an order, made with a token of the provider."""
    mine = {"Authorization": f"Bearer {token}"}
    body = {"name": f"research {uuid4().hex[:6]}", "broker": "paper", "environment": "paper", "time_zone": "UTC"}
    account = desk.call("/v1/accounts", body, **mine)
    permissions = {"name": "bot", "environment": "paper", "permissions": ["intent:edit", "intent:read"]}
    key = desk.call("/v1/api-keys", permissions, **mine)["key"]
    spec = {"Limit": {"quantity": "7", "limit_price": "1"}}
    command = {"type": "CREATE", "payload": {"symbol": "AAPL", "order_side": "BUY", "spec": spec}}
    order = desk.call(f"/v1/accounts/{account['id']}/intents", {"command": command}, **{"x-api-key": key})
    return account, order["intent_id"]


def test_somebody_signs_in_there_trades_here_and_signs_out(browser, desk):
    context = browser.new_context(base_url=desk.base)
    page, errors = sign_in(context, "lead-ann")
    cookie, session = session_of(context, desk)
    account, intent = trade(desk, session.tokens.access)
    page.goto("/console")
    expect(page.locator("main")).to_contain_text(account["name"])
    page.goto(f"/console/accounts/{account['id']}/orders")
    expect(page.locator(f"[data-intent='{intent}']")).to_contain_text("AAPL")
    expect(page.locator("#stream")).to_have_attribute("data-state", "live")

    desk.sessions.put(cookie, replace(session, tokens=replace(session.tokens, expires_at=datetime.now(UTC))))
    page.reload()
    expect(page.locator("h1")).to_have_text("Orders")
    _, renewed = session_of(context, desk)
    assert renewed.tokens.access != session.tokens.access

    page.locator("details.right summary").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.locator("h1")).to_have_text("Signed out")
    assert page.locator("main a", has_text="Sign out there").get_attribute("href").startswith(desk.issuer)
    form = {"grant_type": "refresh_token", "refresh_token": renewed.tokens.refresh}
    client = {"client_id": CONSOLE, "client_secret": CONSOLE_SECRET}
    answer = requests.post(f"{desk.issuer}/token", data=form | client, timeout=TIMEOUT_S)
    assert answer.json()["error"] == "invalid_grant"
    assert errors == []
    context.close()


def test_names_of_people_and_of_their_organization_never_run(browser, desk):
    context = browser.new_context(base_url=desk.base)
    page, errors = sign_in(context, f"lead-{MARKUP}")
    for path in ("/console", "/console/people", "/console/audit-log"):
        page.goto(path)
        expect(page.locator(".brand")).to_have_text(ORGANIZATION)
        expect(page.locator(".person")).to_have_text(f"lead-{MARKUP}")
        assert page.title() != "broken" and page.locator("img").count() == 0
    assert errors == []
    context.close()


def test_a_member_of_no_organization_here_sees_a_page_that_says_so(browser, desk):
    context = browser.new_context(base_url=desk.base)
    page, _ = sign_in(context, "stranger-joe")

    expect(page.locator("body")).not_to_contain_text("research")
    assert "Traceback" not in page.content()
    context.close()


@pytest.mark.parametrize("change", [{"state": "another"}, {"iss": "https://evil.example"}, {"code": "invented"}])
def test_an_answer_that_was_changed_is_refused(desk, change):
    session = UntilCallback()
    address = sent_back(f"{desk.base}/console", session)
    answer = session.get(changed(address, **change), timeout=TIMEOUT_S)

    assert answer.status_code == 403
    assert SESSION not in session.cookies
    assert session.get(address, timeout=TIMEOUT_S).status_code == 403, "the sign-in is over"


def test_an_answer_to_another_request_is_refused(desk):
    session = UntilCallback()
    begun = session.get(f"{desk.base}/console/sign-in", allow_redirects=False, timeout=TIMEOUT_S)
    address = sent_back(changed(begun.headers["Location"], nonce="another"), session)

    assert session.get(address, timeout=TIMEOUT_S).status_code == 403
    assert SESSION not in session.cookies


def test_a_provider_that_names_another_issuer_is_not_gone_to(desk):
    another = desk.issuer.replace("127.0.0.1", "localhost")
    with desk.console(OIDC_ISSUER=another) as client:
        answer = client.get("/console/sign-in", base_url=desk.base)

    assert answer.status_code == 403 and "another issuer" in answer.text
    assert "Location" not in answer.headers


def test_a_token_for_another_audience_ends_in_a_page_and_not_in_a_circle(desk):
    port = reserved_port()
    own = {"DATABASE_URL": desk.stack.web_database_url("identity"), "WEB_PORT": str(port), "WEB_WORKERS": "1"}
    keys = desk.stack.common_env() | desk.stack.sealing_keys(SIGNING_KEY)
    strict = {**platform_settings(desk.issuer), "OIDC_AUDIENCE": "somebody-else"}
    identity = Part((*GUNICORN, "identity.app:create_app()"), keys | own | strict, port)
    identity.start()
    with desk.console(API_URL=f"http://127.0.0.1:{port}") as client:

        def answered():
            """Of an identity that has just begun 503, where the machine is slow."""
            begun = client.get("/console/sign-in", base_url=desk.base)
            address = urlsplit(sent_back(begun.headers["Location"], UntilCallback()))
            answer = client.get(f"{address.path}?{address.query}", base_url=desk.base)
            return None if answer.status_code == 503 else answer

        answer = eventually(answered)
    identity.stop()

    assert answer.status_code == 403 and "does not take the token" in answer.text
    assert client.get_cookie(SESSION, "127.0.0.1") is None


def test_a_provider_that_is_away_is_said_so(desk):
    with desk.console(OIDC_ISSUER="http://127.0.0.1:9") as client:
        answer = client.get("/console/sign-in", base_url=desk.base)

    assert answer.status_code == 503
    assert "The provider that signs people in does not answer" in answer.text


@pytest.mark.parametrize(
    "change",
    [
        {"iss": "https://evil.example"},
        {"aud": "another"},
        {"aud": ["another"]},
        {"aud": ["console", "another"], "azp": "another"},
        {"nonce": "another"},
        {"nonce": None},
        {"exp": (NOW - timedelta(hours=1)).timestamp()},
        {"exp": "tomorrow"},
    ],
    ids=json.dumps,
)
def test_an_id_token_that_is_not_for_this_sign_in_is_refused(change):
    with pytest.raises(model.SignInFailed):
        model.check_id_token(CLAIMS | change, "https://id.example", "console", "n", NOW)


@pytest.mark.parametrize("change", [{}, {"aud": ["console", "another"], "azp": "console"}])
def test_an_id_token_for_this_sign_in_is_taken(change):
    model.check_id_token(CLAIMS | change, "https://id.example", "console", "n", NOW)
