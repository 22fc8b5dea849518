"""Journeys run against a whole platform: the one TIP_LOCAL_JSON describes, or an embedded one started for them."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests

from tip_local.processes import free_port

TIMEOUT_S = 10
PORTS = ("TIP_PORT", "TIP_STREAM_PORT", "TIP_EVENTS_PORT", "TIP_PAPER_BROKER_PORT")


@dataclass(frozen=True)
class Caller:
    """Someone with a credential, or without one."""

    base_url: str
    headers: dict[str, str]

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> requests.Response:
        return requests.request(
            method, self.base_url + path, json=body, headers={**self.headers, **headers}, timeout=TIMEOUT_S
        )


@dataclass(frozen=True)
class Stack:
    """A running platform, as `local.json` describes it."""

    local: dict[str, Any]

    def organization(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.local["organizations"][name]
        return found

    def account(self, organization: str, environment: str = "paper") -> str:
        return str(self.organization(organization)["accounts"][environment])

    def nobody(self) -> Caller:
        return Caller(self.local["base_url"], {})

    def key(self, organization: str, name: str = "paper") -> Caller:
        return Caller(self.local["base_url"], {"x-api-key": self.organization(organization)["api_keys"][name]})

    def user(self, organization: str, role: str = "admin") -> Caller:
        return self.bearer(self.organization(organization)["tokens"][role])

    def service(self, name: str = "full", organization: str | None = None) -> Caller:
        named = {"x-organization-id": self.organization(organization)["id"]} if organization else {}
        return self.bearer(self.local["service_accounts"][name]["token"], **named)

    def bearer(self, token: str, **headers: str) -> Caller:
        return Caller(self.local["base_url"], {"Authorization": f"Bearer {token}", **headers})


@pytest.fixture(scope="session")
def stack() -> Iterator[Stack]:
    if described := os.environ.get("TIP_LOCAL_JSON"):
        yield Stack(json.loads(Path(described).read_text()))
        return
    home = Path(tempfile.mkdtemp(prefix="tip-e2e-"))
    ports = {
        name: str(free_port()) for name in ("TIP_PORT", "TIP_STREAM_PORT", "TIP_EVENTS_PORT", "TIP_PAPER_BROKER_PORT")
    }
    environment = {**os.environ, **ports, "TIP_HOME": str(home)}
    tip = str(Path(sys.executable).with_name("tip"))
    subprocess.run([tip, "start"], env=environment, check=True, stdout=subprocess.DEVNULL)
    yield Stack(json.loads((home / "local.json").read_text()))
    subprocess.run([tip, "stop"], env=environment, check=True, stdout=subprocess.DEVNULL)
    shutil.rmtree(home, ignore_errors=True)
