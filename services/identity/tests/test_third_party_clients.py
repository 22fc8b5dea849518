"""Clients that others wrote complete every flow against a running identity."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from authlib.integrations.requests_client import OAuth2Session as AuthlibSession
from oauthlib.oauth2 import DeviceClient, InvalidGrantError
from requests_oauthlib import OAuth2Session

from tip_testing.identity_fixtures import IdentityFixtures, Organization
from tip_testing.login_browser import CALLBACK, LOGIN_ENVIRONMENT, Browser, HttpClient
from tip_testing.platform_plugin import Platform
from tip_testing.ports import reserved_port

from .login_pages import person

DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
PATIENCE_S = 60


@pytest.fixture(scope="module")
def base(platform: Platform, serve: Any) -> Iterator[str]:
    port = reserved_port()
    address = f"http://127.0.0.1:{port}"
    own = LOGIN_ENVIRONMENT | {"PUBLIC_URL": address, "TOKEN_ISSUER": address}
    with serve(platform.web_environment("identity", **own), port=port):
        yield address


@pytest.fixture
def browser(base: str, identity: IdentityFixtures, organization: Organization) -> Browser:
    """Of somebody who has signed in."""
    made = Browser(HttpClient(base))
    made.set_password(person(identity, organization))
    return made


@pytest.fixture(autouse=True)
def loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    """oauthlib insists on TLS also on this machine, unless configured otherwise."""
    monkeypatch.setenv("OAUTHLIB_INSECURE_TRANSPORT", "1")


def consent(browser: Browser, address: str) -> str:
    """Where the person's browser ends up after allowing it."""
    path = address.removeprefix(browser.client.base)
    assert "Allow tip on the command line?" in browser.get(path).text
    return str(browser.submit(path, decision="allow").headers["Location"])


def whoami(base: str, token: dict[str, Any]) -> str:
    headers = {"Authorization": f"Bearer {token['access_token']}"}
    answer = requests.get(f"{base}/v1/auth/self", headers=headers, timeout=PATIENCE_S)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["organization_id"])


def metadata(base: str) -> dict[str, Any]:
    answer = requests.get(f"{base}/.well-known/oauth-authorization-server", timeout=PATIENCE_S)
    return dict(answer.json())


def test_requests_oauthlib_completes_the_code_flow_and_refreshes(
    base: str, browser: Browser, organization: Organization
) -> None:
    session = OAuth2Session("tip", redirect_uri=CALLBACK, pkce="S256")
    described = metadata(base)
    address, _state = session.authorization_url(described["authorization_endpoint"])

    token = session.fetch_token(
        described["token_endpoint"], authorization_response=consent(browser, address), include_client_id=True
    )
    assert whoami(base, token) == str(organization.id)

    fresh = session.refresh_token(described["token_endpoint"], client_id="tip")
    assert whoami(base, fresh) == str(organization.id)
    assert fresh["refresh_token"] != token["refresh_token"]
    with pytest.raises(InvalidGrantError):
        session.refresh_token(described["token_endpoint"], refresh_token=token["refresh_token"], client_id="tip")


def test_authlib_completes_the_code_flow_refreshes_and_revokes(
    base: str, browser: Browser, organization: Organization
) -> None:
    described = metadata(base)
    session = AuthlibSession(
        "tip", redirect_uri=CALLBACK, code_challenge_method="S256", token_endpoint_auth_method="none"
    )
    verifier = "v" * 64
    address, _state = session.create_authorization_url(described["authorization_endpoint"], code_verifier=verifier)

    token = session.fetch_token(
        described["token_endpoint"], authorization_response=consent(browser, address), code_verifier=verifier
    )
    assert whoami(base, token) == str(organization.id)
    fresh = session.refresh_token(described["token_endpoint"])
    answer = session.revoke_token(
        described["revocation_endpoint"], fresh["refresh_token"], token_type_hint="refresh_token"
    )
    assert answer.status_code == 200
    form = {"grant_type": "refresh_token", "refresh_token": fresh["refresh_token"], "client_id": "tip"}
    assert requests.post(described["token_endpoint"], data=form, timeout=PATIENCE_S).json()["error"] == "invalid_grant"


