"""`tip login` and `tip logout`, on a whole platform: the pages are submitted as a browser does."""

import json
import stat
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
from login_caller import NewAdmin, new_admin
from sdk_platform import Platform

import tip_client
from tip_testing.terminal import terminal

PROCESSES = 8
CURRENT = "import tip_client; print(tip_client.Settings.from_env('login').headers()['authorization'])"


@pytest.fixture
def alice(whole_platform: Platform, tmp_path: Path) -> NewAdmin:
    return new_admin(whole_platform, tmp_path)


@pytest.fixture
def signed_in(alice: NewAdmin) -> NewAdmin:
    exit_code, shown = alice.login()
    assert exit_code == 0, shown
    return alice


def settings(alice: NewAdmin) -> tip_client.Settings:
    return tip_client.Settings.from_env("login", {"XDG_CONFIG_HOME": str(alice.config)})


def test_a_login_at_a_terminal_is_a_profile_for_its_user_alone(alice: NewAdmin) -> None:
    exit_code, shown = alice.login()

    assert exit_code == 0 and "signed in at 127.0.0.1" in shown, shown
    assert stat.S_IMODE(alice.login_file.stat().st_mode) == 0o600
    assert stat.S_IMODE(alice.login_file.parent.stat().st_mode) == 0o700
    [profile] = [entry for entry in alice.tip.json("profiles")["data"] if entry["name"] == "login"]
    assert (profile["credential"], profile["default"]) == ("login", True)
    assert [member["role"] for member in alice.tip.json("people")["data"]] == ["admin"]
    tokens = (alice.stored()["refresh_token"], alice.stored()["access_token"])
    seen = shown + alice.tip.done("profiles") + (alice.config / "tip" / "config.toml").read_text()
    assert not any(token in seen for token in tokens)


def test_a_login_that_is_denied_stores_nothing(alice: NewAdmin) -> None:
    exit_code, shown = alice.login(decision="deny")

    assert exit_code == 1 and "access_denied" in shown
    assert not alice.login_file.exists() and alice.tip.json("profiles")["data"][0]["name"] == "demo"


def test_processes_that_share_a_login_refresh_it_once(signed_in: NewAdmin) -> None:
    signed_in.make_due()
    before = signed_in.stored()["refresh_token"]

    command, env = [sys.executable, "-c", CURRENT], {"XDG_CONFIG_HOME": str(signed_in.config)}
    started = [subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) for _ in range(PROCESSES)]
    tokens = [process.communicate()[0].strip() for process in started]

    assert [process.returncode for process in started] == [0] * PROCESSES and all(tokens)
    assert signed_in.stored()["refresh_token"] != before
    signed_in.make_due()
    assert signed_in.tip("people").exit_code == 0, "the family was revoked"


def test_a_login_is_refreshed_by_the_sdk_for_as_long_as_it_is_used(signed_in: NewAdmin) -> None:
    tokens = set()
    with tip_client.Client(settings=settings(signed_in)) as client:
        for _ in range(3):
            assert client.me.read().role == "admin"
            tokens.add(signed_in.stored()["access_token"])
            time.sleep(2.5)

    assert len(tokens) == 3


@pytest.mark.parametrize("transport", ["sse", "grpc"])
def test_a_stream_outlives_its_token(signed_in: NewAdmin, whole_platform: Platform, transport: str) -> None:
    account = signed_in.tip.json("accounts", "create", "main", "--broker", "paper", "--environment", "paper")["id"]
    places = {"url": whole_platform.local["base_url"], **whole_platform.grpc}
    made = tip_client.Settings(**places, token=settings(signed_in).token, account=account)

    with tip_client.Client(settings=made) as client, client.events(after=0, transport=transport) as events:
        next(events)
        time.sleep(6)
        signed_in.tip.done("accounts", "disable", "main", "--reason", "later", "--yes")
        assert next(events).position.sequence > 0


def test_a_stream_of_a_login_that_has_ended_is_refused(signed_in: NewAdmin, whole_platform: Platform) -> None:
    account = signed_in.tip.json("accounts", "create", "main", "--broker", "paper", "--environment", "paper")["id"]
    login = settings(signed_in).token
    with (
        tip_client.Client(whole_platform.local["base_url"], token=login, account=account) as client,
        client.events(after=0) as events,
    ):
        next(events)
        signed_in.tip.done("logout")
        with pytest.raises(tip_client.LoginEnded):
            next(events)


def test_a_logout_ends_the_login_and_forgets_it(signed_in: NewAdmin) -> None:
    stored = signed_in.stored()

    assert signed_in.tip.json("logout") == {"profile": "login", "revoked": True}

    assert not signed_in.login_file.exists()
    form = {"grant_type": "refresh_token", "refresh_token": stored["refresh_token"], "client_id": "tip"}
    assert httpx.post(stored["token_endpoint"], data=form, timeout=60).json()["error"] == "invalid_grant"
    assert signed_in.tip("people", TIP_PROFILE="login").exit_code == 1
    again = signed_in.tip("logout")
    assert again.exit_code == 2 and "has no login" in again.stderr


def test_a_login_that_was_revoked_says_to_sign_in_again(signed_in: NewAdmin) -> None:
    stored = signed_in.stored()
    revoked = {"token": stored["refresh_token"], "client_id": "tip"}
    assert httpx.post(stored["revocation_endpoint"], data=revoked, timeout=60).status_code == 200
    signed_in.make_due()

    answer = signed_in.tip("people", "--json")

    error = json.loads(answer.stderr)["error"]
    assert (answer.exit_code, error["code"]) == (1, "login_ended") and "tip login" in error["hint"]


def test_a_login_does_not_replace_a_profile_with_a_credential(alice: NewAdmin) -> None:
    alice.tip.done("profiles", "add", "bot", stdin="tip_paper_x\n")

    answer = alice.tip("login", "--profile", "bot")

    assert answer.exit_code == 2 and "--profile" in answer.stderr


def test_a_login_by_a_browser_on_this_machine_needs_no_code(alice: NewAdmin) -> None:
    with terminal("login", "--browser", environment=alice.tip.environment) as shown:
        address = shown.see("Open ", " in a browser").split("Open ")[1].split(" ")[0]
        path = address.removeprefix(alice.browser.client.base)
        alice.browser.get(path)
        back = alice.browser.submit(path, decision="allow").headers["Location"]
        assert httpx.get(back.replace("state=", "state=x"), timeout=60).status_code == 200
        assert shown.end() == 1 and "invalid_state" in shown.shown
    with terminal("login", "--browser", environment=alice.tip.environment) as shown:
        address = shown.see("Open ", " in a browser").split("Open ")[1].split(" ")[0]
        path = address.removeprefix(alice.browser.client.base)
        alice.browser.get(path)
        back = alice.browser.submit(path, decision="allow").headers["Location"]
        assert "close this page" in httpx.get(back, timeout=60).text
        assert shown.end() == 0
    assert json.loads(alice.tip("doctor", "--json").stdout)["data"][0]["text"].endswith("with login")
