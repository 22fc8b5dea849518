"""The paper broker and the executors as real processes, and a desk whose orders go there."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid5

import pytest
import requests

import credential_vault
from intents.execution.client_order_id import client_order_id
from tip_testing.platform_plugin import Platform
from tip_testing.processes import Running
from tip_testing.processes import start as start_process
from tip_testing.waiting import eventually

from .scripted import Scripted

STARTED = re.compile(r"paper_broker_started address=\('[^']+', (\d+)\)")
PAPER_SECRET = "for-tests-only"
OPERATOR_TOKEN = "for-tests-only-0123456789"


class Paper:
    """A paper broker process."""

    def __init__(self, folder: Path, **settings: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        environment = {
            "PAPER_BROKER_PORT": "0",
            "PAPER_BROKER_OPERATOR_TOKEN": OPERATOR_TOKEN,
            "PAPER_BROKER_TICK_MILLIS": "0",
            "PAPER_BROKER_HANG_MILLIS": "6000",
            "PAPER_BROKER_SLOW_MILLIS": "300",
            "PAPER_BROKER_SETTLE_MILLIS": "100",
            "PAPER_BROKER_CASH": "1000000000",
            "PAPER_BROKER_SEED": "tests",
            "PAPER_BROKER_DATA": str(folder / "data"),
            **settings,
        }
        log = folder / "paper.log"
        self.process = start_process("-m", "paper_broker", environment=environment, log=log, ready=_port)
        self.url = f"http://127.0.0.1:{_port(self.process)}"

    def ledger(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._sim("GET", "/ledger").text.splitlines()]

    def quote(self, symbol: str, bid: str, ask: str, **sizes: str) -> None:
        body = {"bid": bid, "ask": ask, **sizes}
        self._sim("PUT", f"/quotes/{symbol}", json=body).raise_for_status()

    def faults(self, **settings: Any) -> None:
        self._sim("PUT", "/faults", json=settings).raise_for_status()

    def _sim(self, method: str, path: str, **arguments: Any) -> requests.Response:
        headers = {"Authorization": f"Bearer {OPERATOR_TOKEN}"}
        return requests.request(method, f"{self.url}/sim{path}", headers=headers, timeout=60, **arguments)

    def stop(self) -> None:
        self.process.end()


def _port(paper: Running) -> str | None:
    """The port that it has chosen, once it listens."""
    found = STARTED.search(paper.output())
    return found and found[1]


@pytest.fixture(scope="session")
def paper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Paper]:
    broker = Paper(tmp_path_factory.mktemp("paper"))
    yield broker
    broker.stop()


@pytest.fixture
def scripted() -> Iterator[Scripted]:
    made = Scripted()
    yield made
    made.end()


def execution_environment(platform: Platform, paper: Paper, **more: str) -> dict[str, str]:
    """Shorter time-outs than in life, but such that a broker on a busy machine still answers in time."""
    return platform.environment(
        "intents",
        **{
            "PAPER_BROKER_URL": paper.url,
            "ALPACA_PAPER_URL": paper.url,
            "ALPACA_DATA_URL": paper.url,
            "PAPER_ACCOUNT_SECRET": PAPER_SECRET,
            "BROKER_READ_SECONDS": "1.5",
            "BROKER_CONNECT_SECONDS": "0.5",
            "EXECUTOR_LEASE_SECONDS": "6.5",
            "EXECUTOR_THREADS": "8",
            "RECONCILE_SECONDS": "1",
            "QUERY_AFTER_SECONDS": "2",
            "QUERY_EVERY_SECONDS": "0.5",
            **more,
        },
    )


class Start:
    """Starts processes of intents: `start("executor", TIP_CRASH_AT="…")`."""

    def __init__(self, environment: Callable[..., dict[str, str]], folder: Path) -> None:
        self._environment, self._folder = environment, folder
        self.started: list[Running] = []

    def __call__(self, kind: str, *, wait: bool = True, **settings: str) -> Running:
        log, environment = self._folder / f"{kind}-{len(self.started)}.log", self._environment(**settings)
        ready = _has_started if wait else None
        worker = start_process("-m", "intents.worker", kind, environment=environment, log=log, ready=ready)
        self.started.append(worker)
        return worker


def _has_started(worker: Running) -> bool:
    return "started" in worker.output()


@pytest.fixture(scope="module")
def start(platform: Platform, paper: Paper, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    starting = Start(partial(execution_environment, platform, paper), tmp_path_factory.mktemp("workers"))
    yield starting
    for worker in starting.started:
        worker.end()


def give_credential(
    desk: Any, key_id: str, version: int = 1, status: str = "active", name: str = "credential", **parts: str
) -> None:
    """As the accounts service keeps it: sealed in the vault's table. `parts`: of a secret that is no key pair."""
    credential_id = uuid5(desk.account_id, name)
    path = credential_vault.SecretPath(desk.organization.id, desk.account_id, credential_id, version)
    secret = credential_vault.Secret(parts or {"key_id": key_id, "secret_key": "mine"})
    sealed = credential_vault.Keyring.from_text(desk.platform.vault_key).seal("vault", path, secret)
    desk.execute(
        "INSERT INTO accounts.credential (id, account_id, organization_id, label, status, fingerprint, vault_version, "
        "version) VALUES (:id, :account_id, :organization_id, 'desk', :status, 'none', :version, :version) "
        "ON CONFLICT (id) DO UPDATE SET vault_version = excluded.vault_version, version = excluded.version, "
        "status = excluded.status",
        id=credential_id,
        status=status,
        organization_id=desk.organization.id,
        version=version,
    )
    desk.execute(
        "INSERT INTO accounts.vault_object (credential_id, version, key_id, wrapped_key, ciphertext) "
        "VALUES (:id, :version, :key_id, :wrapped_key, :ciphertext) ON CONFLICT (credential_id, version) DO UPDATE "
        "SET key_id = excluded.key_id, wrapped_key = excluded.wrapped_key, ciphertext = excluded.ciphertext",
        id=credential_id,
        version=version,
        **vars(sealed),
    )


