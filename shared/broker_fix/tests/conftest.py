"""The gateway and the broker as real processes."""

import secrets
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from tip_broker_fix.gateway.credentials import secret_key
from tip_brokers import Broker, BrokerSettings, find
from tip_testing.fix_acceptor import Acceptor, Gateway, prepare
from tip_testing.fix_acceptor import start_gateway as start
from tip_testing.fix_acceptor.gateway import ACCOUNT_KEY
from tip_testing.servers_plugin import PostgresServer, create_database, drop_database


def broker_at(
    *urls: str, account: str = "ACC1", secret: str | None = None, seconds: float = 2.5, **parts: str
) -> Broker:
    settings = BrokerSettings({"FIX_PAPER_URL": ",".join(urls)}, connect_seconds=1.0, read_seconds=seconds)
    key = secret or secret_key(ACCOUNT_KEY, account)
    return find("fix").connect("paper", settings).account({"account": account, "secret_key": key, **parts})


@pytest.fixture(scope="module")
def fix_database(postgres_server: PostgresServer) -> Iterator[str]:
    """As the gateway connects. Each module has one of its own: its sessions begin at 1, as its broker's do."""
    name = f"fix_test_{secrets.token_hex(6)}"
    create_database(postgres_server.url, name)
    yield prepare(postgres_server.url_of(name))
    drop_database(postgres_server.url, name)


@pytest.fixture(scope="module")
def acceptor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Acceptor]:
    pytest.importorskip("quickfix", reason="QuickFIX has no wheel for this Python")
    made = Acceptor(tmp_path_factory.mktemp("acceptor"))
    yield made
    made.stop()


@pytest.fixture(scope="module")
def start_gateway(fix_database: str) -> Iterator[Callable[..., Gateway]]:
    started: list[Gateway] = []

    def begin(*given: Any, **settings: str) -> Gateway:
        started.append(partial(start, fix_database)(*given, **settings))
        return started[-1]

    yield begin
    for gateway in started:
        gateway.process.end()


def new_account() -> str:
    return f"ACC{secrets.token_hex(4)}"
