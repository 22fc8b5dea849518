"""From an empty installation to a filled order, without demo data: every command as an administrator types it.

`pytest -s` shows the commands and what they print.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from attack_platform import PORTS

from tip_testing.login_browser import App, Browser, HttpClient, Person
from tip_testing.ports import reserved_port
from tip_testing.servers_plugin import new_directory
from tip_testing.terminal import terminal

ALICE, BOB = "alice@acme.example", "bob@acme.example"
ONE_TIME_CODE = re.compile(r"[0-9A-Z]{5}(?:-[0-9A-Z]{5}){3}")
NONE_OF_MINE = ("TIP_KEY", "TIP_TOKEN", "TIP_URL", "TIP_ACCOUNT", "TIP_PROFILE", "TIP_ORGANIZATION", "TIP_EVENTS_URL")
SHOWN_ONCE = re.compile(
    r"(secret, shown this once: |valid for a day: |invitation +|one-time code (?=[0-9A-Z]{5}-)|tip_paper_)\S+"
)


@dataclass
class Desk:
    """Somebody's terminal and browser."""

    environment: Mapping[str, str]
    base: str
    browser: Browser = field(init=False)

    def __post_init__(self) -> None:
        self.browser = Browser(HttpClient(self.base))

    def tip(self, *words: str, stdin: str = "") -> str:
        """What the command prints, which must end with 0."""
        command = ["tip", *words]
        done = subprocess.run(command, env=self.environment, input=stdin, capture_output=True, text=True, check=False)
        record(" ".join(words), done.stderr + done.stdout)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def login(self) -> None:
        """The device flow: the terminal waits, while the browser enters its code."""
        with terminal("login", environment=self.environment) as shown:
            shown.see("Waiting")
            [path] = re.findall(r"or open http://[\d.:]+(/login/device\S+)", shown.shown)
            assert "Allow tip on the command line?" in self.browser.get(path).text
            assert "The device is signed in." in self.browser.submit("/login/device", decision="allow").text
            assert shown.end() == 0, shown.shown
        record("login", shown.shown)


def record(command: str, output: str) -> None:
    shown = SHOWN_ONCE.sub(r"\1…", output).replace("\r", "").rstrip()
    sys.stdout.write(f"$ tip {command}\n{shown}\n\n")


@pytest.fixture(scope="module")
def empty() -> Iterator[dict[str, str]]:
    """The environment of a platform that nobody has used yet."""
    home = new_directory("tip-first-run-")
    ports = {name: str(reserved_port()) for name in PORTS}
    kept = {name: value for name, value in os.environ.items() if name not in NONE_OF_MINE}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**kept, **ports, "TIP_HOME": str(home), "TIP_DEMO": "no", "PATH": path}
    subprocess.run(["tip", "start"], env=environment, check=True, stdout=subprocess.DEVNULL)
    yield environment
    subprocess.run(["tip", "stop"], env=environment, check=True, stdout=subprocess.DEVNULL)
    shutil.rmtree(home, ignore_errors=True)


def desk(environment: dict[str, str], config: Path) -> Desk:
    own = environment | {"XDG_CONFIG_HOME": str(config), "NO_COLOR": "1"}
    return Desk(own, f"http://127.0.0.1:{environment['TIP_PORT']}")


@pytest.mark.timeout(300)
def test_from_an_empty_installation_to_a_filled_order(empty: dict[str, str], tmp_path: Path) -> None:
    alice, bob = desk(empty, tmp_path / "alice"), desk(empty, tmp_path / "bob")

    [code] = ONE_TIME_CODE.findall(alice.tip("init", "--organization", "Acme", "--admin", ALICE))
    assert alice.browser.set_password(Person(ALICE, code)).status_code == 303
    alice.login()
    assert "login" in alice.tip("profiles")

    other = Browser(HttpClient(alice.base))  # in a browser, with the password, for an application of its own
    assert other.sign_in(Person(ALICE, "")).status_code == 303
    assert App().tokens(other)["token_type"] == "Bearer"
    assert App("console", f"{alice.base}/console/callback").code(other), "the console may be signed in to"

    invited = alice.tip("people", "invite", BOB, "member")
    [password_code] = re.findall(r"one-time code (\S+)", invited)
    [invitation] = re.findall(r"invitation +(\S+)", invited)
    bob.browser.set_password(Person(BOB, password_code))
    bob.browser.get("/login/invitation")
    assert "a member of Acme" in bob.browser.submit("/login/invitation", code=invitation).text
    bob.login()

    alice.tip("accounts", "create", "main", "--broker", "paper", "--environment", "paper")
    alice.tip("credentials", "add", "first", "--wait", stdin='{"key_id": "K1", "secret_key": "of-the-paper-broker"}')
    key = alice.tip("keys", "create", "bot", "--environment", "paper", *permissions("intent:read", "intent:edit"))
    bob.tip("profiles", "add", "bot", "--url", bob.base, stdin=key)
    bob.tip("accounts")
    [account] = re.findall(r"([0-9a-f-]{36})", bob.tip("accounts", "show", "main", "--json"))[:1]
    bought = bob.tip("--profile", "bot", "--account", account, "buy", "AAPL", "1", "--wait")
    assert "FILLED" in bought
    assert "AAPL" in alice.tip("positions", "--account", "main")
    assert "invitation" in alice.tip("audit")
    alice.tip("logout")


def permissions(*names: str) -> tuple[str, ...]:
    return tuple(word for name in names for word in ("--permission", name))