def test_oauthlib_signs_a_device_in(base: str, browser: Browser, organization: Organization) -> None:
    described = metadata(base)
    begun = requests.post(
        described["device_authorization_endpoint"], data={"client_id": "tip"}, timeout=PATIENCE_S
    ).json()
    device = DeviceClient("tip")
    body = device.prepare_request_body(begun["device_code"], include_client_id=True)
    form = {"Content-Type": "application/x-www-form-urlencoded"}

    def poll() -> requests.Response:
        return requests.post(described["token_endpoint"], data=body, headers=form, timeout=PATIENCE_S)

    assert poll().json()["error"] == "authorization_pending"
    assert poll().json()["error"] == "slow_down"
    page = browser.get(begun["verification_uri_complete"].removeprefix(base)).text
    assert begun["user_code"] in page
    assert "signed in" in browser.submit("/login/device", decision="allow").text

    token = device.parse_request_body_response(poll().text)
    assert whoami(base, token) == str(organization.id)
    assert poll().json()["error"] == "invalid_grant"


def test_a_device_that_is_denied_gets_nothing(base: str, browser: Browser) -> None:
    described = metadata(base)
    begun = requests.post(
        described["device_authorization_endpoint"], data={"client_id": "tip"}, timeout=PATIENCE_S
    ).json()
    browser.get(f"/login/device?user_code={begun['user_code'].lower()}")
    browser.submit("/login/device", decision="deny")

    form = {"grant_type": DEVICE_GRANT, "device_code": begun["device_code"], "client_id": "tip"}
    assert requests.post(described["token_endpoint"], data=form, timeout=PATIENCE_S).json()["error"] == "access_denied"
    assert browser.get(f"/login/device?user_code={begun['user_code']}").status_code == 404


def test_a_code_that_no_device_shows_is_refused(browser: Browser) -> None:
    assert browser.get("/login/device?user_code=BBBB-BBBB").status_code == 404
    assert browser.submit("/login/device", decision="allow", user_code="BBBB-BBBB").status_code in (403, 404)


@pytest.fixture(scope="module")
def openid_client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The script beside its package, fetched."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed: openid-client cannot be tried")
    at = tmp_path_factory.mktemp("openid-client")
    (at / "package.json").write_text(json.dumps({"private": True, "dependencies": {"openid-client": "^6.0.0"}}))
    shutil.copy(Path(__file__).with_name("openid_client.mjs"), at)
    command = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts"]
    fetched = subprocess.run(command, check=False, cwd=at, capture_output=True, text=True)
    if fetched.returncode != 0:
        pytest.skip(f"npm cannot fetch openid-client: {fetched.stderr[-300:]}")
    return at


def test_openid_client_completes_every_flow(
    base: str, browser: Browser, organization: Organization, openid_client: Path
) -> None:
    command = ["node", "openid_client.mjs", base, CALLBACK]
    with subprocess.Popen(
        command, cwd=openid_client, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdin and running.stdout

        def said() -> dict[str, str]:
            assert running.stdout
            return dict(json.loads(running.stdout.readline()))

        def tell(line: str) -> None:
            assert running.stdin
            running.stdin.write(f"{line}\n")
            running.stdin.flush()

        tell(consent(browser, said()["go"]))
        for _ in range(2):
            assert whoami(base, {"access_token": said()["token"]}) == str(organization.id)
        assert said() == {"refused": "invalid_grant"}
        browser.get(said()["go"].removeprefix(base))
        browser.submit("/login/device", decision="allow")
        tell("allowed")
        assert whoami(base, {"access_token": said()["token"]}) == str(organization.id)
        assert running.wait(PATIENCE_S) == 0
