"""A person with a browser: reads our pages as one does, and follows what they say."""

import base64
import hashlib
import html
import json
import re
import secrets
import time
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

import pyotp
import requests
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

PASSWORD = "correct horse battery"
CALLBACK = "http://127.0.0.1:4711/callback"
LOGIN_ENVIRONMENT = {"PUBLIC_URL": "http://localhost", "LOGIN_RATE_LIMIT_PER_MINUTE": "100000"}


def hidden(page: str) -> dict[str, str]:
    """The hidden fields of a page."""
    found = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page)
    return {name: html.unescape(value) for name, value in found}


@dataclass
class Person:
    """Somebody with an address, who may know a password and have an authenticator app."""

    email: str
    one_time_code: str
    password: str = PASSWORD
    totp: pyotp.TOTP | None = None
    used: set[str] = field(default_factory=set)

    def next_code(self) -> str:
        """Of this step or the next: each is taken once."""
        assert self.totp
        codes = (self.totp.at(int(time.time()), offset) for offset in (0, 1))
        code = next(code for code in codes if code not in self.used)
        self.used.add(code)
        return code


class HttpClient:
    """A running server, with the part of Flask's test client that a browser uses."""

    def __init__(self, base: str, ca: str | None = None) -> None:
        self.base, self._session = base, requests.Session()
        self._options: dict[str, Any] = {"allow_redirects": False, "timeout": 60, "verify": ca or True}

    def get(self, path: str) -> requests.Response:
        return self._session.get(urljoin(self.base, path), **self._options)

    def post(self, path: str, data: Any) -> requests.Response:
        return self._session.post(urljoin(self.base, path), data=data, **self._options)


class Browser:
    """The pages, as somebody sees them."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.page = ""

    def get(self, path: str) -> TestResponse:
        return self._seen(self.client.get(path))

    def submit(self, path: str, **form: str) -> TestResponse:
        """Send a form of the page that is shown."""
        return self._seen(self.client.post(path, data=hidden(self.page) | form))

    def follow(self, response: TestResponse) -> TestResponse:
        assert response.status_code in (302, 303), response.text
        return self.get(response.headers["Location"])

    def _seen(self, response: TestResponse) -> TestResponse:
        if response.headers.get("Content-Type", "").startswith("text/html") and response.status_code not in (302, 303):
            self.page = response.text
        return response

    def set_password(self, who: Person) -> TestResponse:
        self.get("/login/code")
        return self.submit("/login/code", email=who.email, code=who.one_time_code, password=who.password)

    def sign_in(self, who: Person, at: str = "/login") -> TestResponse:
        self.get(at)
        return self.submit("/login", email=who.email, password=who.password)

    def set_up_totp(self, who: Person) -> TestResponse:
        self.get("/login")
        self.submit("/login/totp/setup")
        [secret] = re.findall(r'<p class="secret">([A-Z2-7 ]+)</p>', self.page)
        who.totp = pyotp.TOTP(secret.replace(" ", ""))
        return self.submit("/login/totp", code=who.next_code())


@dataclass
class App:
    """A client application with PKCE."""

    client_id: str = "tip"
    redirect_uri: str = CALLBACK
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(48))
    state: str = field(default_factory=lambda: secrets.token_hex(8))

    @property
    def challenge(self) -> str:
        digest = hashlib.sha256(self.verifier.encode()).digest()
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()

    def authorize_path(self, **changes: str | None) -> str:
        query: dict[str, Any] = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": self.redirect_uri,
            "state": self.state,
            "code_challenge": self.challenge,
            "code_challenge_method": "S256",
        }
        sent = {name: value for name, value in (query | changes).items() if value is not None}
        return f"/oauth/authorize?{urlencode(sent)}"

    def code(self, browser: Browser, **form: str) -> str:
        """The authorization code that the signed-in person of the browser consents to."""
        browser.get(self.authorize_path())
        answer = browser.submit(self.authorize_path(), decision="allow", **form)
        return returned(answer)["code"]

    def exchange(self, client: FlaskClient, code: str, **changes: str) -> TestResponse:
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": self.redirect_uri}
        form |= {"client_id": self.client_id, "code_verifier": self.verifier}
        return client.post("/oauth/token", data=form | changes)

    def refresh(self, client: FlaskClient, token: str, **changes: str) -> TestResponse:
        form = {"grant_type": "refresh_token", "refresh_token": token, "client_id": self.client_id}
        return client.post("/oauth/token", data=form | changes)

    def tokens(self, browser: Browser) -> dict[str, Any]:
        answer = self.exchange(browser.client, self.code(browser))
        assert answer.status_code == 200, answer.text
        return dict(json.loads(answer.text))


def returned(response: TestResponse) -> dict[str, str]:
    """The parameters that a client gets back."""
    assert response.status_code in (302, 303), response.text
    return dict(parse_qsl(urlsplit(response.headers["Location"]).query))
