"""A gateway in front of QuickFIX, each in a process of its own, and a Postgres for the gateway's session."""

import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tip_broker_fix.gateway.credentials import secret_key
from tip_brokers import Broker, BrokerDescription, BrokerSettings
from tip_brokers.simulator import NoSimulator, Simulator
from tip_local.postgres import EmbeddedPostgres
from tip_testing.broker_simulators.alpaca_pages import FULL_PAGES, short_listings
from tip_testing.fix_acceptor import Acceptor, Gateway, prepare, start_gateway
from tip_testing.fix_acceptor.gateway import ACCOUNT_KEY
from tip_testing.waiting import eventually

DESTINATION = "XNAS"


@contextmanager
def simulator(broker: BrokerDescription) -> Iterator[Simulator]:
    _needs_quickfix()
    folder = Path(tempfile.mkdtemp(prefix="tip-fix-"))
    try:
        with short_listings(), _acceptor(folder) as acceptor, _gateway(folder, acceptor) as gateway:
            yield _simulator(broker, acceptor, gateway.url)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _needs_quickfix() -> None:
    try:
        import quickfix  # noqa: F401
    except ImportError:
        raise NoSimulator("QuickFIX, the other end of the session, is not installed: quickfix-py==0.0.3") from None


@contextmanager
def _acceptor(folder: Path) -> Iterator[Acceptor]:
    made = Acceptor(folder / "acceptor")
    try:
        yield made
    finally:
        made.stop()


@contextmanager
def _gateway(folder: Path, acceptor: Acceptor) -> Iterator[Gateway]:
    with EmbeddedPostgres(folder / "postgres", fast=True) as server:
        made = start_gateway(prepare(server.url), acceptor.port)
        try:
            eventually(made.is_ready)
            yield made
        finally:
            made.process.end()
    shutil.rmtree(server.directory, ignore_errors=True)  # not always the folder we named: see rootless


def _simulator(broker: BrokerDescription, acceptor: Acceptor, address: str) -> Simulator:
    account = f"ACC{secrets.token_hex(4)}"
    return Simulator(
        settings={"FIX_PAPER_URL": address},
        secret=_secret(account),
        unknown_secret=_secret(account) | {"secret_key": "0" * 64},
        resting="OPEN",
        filling="FILL",
        halving="HALF",
        refusing="REJECT",
        silent="SILENT",
        doubling="DOUBLE",
        late="LATE",
        at=lambda address: _connected(broker, address),
        full_pages=FULL_PAGES,
        went_direct=lambda name: any(
            sent.get(100) == DESTINATION for sent in acceptor.received() if sent.get(11) == name
        ),
    )


def _secret(account: str) -> dict[str, str]:
    return {"account": account, "secret_key": secret_key(ACCOUNT_KEY, account), "destination": DESTINATION}


def _connected(broker: BrokerDescription, address: str) -> Broker:
    settings = BrokerSettings({"FIX_PAPER_URL": address}, read_seconds=1.0)
    return broker.connect("paper", settings).account(_secret("ACC1"))
