"""Signing in and out: by identity's login, with tokens that no browser ever has."""

import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
import redis
from people import Visitor, hidden

from console import model
from console.app import create_app
from tip_testing.waiting import eventually

COOKIE = "tip_console"


def session_cookie(visitor: Visitor) -> str:
    return str(visitor.cookies.cookies.get(COOKIE))


def test_the_first_address_leads_through_the_login_to_the_accounts(stack):
    visitor = Visitor(stack.base)
    page = visitor.sign_in(**stack.logins["admin"], path="/")

    assert page.url == f"{stack.base}/console"
    assert "<h1>Accounts</h1>" in page.text and "paper account" in page.text


def test_whoever_wanted_a_page_comes_back_to_it(stack):
    visitor = Visitor(stack.base)
    answer = visitor.get("/console/sign-in?next=/console/signed-out")

    assert visitor.follow(answer).status_code == 200
    page = visitor.sign_in(**stack.logins["admin"], path="/console/sign-in?next=/console/signed-out")
    assert page.url == f"{stack.base}/console/signed-out"


def test_the_browser_gets_a_cookie_that_scripts_cannot_read_and_no_token(stack, signed_in):
    visitor = Visitor(stack.base)
    consent = visitor.follow(visitor.get("/console"))
    form = hidden(consent.text) | stack.logins["admin"]
    back = visitor.consent(visitor.follow(visitor.post("/login", form)))
    callback = visitor.get(back.headers["Location"])
    [set_cookie] = [line for line in callback.raw.headers.getlist("Set-Cookie") if line.startswith(f"{COOKIE}=")]

    assert "HttpOnly" in set_cookie and "SameSite=Lax" in set_cookie and "Path=/" in set_cookie
    session = stack.sessions().find(session_cookie(visitor))
    assert session.tokens.access.count(".") == 2
    page = visitor.get("/console")
    assert session.tokens.access not in page.text + str(page.headers) + str(visitor.cookies.cookies)


def test_redis_holds_neither_tokens_nor_the_cookie(stack, signed_in):
    visitor = signed_in("admin")
    session = stack.sessions().find(session_cookie(visitor))
    with redis.Redis.from_url(stack.redis_url()) as server:
        names = [name for name in server.scan_iter("tip:console:*") if server.type(name) == b"string"]
        stored = b"".join(names) + b"".join(server.get(name) or b"" for name in names)

    assert names
    for secret in (session.tokens.access, session.tokens.refresh, session_cookie(visitor)):
        assert secret.encode() not in stored


@pytest.mark.parametrize("change", [{"state": "another"}, {"code": "invented"}])
def test_an_answer_that_is_not_for_this_sign_in_is_refused(stack, change):
    visitor = Visitor(stack.base)
    address = visitor.get("/console/sign-in").headers["Location"]
    [state] = parse_qs(urlsplit(address).query)["state"]
    query = {"state": state, "code": "a-code"} | change
    answer = visitor.get(f"/console/callback?code={query['code']}&state={query['state']}")

    assert answer.status_code == 403
    assert COOKIE not in visitor.cookies.cookies


def test_nobody_is_signed_in_by_an_answer_that_somebody_else_began(stack):
    attacker, victim = Visitor(stack.base), Visitor(stack.base)
    login = attacker.follow(attacker.get("/console"))
    consent = attacker.follow(attacker.post("/login", hidden(login.text) | stack.logins["stranger"]))
    callback = attacker.consent(consent).headers["Location"]
    victim.get("/console/sign-in")

    assert victim.get(callback).status_code == 403
    assert COOKIE not in victim.cookies.cookies


def test_an_answer_is_taken_once(stack):
    visitor = Visitor(stack.base)
    login = visitor.follow(visitor.get("/console"))
    consent = visitor.follow(visitor.post("/login", hidden(login.text) | stack.logins["admin"]))
    callback = visitor.consent(consent).headers["Location"]

    assert visitor.get(callback).status_code == 303
    assert visitor.get(callback).status_code == 403


def test_a_cookie_that_was_planted_is_not_the_session_that_comes_of_signing_in(stack):
    visitor = Visitor(stack.base)
    visitor.cookies.cookies.set(COOKIE, "planted", domain="127.0.0.1", path="/")
    visitor.sign_in(**stack.logins["admin"])
    values = [cookie.value for cookie in visitor.cookies.cookies if cookie.name == COOKIE]

    assert "planted" not in values and len(values) == 1
    assert stack.sessions().find("planted") is None


