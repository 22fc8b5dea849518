"""identity as its callers meet it: a client per module, and short ways to say who is calling."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests
from flask.testing import FlaskClient
from sqlalchemy import text

from chassis.outbox import Outbox
from identity.app import create_app
from tip_testing.identity_fixtures import IdentityFixtures, Organization
from tip_testing.login_browser import Browser
from tip_testing.platform_plugin import Platform
from tip_testing.ports import reserved_port
from tip_testing.processes import Running, running, start

from .login_pages import person

HERE = Path(__file__).parent
PATIENCE_S = 60  # with a process that has to share a busy machine


@pytest.fixture(scope="module")
def client(platform: Platform) -> FlaskClient:
    return create_app(platform.web_environment("identity")).test_client()


@pytest.fixture(scope="module")
def operator(identity: IdentityFixtures) -> dict[str, str]:
    """The headers of a service account that may do everything."""
    return bearer(identity.service_account().token)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture(scope="session")
def as_bearer() -> Callable[[str], dict[str, str]]:
    return bearer


@pytest.fixture
def organization(identity: IdentityFixtures) -> Organization:
    return identity.organization()


@pytest.fixture
def admin(organization: Organization) -> dict[str, str]:
    """The headers of the organization's admin."""
    return bearer(organization.tokens["admin"])


@pytest.fixture
def browser(client: FlaskClient) -> Browser:
    """Of somebody who has not signed in yet."""
    return Browser(client.application.test_client())


@pytest.fixture
def other_browser(client: FlaskClient) -> Browser:
    return Browser(client.application.test_client())


@pytest.fixture
def signed_in_browser(client: FlaskClient, identity: IdentityFixtures, organization: Organization) -> Browser:
    made = Browser(client.application.test_client())
    made.set_password(person(identity, organization))
    return made


