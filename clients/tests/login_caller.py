"""Somebody new on a whole platform, who signs in with `tip login` at a terminal and a browser."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from sdk_platform import Platform
from tip_caller import TipCaller

from tip_testing.login_browser import Browser, HttpClient, Person
from tip_testing.terminal import Terminal, terminal

ONE_TIME_CODE = re.compile(r"[0-9A-Z]{5}(?:-[0-9A-Z]{5}){3}")
DEVICE = re.compile(r"open (http://\S+/login/device\?user_code=\S+)")


@dataclass
class NewAdmin:
    """The admin of an organization that was made just now, in a browser where they have set their password."""

    tip: TipCaller
    browser: Browser
    organization: str
    config: Path

    @property
    def login_file(self) -> Path:
        return self.config / "tip" / "logins" / "login.json"

    def stored(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.login_file.read_text())
        return found

    def make_due(self) -> None:
        self.login_file.write_text(json.dumps(self.stored() | {"due_at": 0}))

    def login(self, *words: str, decision: str = "allow") -> tuple[int, str]:
        """`tip login` on a terminal, while the browser decides: exit code and everything it showed."""
        with terminal("login", *words, environment=self.tip.environment) as shown:
            self.decide(shown, decision)
            return shown.end(), shown.shown

    def decide(self, shown: Terminal, decision: str) -> None:
        shown.see("user_code=", "Waiting")
        [address] = DEVICE.findall(shown.shown)
        path = address.removeprefix(self.browser.client.base)
        assert "Allow tip on the command line?" in self.browser.get(path).text
        assert "close this page" in self.browser.submit("/login/device", decision=decision).text


def new_admin(platform: Platform, config: Path) -> NewAdmin:
    name = f"org-{uuid4().hex[:8]}"
    tip = TipCaller({"TIP_HOME": str(platform.home), "XDG_CONFIG_HOME": str(config), "TIP_URL": None})
    shown = tip.done("init", "--organization", name, "--admin", f"alice@{name}.example")
    [code] = ONE_TIME_CODE.findall(shown)
    browser = Browser(HttpClient(platform.local["base_url"]))
    assert browser.set_password(Person(f"alice@{name}.example", code)).status_code == 303
    return NewAdmin(tip, browser, name, config)
