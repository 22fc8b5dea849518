"""Gateways of FIX sessions, as processes."""

import os
import re
from dataclasses import dataclass
from unittest.mock import patch
from urllib.parse import urlsplit, urlunsplit

import requests

from tip_broker_fix.gateway.__main__ import main
from tip_testing.processes import Running, start

ACCOUNT_KEY = "for tests only, and long enough for it"
PASSWORD = "open sesame"
_DATABASE_PASSWORD = "for-tests-only"
_STARTED = re.compile(r"fix_gateway_started address=\('[^']+', (\d+)\)")


@dataclass(frozen=True)
class Gateway:
    """Whoever starts it ends it."""

    process: Running

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{_port(self.process)}"

    def is_ready(self) -> bool:
        try:
            return requests.get(f"{self.url}/health/ready", timeout=5).status_code == 200
        except requests.RequestException:
            return False


def _port(process: Running) -> str | None:
    """The port that it has chosen, once it listens."""
    found = _STARTED.search(process.output())
    return found and found[1]


def prepare(admin_url: str) -> str:
    """Make the gateway's schema; the address by which it connects."""
    given = {"FIX_ADMIN_DATABASE_URL": admin_url, "FIX_DATABASE_PASSWORD": _DATABASE_PASSWORD}
    with patch.dict(os.environ, given):
        assert main(["prepare"]) == 0
    parts = urlsplit(admin_url)
    return urlunsplit(parts._replace(netloc=f"tip_fix:{_DATABASE_PASSWORD}@{parts.hostname}:{parts.port}"))


def gateway_environment(database_url: str, port: int, **settings: str) -> dict[str, str]:
    """Of a gateway to the broker at this port."""
    return {
        "FIX_DATABASE_URL": database_url,
        "FIX_SENDER": "TIP",
        "FIX_TARGET": "BROKER",
        "FIX_PASSWORD": PASSWORD,
        "FIX_HEARTBEAT_SECONDS": "1",
        "FIX_HOST": "127.0.0.1",
        "FIX_PORT": str(port),
        "FIX_GATEWAY_PORT": "0",
        "FIX_ACCOUNT_KEY": ACCOUNT_KEY,
        "FIX_LEASE_SECONDS": "3",
        "FIX_ANSWER_SECONDS": "1",
        **settings,
    }


def start_gateway(database_url: str, port: int, **settings: str) -> Gateway:
    """To the broker at this port."""
    environment = gateway_environment(database_url, port, **settings)
    return Gateway(start("-m", "tip_broker_fix.gateway", environment=environment, ready=_port))