class Events:
    """What identity has queued in one database."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform

    def all(self) -> list[tuple[str, Mapping[str, Any]]]:
        with self._platform.admin() as connection:
            rows = connection.execute(text("SELECT event_type, payload FROM identity.outbox ORDER BY id"))
            return [(row.event_type, row.payload) for row in rows]

    def of(self, event_type: str) -> list[Mapping[str, Any]]:
        return [payload for found, payload in self.all() if found == event_type]


@pytest.fixture
def events(platform: Platform) -> Events:
    return Events(platform)


@pytest.fixture
def outbox(identity: IdentityFixtures) -> Outbox:
    return identity.deps.outbox


class Canaille:
    """A running canaille: a real OpenID Connect and SCIM 2.0 provider."""

    CLIENT = ("tip-test-client", "tip-test-client-secret")
    PUBLIC_CLIENT = "tip-test-people"

    def __init__(self, port: int) -> None:
        self.port = port
        self.issuer = f"http://127.0.0.1:{self.port}"
        self.callback_port = reserved_port()
        """Where `tip login --browser` is sent back to: canaille compares it."""

    def start(self) -> None:
        command = ("-W", "ignore", str(HERE / "canaille_server.py"), str(self.port), str(self.callback_port))
        self._process = start(
            *command, environment={}, ready=lambda _: answers(f"{self.issuer}/.well-known/openid-configuration")
        )

    def stop(self) -> None:
        self._process.end()

    def environment(self) -> dict[str, str]:
        return {
            "IDENTITY_PROVIDER": "canaille",
            "OIDC_ISSUER": self.issuer,
            "OIDC_AUDIENCE": self.CLIENT[0],
            "OIDC_ORGANIZATION_CLAIM": "website",
            "OIDC_ROLE_CLAIM": "groups",
            "OIDC_ROLES": "desk-leads=admin,desk=member",
            "OIDC_SCIM_URL": f"{self.issuer}/scim/v2",
            "OIDC_CLIENT_ID": self.CLIENT[0],
            "OIDC_CLIENT_SECRET": self.CLIENT[1],
        }

    def add_user(self, name: str, organization: str, group: str | None = None) -> str:
        """The new user's id, which is the `sub` of the user's tokens."""
        enterprise = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"
        user = {
            "schemas": ["urn:ietf:params:scim:schemas:core:2.0:User", enterprise],
            "userName": name,
            "active": True,
            "name": {"familyName": name, "formatted": name},
            "emails": [{"value": f"{name}@example.org"}],
            "password": "correct horse",
            enterprise: {"organization": organization},
        }
        user_id = str(self._scim("POST", "/Users", user).json()["id"])
        if group:
            self._scim("POST", "/Groups", self._group(group, user_id))
        return user_id

    def _group(self, name: str, user_id: str) -> dict[str, Any]:
        member = {"value": user_id, "$ref": f"{self.issuer}/scim/v2/Users/{user_id}"}
        return {
            "schemas": ["urn:ietf:params:scim:schemas:core:2.0:Group"],
            "displayName": name,
            "members": [member],
        }

    def has_user(self, user_id: str) -> bool:
        return self._scim("GET", f"/Users/{user_id}", check=False).status_code == 200

    def user_token(self, name: str, scope: str = "openid profile groups") -> str:
        form = {"grant_type": "password", "username": name, "password": "correct horse", "scope": scope}
        return self._token(form)

    def _token(self, form: dict[str, str]) -> str:
        answer = requests.post(f"{self.issuer}/oauth/token", data=form, auth=self.CLIENT, timeout=PATIENCE_S)
        answer.raise_for_status()
        return str(answer.json()["access_token"])

    def _scim(self, method: str, path: str, body: object = None, *, check: bool = True) -> requests.Response:
        headers = bearer(self._token({"grant_type": "client_credentials"}))
        answer = requests.request(
            method, f"{self.issuer}/scim/v2{path}", json=body, headers=headers, timeout=PATIENCE_S
        )
        if check:
            assert answer.ok, answer.text
        return answer


@pytest.fixture(scope="session")
def canaille() -> Iterator[Canaille]:
    provider = Canaille(reserved_port())
    provider.start()
    try:
        yield provider
    finally:
        provider.stop()


def answers(url: str) -> bool:
    try:
        return requests.get(url, timeout=2).status_code < 500
    except requests.RequestException:
        return False


_SERVER = str(HERE / "identity_server.py")


@contextmanager
def served(
    environment: Mapping[str, str], log: Path | None = None, port: int | None = None
) -> Iterator[tuple[str, Running]]:
    """identity in a process of its own: its address and the process."""
    port = port or reserved_port()
    base = f"http://127.0.0.1:{port}"

    def ready(_: Running) -> bool:
        return answers(f"{base}/health/live")

    with running(_SERVER, str(port), environment=environment, log=log, ready=ready) as web:
        yield base, web


@pytest.fixture(scope="session")
def serve() -> Any:
    return served


@pytest.fixture
def patient_redis(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that has to wait for its turn on a busy machine is not one that is away."""
    for module in ("ratelimit", "keyuse"):
        monkeypatch.setattr(f"chassis.{module}._PATIENCE_S", float(PATIENCE_S))


class ScriptedProvider:
    """An HTTP server that answers DELETE with `answer`, and counts: for failures no good provider shows on request."""

    def __init__(self) -> None:
        from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

        self.answer: int | str = 204
        self.meanwhile: Callable[[], object] | None = None
        """Done once, after the next request has arrived and before it is answered."""
        self.deleted: list[str] = []
        self.authorizations: list[str | None] = []
        script = self

        class Handler(BaseHTTPRequestHandler):
            def do_DELETE(self) -> None:
                script.authorizations.append(self.headers["Authorization"])
                meanwhile, script.meanwhile = script.meanwhile, None
                if meanwhile:
                    meanwhile()
                if script.answer == "drop after deleting":
                    script.deleted.append(self.path)
                    self.connection.close()
                    return
                if script.answer in (204, 500):
                    script.deleted.append(self.path)
                self.send_response(int(script.answer))
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def environment(self) -> dict[str, str]:
        return {
            "OIDC_ISSUER": self.url,
            "OIDC_DELETE_URL": f"{self.url}/admin/users/{{subject}}",
            "OIDC_DELETE_TOKEN": "for-tests-only",
        }


@pytest.fixture
def scripted_provider() -> Iterator[ScriptedProvider]:
    provider = ScriptedProvider()
    yield provider
    provider.close()
