"""`tip login` from outside: through the ingress, its certificate checked, at the addresses that discovery names."""

import json
import os
import re
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tip_testing.login_browser import Browser, HttpClient, Person
from tip_testing.terminal import Terminal, terminal

pytestmark = pytest.mark.skipif(
    "glewlwyd" in os.environ.get("TIP_COMPOSE_FILES", ""), reason="in this run people sign in at glewlwyd"
)

ONE_TIME_CODE = re.compile(r"[0-9A-Z]{5}(?:-[0-9A-Z]{5}){3}")
OPENED = re.compile(r"[Oo]pen (https://\S+)")


@pytest.fixture(scope="module")
def admin(stack: Any) -> Browser:
    """A browser in which somebody new has set their password and is signed in."""
    name = f"org-{uuid4().hex[:8]}"
    person = f"alice@{name}.example"
    [code] = ONE_TIME_CODE.findall(stack.operate("tip", "init", "--organization", name, "--admin", person))
    browser = Browser(HttpClient(stack.local["base_url"], str(stack.ca)))
    assert browser.set_password(Person(person, code)).status_code == 303
    return browser


def opened(browser: Browser, shown: Terminal) -> str:
    """The path that a person opens; it is at the ingress."""
    found = OPENED.findall(shown.shown)[-1]
    assert found.startswith(browser.client.base + "/"), found
    return str(found.removeprefix(browser.client.base))


def by_code(browser: Browser, shown: Terminal) -> None:
    shown.see("user_code=", "Waiting")
    assert "Allow tip on the command line?" in browser.get(opened(browser, shown)).text
    assert "The device is signed in." in browser.submit("/login/device", decision="allow").text


def by_browser(browser: Browser, shown: Terminal) -> None:
    shown.see("in a browser on this machine")
    path = opened(browser, shown)
    browser.get(path)
    back = browser.submit(path, decision="allow").headers["Location"]
    assert Browser(HttpClient("")).get(back).status_code == 200


@pytest.mark.parametrize(("words", "sign_in"), [((), by_code), (("--browser",), by_browser)], ids=["device", "browser"])
def test_people_sign_in_through_the_ingress(
    stack: Any, admin: Browser, tmp_path: Path, words: tuple[str, ...], sign_in: Any
) -> None:
    environment = {"XDG_CONFIG_HOME": str(tmp_path), "TIP_HOME": str(tmp_path / "none"), "HOME": str(tmp_path)}
    here = ("--url", stack.local["base_url"], "--ca", str(stack.ca))

    with terminal("login", *here, *words, environment=environment) as shown:
        sign_in(admin, shown)
        assert shown.end() == 0, shown.shown

    with terminal("people", "--json", environment=environment) as listed:
        assert listed.end() == 0, listed.shown
    assert [member["role"] for member in json.loads(listed.shown)["data"]] == ["admin"]
    with terminal("logout", environment=environment) as ended:
        assert ended.end() == 0, ended.shown
