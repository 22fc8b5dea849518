"""`tip login` at OpenID Connect providers that nobody here wrote: their own pages are submitted as a browser does."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import requests

from identity import usecases
from tip_testing.identity_fixtures import IdentityFixtures
from tip_testing.npm_provider import npm_provider, platform_settings
from tip_testing.platform_plugin import Platform
from tip_testing.provider_pages import submit_pages
from tip_testing.terminal import Terminal, terminal

from .conftest import Canaille

PATIENCE_S = 60


@dataclass(frozen=True)
class Desk:
    """Somebody at a terminal, for a platform whose users are the provider's."""

    base: str
    config: Path
    login_options: tuple[str, ...]

    @property
    def environment(self) -> dict[str, str]:
        return {"XDG_CONFIG_HOME": str(self.config), "TIP_HOME": str(self.config / "none"), "TIP_URL": ""}

    def login(self, name: str, *words: str) -> tuple[int, str]:
        """The exit code, and what was shown."""
        with terminal("login", "--url", self.base, *self.login_options, *words, environment=self.environment) as shown:
            submit_pages(address_in(shown), {"login": name, "password": "correct horse"})
            return shown.end(), shown.shown

    def whoami(self) -> dict[str, Any]:
        stored = json.loads((self.config / "tip" / "logins" / "login.json").read_text())
        headers = {"Authorization": f"Bearer {stored['access_token']}"}
        return dict(requests.get(f"{self.base}/v1/auth/self", headers=headers, timeout=PATIENCE_S).json())

    def tip(self, *words: str) -> tuple[int, str]:
        with terminal(*words, environment=self.environment) as shown:
            return shown.end(), shown.shown


def address_in(shown: Terminal) -> str:
    shown.see("Waiting" if "--browser" not in shown.words else "in a browser on this machine")
    found = re.findall(r"(?:or open|Open) (http://\S+)", shown.shown)
    return str(found[-1])


@pytest.fixture(scope="module")
def oidc_provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with npm_provider(tmp_path_factory.mktemp("oidc-provider")) as issuer:
        yield issuer


def at_platform(platform: Platform, serve: Any, environment: dict[str, str]) -> Iterator[str]:
    made = IdentityFixtures(platform.administrator_environment("identity", **environment))
    usecases.create_organization(made.deps, environment["IDENTITY_PROVIDER"], "desk", "Desk")
    made.close()
    with serve(platform.web_environment("identity", **environment)) as (base, _):
        yield base


@pytest.fixture(scope="module")
def base_of_npm(platform: Platform, serve: Any, oidc_provider: str) -> Iterator[str]:
    yield from at_platform(platform, serve, dict(platform_settings(oidc_provider)))


@pytest.fixture(scope="module")
def base_of_canaille(platform: Platform, serve: Any, canaille: Canaille) -> Iterator[str]:
    yield from at_platform(platform, serve, canaille.environment())


@pytest.fixture
def npm_desk(base_of_npm: str, oidc_provider: str, tmp_path: Path) -> Desk:
    options = ("--issuer", oidc_provider, "--client-id", "tip-cli", "--scope", "openid offline_access")
    return Desk(base_of_npm, tmp_path, options)


@pytest.fixture
def canaille_desk(base_of_canaille: str, canaille: Canaille, tmp_path: Path) -> Desk:
    back = ("--port", str(canaille.callback_port))
    client = ("--issuer", canaille.issuer, "--client-id", canaille.PUBLIC_CLIENT)
    return Desk(base_of_canaille, tmp_path, (*client, "--scope", "openid profile groups", *back))


@pytest.mark.parametrize("way", [(), ("--browser",)], ids=["device flow", "code flow"])
def test_somebody_signs_in_at_npms_oidc_provider(npm_desk: Desk, way: tuple[str, ...]) -> None:
    exit_code, shown = npm_desk.login("alice", *way)

    assert (exit_code, "as alice" in shown) == (0, True), shown
    assert npm_desk.whoami()["role"] == "member"


def test_a_login_there_is_refreshed_and_ended(npm_desk: Desk) -> None:
    assert npm_desk.login("alice")[0] == 0
    file = npm_desk.config / "tip" / "logins" / "login.json"
    before = json.loads(file.read_text())
    file.write_text(json.dumps(before | {"due_at": 0}))

    exit_code, shown = npm_desk.tip("people", "leave", "nowhere", "--yes")

    assert exit_code == 2 and "there are: none" in shown, shown
    after = json.loads(file.read_text())
    assert after["access_token"] != before["access_token"]
    assert npm_desk.tip("logout")[0] == 0
    form = {"grant_type": "refresh_token", "client_id": "tip-cli", "refresh_token": after["refresh_token"]}
    assert requests.post(after["token_endpoint"], data=form, timeout=PATIENCE_S).json()["error"] == "invalid_grant"


def test_a_user_of_nobody_we_know_has_no_role(npm_desk: Desk) -> None:
    assert npm_desk.login("stranger")[0] == 0

    assert npm_desk.whoami()["organization_id"] is None
    assert npm_desk.tip("people")[0] == 1


def test_a_token_of_another_provider_is_refused_and_no_login_is_kept(npm_desk: Desk, base_of_canaille: str) -> None:
    other = Desk(base_of_canaille, npm_desk.config, npm_desk.login_options)

    exit_code, shown = other.login("alice")

    assert exit_code == 1 and "the platform refuses this login" in shown
    assert not (npm_desk.config / "tip").exists()


def test_where_people_sign_in_elsewhere_tip_login_says_so(npm_desk: Desk) -> None:
    exit_code, shown = npm_desk.tip("login", "--url", npm_desk.base)

    assert exit_code == 1 and "--issuer and --client-id" in shown


def test_somebody_signs_in_at_canaille(canaille_desk: Desk, canaille: Canaille) -> None:
    name = f"user-{uuid4().hex[:8]}"
    subject = canaille.add_user(name, "desk", "desk-leads")

    exit_code, shown = canaille_desk.login(name, "--browser")

    assert (exit_code, f"as {subject}" in shown) == (0, True), shown
    assert canaille_desk.whoami()["role"] == "admin"
