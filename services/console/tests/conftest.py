"""One whole platform for all tests of the console, as `make up` runs it, and people of two organizations."""

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from people import Visitor
from platform_start import environment, run_script, started

from console.store import Sessions
from tip_testing.console_platform import ConsolePlatform
from tip_testing.kept import kept
from tip_testing.servers_plugin import new_directory

MEMBERS = {"trader": ("acme", "member"), "reader": ("acme", "read_only"), "stranger": ("globex", "admin")}
MAKE_PEOPLE = """
import json, sys
from uuid import UUID
from chassis import tenancy
from identity import usecases
from identity.app import dependencies
from identity.config import Config
from identity.usecases import passwords
from tip_local.settings import Settings
from tip_local.stack import running_stack
deps = dependencies(Config.from_env(running_stack(Settings.from_env()).signing_env))
with tenancy.serving_all():
    for email, organization, role, password in json.load(sys.stdin):
        usecases.change_member(deps, None, UUID(organization), email, role)
        with deps.engine.begin() as tx:
            code = passwords.issue_one_time_code(deps, tx, email)
        passwords.set_password(deps, email, code, password)
"""


@dataclass(frozen=True, kw_only=True)
class Stack(ConsolePlatform):
    """A running platform, its folder, and who can sign in."""

    home: Path
    logins: dict[str, dict[str, str]]

    def sessions(self) -> Sessions:
        """Where the console keeps them, opened with the platform's own secret."""
        secrets = json.loads((self.home / "secrets.json").read_text())
        return Sessions(self.redis_url(), secrets["cursor_key"])

    def redis_url(self) -> str:
        return self._address("redis_url")

    def admin_url(self) -> str:
        """The database as its administrator."""
        return self._address("admin_url")

    def _address(self, name: str) -> str:
        script = (
            "from tip_local.settings import Settings; from tip_local.stack import running_stack; "
            f"print(running_stack(Settings.from_env()).{name})"
        )
        return run_script(script, {**os.environ, "TIP_HOME": str(self.home)}).strip()


@pytest.fixture(scope="module")
def stack(pytestconfig: pytest.Config) -> Stack:
    return kept(pytestconfig, _stack)


@contextmanager
def _stack() -> Iterator[Stack]:
    """The one of TIP_LOCAL_JSON, which runs on this machine, or one that is started for the tests."""
    if described := os.environ.get("TIP_LOCAL_JSON"):
        yield _with_people(Path(described).parent, {**os.environ, "TIP_HOME": str(Path(described).parent)})
        return
    home = new_directory("tip-console-")
    variables = environment(home)
    with started(variables):
        yield _with_people(home, variables)
    shutil.rmtree(home, ignore_errors=True)


def _with_people(home: Path, variables: dict[str, str]) -> Stack:
    local = json.loads((home / "local.json").read_text())
    logins = {"admin": local["login"], **_members()}
    made = [
        (logins[name]["email"], local["organizations"][organization]["id"], role, logins[name]["password"])
        for name, (organization, role) in MEMBERS.items()
    ]
    run_script(MAKE_PEOPLE, variables, json.dumps(made))
    return Stack(local=local, home=home, logins=logins)


def _members() -> dict[str, dict[str, str]]:
    return {
        name: {"email": f"{name}@{organization}.example", "password": f"the password of {name}"}
        for name, (organization, _) in MEMBERS.items()
    }


@pytest.fixture(scope="module")
def signed_in(stack: Stack) -> Callable[[str], Visitor]:
    """Somebody who has signed in, by the name of the login."""

    def sign_in(name: str = "admin") -> Visitor:
        visitor = Visitor(stack.base)
        page = visitor.sign_in(**stack.logins[name])
        assert page.status_code == 200, page.text
        return visitor

    return sign_in
