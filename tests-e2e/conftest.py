"""Journeys run against a whole platform: the one TIP_LOCAL_JSON describes, or an embedded one started for them."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
import requests

from tip_testing.kept import kept
from tip_testing.ports import reserved_port
from tip_testing.servers_plugin import new_directory

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent / "attack"))
sys.path.append(str(Path(__file__).parents[1] / "shared" / "brokers" / "example"))
from attack_platform import PORTS, UNLIMITED

TIMEOUT_S = 30
"""Longer than the ingress waits for a service, so that every caller learns what became of its request."""

ATTEMPTS = {"OUTBOX_ATTEMPT_LIMIT": "2"}
"""So that a row whose fault does not go away is given up within seconds."""

STATEMENT = """
import sys
from sqlalchemy import create_engine, text
from chassis.db import with_driver
from tip_local.schema import database
from tip_local.settings import Settings
with database(Settings.from_env()) as stack, create_engine(with_driver(stack.admin_url)).begin() as tx:
    tx.execute(text(sys.argv[1]))
"""


@dataclass(frozen=True)
class Caller:
    """Someone with a credential, or without one."""

    base_url: str
    headers: dict[str, str]
    verify: str | bool = True
    """The certificate authority to believe, when it is not one of the system's."""

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> requests.Response:
        sent = {**self.headers, **headers}
        return requests.request(
            method, self.base_url + path, json=body, headers=sent, timeout=TIMEOUT_S, verify=self.verify
        )


@dataclass(frozen=True)
class Stack:
    """A running platform, as `local.json` describes it."""

    local: dict[str, Any]
    ca: Path | None = None
    """The authority of the ingress's certificate; None without TLS."""
    operator: tuple[str, ...] = ()
    """What to put before an operator's command, so that it runs with the administrator's secrets."""

    def operate(self, *command: str) -> str:
        if not self.operator:
            pytest.skip("TIP_OPERATOR does not say how to run an operator's command on this platform")
        done = subprocess.run([*self.operator, *command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def execute(self, statement: str) -> None:
        """As the database's administrator."""
        self.operate("python", "-c", STATEMENT, statement)

    def channel(self) -> grpc.Channel:
        """To the event stream, as its address wants it."""
        target = self.local["stream_target"]
        if self.ca is None:
            return grpc.insecure_channel(target)
        return grpc.secure_channel(target, grpc.ssl_channel_credentials(self.ca.read_bytes()))

    def organization(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.local["organizations"][name]
        return found

    def account(self, organization: str, environment: str = "paper") -> str:
        return str(self.organization(organization)["accounts"][environment])

    def nobody(self) -> Caller:
        return self._caller({})

    def key(self, organization: str, name: str = "paper") -> Caller:
        return self._caller({"x-api-key": self.organization(organization)["api_keys"][name]})

    def user(self, organization: str, role: str = "admin") -> Caller:
        return self.bearer(self.organization(organization)["tokens"][role])

    def service(self, name: str = "full", organization: str | None = None) -> Caller:
        named = {"x-organization-id": self.organization(organization)["id"]} if organization else {}
        return self.bearer(self.local["service_accounts"][name]["token"], **named)

    def bearer(self, token: str, **headers: str) -> Caller:
        return self._caller({"Authorization": f"Bearer {token}", **headers})

    def _caller(self, headers: dict[str, str]) -> Caller:
        return Caller(self.local["base_url"], headers, str(self.ca) if self.ca else True)


def described_stack(file: Path) -> Stack:
    local = json.loads(file.read_text())
    operator = shlex.split(os.environ.get("TIP_OPERATOR", ""))
    return Stack(local, file.parent / local["ca"] if "ca" in local else None, tuple(operator))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Tests about containers run by `make e2e-containers`, which brings the plugin that starts them."""
    if collection_path.name == "containers" and not config.pluginmanager.has_plugin("compose_platform"):
        return True
    return None


@pytest.fixture(scope="module")
def stack(pytestconfig: pytest.Config) -> Stack:
    return kept(pytestconfig, _stack)


@contextmanager
def _stack() -> Iterator[Stack]:
    if described := os.environ.get("TIP_LOCAL_JSON"):
        yield described_stack(Path(described))
        return
    home = new_directory("tip-e2e-")
    ports = {name: str(reserved_port()) for name in PORTS}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    settings = {**ports, **ATTEMPTS, **UNLIMITED, "TIP_HOME": str(home), "PATH": path}
    operator = ("env", *(f"{name}={value}" for name, value in settings.items()))
    subprocess.run([*operator, "tip", "start"], check=True, stdout=subprocess.DEVNULL)
    yield Stack(json.loads((home / "local.json").read_text()), operator=operator)
    subprocess.run([*operator, "tip", "stop"], check=True, stdout=subprocess.DEVNULL)
    shutil.rmtree(home, ignore_errors=True)
