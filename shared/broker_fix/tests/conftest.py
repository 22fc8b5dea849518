"""The gateway and the broker as real processes."""

import os
import re
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

import pytest
import requests

from tip_broker_fix.gateway.__main__ import main
from tip_broker_fix.gateway.credentials import secret_key
from tip_brokers import Broker, BrokerSettings, find
from tip_testing.fix_acceptor import Acceptor
from tip_testing.processes import Running, start

ACCOUNT_KEY = "for tests only, and long enough for it"
PASSWORD = "open sesame"
STARTED = re.compile(r"fix_gateway_started address=\('[^']+', (\d+)\)")


@dataclass(frozen=True)
class Gateway:
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
    found = STARTED.search(process.output())
    return found and found[1]


def broker_at(
    *urls: str, account: str = "ACC1", secret: str | None = None, seconds: float = 2.5, **parts: str
) -> Broker:
    settings = BrokerSettings({"FIX_PAPER_URL": ",".join(urls)}, connect_seconds=1.0, read_seconds=seconds)
    key = secret or secret_key(ACCOUNT_KEY, account)
    return find("fix").connect("paper", settings).account({"account": account, "secret_key": key, **parts})


@pytest.fixture(scope="session")
def fix_database(database_url: str) -> str:
    """As the gateway connects."""
    os.environ |= {"FIX_ADMIN_DATABASE_URL": database_url, "FIX_DATABASE_PASSWORD": "for-tests-only"}
    assert main(["prepare"]) == main(["prepare"]) == 0
    parts = urlsplit(database_url)
    return urlunsplit(parts._replace(netloc=f"tip_fix:for-tests-only@{parts.hostname}:{parts.port}"))


@pytest.fixture(scope="module")
def acceptor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Acceptor]:
    pytest.importorskip("quickfix", reason="QuickFIX has no wheel for this Python")
    made = Acceptor(tmp_path_factory.mktemp("acceptor"))
    yield made
    made.stop()


@pytest.fixture(scope="module")
def start_gateway(fix_database: str) -> Iterator[Callable[..., Gateway]]:
    """Starts a gateway to the broker at this port. Each module has a session of its own: the database is shared."""
    started: list[Running] = []

    def begin(port: int, **settings: str) -> Gateway:
        environment = {
            "FIX_DATABASE_URL": fix_database,
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
        process = start("-m", "tip_broker_fix.gateway", environment=environment, ready=_port)
        started.append(process)
        return Gateway(process)

    yield begin
    for process in started:
        process.end()


def new_account() -> str:
    return f"ACC{secrets.token_hex(4)}"