def test_signing_in_again_ends_the_session_before(stack, signed_in):
    visitor = signed_in("admin")
    before = session_cookie(visitor)
    visitor.follow(visitor.consent(visitor.follow(visitor.get("/console/sign-in"))))

    assert session_cookie(visitor) != before
    assert stack.sessions().find(before) is None


def test_signing_out_ends_the_session_and_what_came_of_the_consent(stack, signed_in):
    visitor = signed_in("admin")
    cookie = session_cookie(visitor)
    session = stack.sessions().find(cookie)
    assert visitor.submit("/console/sign-out").url.endswith("/console/signed-out")

    visitor.cookies.cookies.set(COOKIE, cookie, domain="127.0.0.1", path="/")
    assert "/console/sign-in" in visitor.get("/console").headers["Location"]
    form = {"grant_type": "refresh_token", "client_id": "console", "refresh_token": session.tokens.refresh}
    assert visitor.post("/oauth/token", form).json()["error"] == "invalid_grant"


def test_requests_at_the_same_time_refresh_once(stack, signed_in):
    visitor = signed_in("admin")
    cookie, sessions = session_cookie(visitor), stack.sessions()
    session = sessions.find(cookie)
    late = replace(session.tokens, expires_at=datetime.now(UTC) - timedelta(seconds=1))
    sessions.put(cookie, replace(session, tokens=late))

    def read(_):
        """On a busy machine not all of them find a thread, or an answer of identity, in time (429, 503)."""
        return eventually(lambda: (code := visitor.get("/console").status_code) not in (429, 503) and code)

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(read, range(8)))

    renewed = sessions.find(cookie)
    assert answers == [200] * 8
    assert renewed.tokens.refresh != session.tokens.refresh and renewed.tokens.expires_at > datetime.now(UTC)


def test_a_session_ends_when_its_consent_does(stack, signed_in):
    visitor = signed_in("admin")
    cookie, sessions = session_cookie(visitor), stack.sessions()
    session = sessions.find(cookie)
    late = replace(session.tokens, expires_at=datetime.now(UTC), refresh="spent")
    sessions.put(cookie, replace(session, tokens=late))

    assert "/console/sign-in" in visitor.get("/console").headers["Location"]
    assert sessions.find(cookie) is None


def test_a_session_has_an_end_however_busy_it_is(stack, signed_in):
    visitor = signed_in("admin")
    cookie, sessions = session_cookie(visitor), stack.sessions()
    sessions.put(cookie, replace(sessions.find(cookie), ends_at=datetime.now(UTC)))

    assert "/console/sign-in" in visitor.get("/console").headers["Location"]


@pytest.mark.parametrize(
    "path", ["https://evil.example", "//evil.example", "/console//evil.example", "/login", "/console/../login\\", ""]
)
def test_nobody_is_sent_away_by_a_link(path):
    assert model.own_path(path) == "/console"


def test_our_own_pages_are_gone_back_to():
    assert model.own_path("/console/accounts/1/orders?status=open") == "/console/accounts/1/orders?status=open"


def test_a_platform_that_is_away_is_said_so(stack, signed_in):
    visitor = signed_in("admin")
    secrets = {"REDIS_URL": stack.redis_url(), "CURSOR_KEY": stack.sessions()._key.decode()}
    app = create_app({**secrets, "PUBLIC_URL": stack.base, "API_URL": "http://127.0.0.1:9"})
    client = app.test_client()
    client.set_cookie(COOKIE, session_cookie(visitor), domain="localhost")
    answer = client.get("/console")

    assert answer.status_code == 503
    assert "does not answer" in answer.text and "Try again" in answer.text


def begun_at(public_url, stack):
    """A sign-in, at a console with that address."""
    secrets = {"REDIS_URL": stack.redis_url(), "CURSOR_KEY": "a key"}
    app = create_app({**secrets, "PUBLIC_URL": public_url, "API_URL": stack.base})
    with closing(app.extensions["deps"].api):
        return app.test_client().get("/console/sign-in", base_url="https://desk.example.com")


def test_cookies_are_for_this_host_over_tls_where_there_is_tls(stack):
    answer = begun_at("https://desk.example.com:443", stack)

    assert answer.headers["Location"].startswith("https://desk.example.com/oauth/authorize?")
    assert re.match(
        r"__Host-tip_console_sign_in=\S+; Secure; HttpOnly; Path=/; SameSite=Lax", answer.headers["Set-Cookie"]
    )


def test_behind_a_proxy_that_leaves_the_port_out_signing_in_begins_all_the_same(stack):
    answer = begun_at("https://desk.example.com:8443", stack)

    assert answer.headers["Location"].startswith("https://desk.example.com:8443/oauth/authorize?")