@pytest.fixture
def orders(desk: Any, paper: Paper) -> Callable[[], list[Any]]:
    """What the broker's own storage has of the desk."""

    def read() -> list[Any]:
        ours = {client_order_id(row["id"]) for row in desk.rows("action")}
        return [order for order in paper.ledger() if order["client_order_id"] in ours]

    return read


@pytest.fixture
def events(desk: Any) -> Callable[[], list[Any]]:
    """The events of the desk's log, in order."""

    def read() -> list[Any]:
        return sorted(desk.rows("account_event"), key=lambda row: row["sequence"])

    return read


@pytest.fixture
def hold_back(desk: Any) -> Callable[..., AbstractContextManager[None]]:
    """Inside it, new intents of the desk, and of others, are out of the executors' reach; afterwards they are due."""

    @contextmanager
    def held(*others: Any) -> Iterator[None]:
        accounts = ", ".join(f"'{held_back.account_id}'" for held_back in (desk, *others))
        desk.execute(
            "CREATE OR REPLACE FUNCTION intents.hold_back() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN NEW.next_attempt_at := now() + interval '1 hour'; RETURN NEW; END $$"
        )
        desk.execute(
            "CREATE TRIGGER hold_back BEFORE INSERT OR UPDATE ON intents.intent FOR EACH ROW "
            f"WHEN (NEW.account_id IN ({accounts})) EXECUTE FUNCTION intents.hold_back()"
        )
        yield
        desk.execute("DROP TRIGGER hold_back ON intents.intent")
        desk.execute(f"UPDATE intents.intent SET next_attempt_at = now() WHERE account_id IN ({accounts})")

    return held


@pytest.fixture
def reaches(desk: Any) -> Callable[..., Any]:
    """Wait until an intent has a status; its state then."""

    def wait(action: Any, *statuses: str, seconds: float = 60.0) -> Any:
        def there() -> Any:
            state = desk.get(f"/{action['intent_id']}").json["state"]
            return state if state["status"] in statuses else None

        try:
            return eventually(there, seconds)
        except AssertionError:
            raise AssertionError(desk.get(f"/{action['intent_id']}").json["state"]) from None

    return wait
