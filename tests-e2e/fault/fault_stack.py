"""The whole platform as separate processes that can be killed and paused one by one, and are started again."""

import random
import secrets
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import redis
import requests
from fault_processes import Child, Freezer, children_of, send
from sqlalchemy import NullPool, create_engine, text

from chassis import db, migrations
from chassis.services import ROLES, WEB_SERVICES
from tip_local.datastore import Datastore
from tip_local.home import random_key
from tip_local.identity_seed import add_account
from tip_local.postgres import EmbeddedPostgres, create_database
from tip_local.processes import free_port
from tip_local.valkey import EmbeddedValkey
from tip_testing.identity_fixtures import IdentityFixtures, Organization

DATABASE = "fault"
READY_SECONDS = 300.0
TOKEN_SECONDS = 4 * 3600
_PASSWORD = "for-this-run-only"
CRASH_STEPS = {
    "executor": (
        "executor.after_claim",
        "executor.before_send",
        "executor.after_send",
        "executor.before_commit",
        "executor.after_commit",
    ),
    "relay": ("relay.after_claim", "relay.after_publish"),
}
DATASTORES = ("postgres", "valkey")
WEB_WORKER = "web worker"
# What the contract promises does not depend on these; short ones let more happen in the same time.
QUICK_TIMES = {
    "BROKER_READ_SECONDS": "0.6",
    "BROKER_CONNECT_SECONDS": "0.2",
    "EXECUTOR_LEASE_SECONDS": "2.5",
    "QUERY_AFTER_SECONDS": "1.5",
    "QUERY_EVERY_SECONDS": "0.5",
    "RECONCILE_SECONDS": "1",
}
TIMES = {"BROKER_READ_SECONDS": "3", "RECONCILE_SECONDS": "5"}


def direct() -> requests.Session:
    """Looks for no proxy in the environment: pytest changes it while scenarios play in threads."""
    session = requests.Session()
    session.trust_env = False
    return session


@dataclass
class Stack:
    directory: Path
    postgres: EmbeddedPostgres
    valkey: EmbeddedValkey
    organization: Organization
    accounts: tuple[UUID, ...]
    web_port: int
    broker_port: int
    stream_port: int
    events_port: int
    operator_token: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    children: list[Child] = field(default_factory=list)
    kills: dict[str, int] = field(default_factory=dict)
    dice: random.Random = field(default_factory=random.Random)
    freezer: Freezer = field(default_factory=Freezer)

    @property
    def api_key(self) -> str:
        """Of the organization, for paper accounts, with every permission."""
        return self.organization.api_keys["paper"]

    @property
    def base_url(self) -> str:
        """Of all four web services."""
        return f"http://127.0.0.1:{self.web_port}"

    @property
    def broker_url(self) -> str:
        """The paper broker itself, whatever stands in front of it."""
        return f"http://127.0.0.1:{self.broker_port}"

    def at_broker(self, method: str, path: str, *, timeout: float = 30, **arguments: Any) -> requests.Response:
        """What only the broker's operator may ask, under /sim."""
        headers = {"Authorization": f"Bearer {self.operator_token}"}
        return direct().request(method, f"{self.broker_url}/sim{path}", headers=headers, timeout=timeout, **arguments)

    @property
    def events_url(self) -> str:
        return f"http://127.0.0.1:{self.events_port}"

    @property
    def stream_target(self) -> str:
        return f"127.0.0.1:{self.stream_port}"

    @property
    def admin_url(self) -> str:
        return self.postgres.url_of(DATABASE)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Everything that can be killed and paused."""
        return (*dict.fromkeys(child.kind for child in self.children), WEB_WORKER, *DATASTORES)

    def of(self, kind: str) -> list[Child]:
        return [child for child in self.children if child.kind == kind]

    def pids(self, kind: str) -> list[int]:
        """The processes that one kill or pause of the kind is about: one of several alike, with all it started."""
        if kind in DATASTORES:
            pid = self._datastore(kind).pid
            return [] if pid is None else [pid, *children_of(pid)]
        if kind == WEB_WORKER:
            workers = [pid for child in self.of("web") if child.alive for pid in child.workers()]
            return [self.dice.choice(workers)] if workers else []
        alive = [child for child in self.of(kind) if child.alive]
        if not alive:
            return []
        chosen = self.dice.choice(alive)
        return [chosen.pid, *chosen.workers()]

    def pause(self, kind: str, seconds: float | None = None) -> list[int]:
        """SIGSTOP one of the kind, SIGCONT it after that time (None: by `resume`). Returns at once."""
        return self.freezer.freeze(kind, self.pids(kind), seconds)

    def resume(self, pids: list[int] | None = None) -> None:
        self.freezer.thaw(pids)

    def kill(self, kind: str) -> bool:
        """kill -9; `revive` starts it again. False if nobody of the kind is alive."""
        pids = self.pids(kind)
        if not pids:
            return False
        self.freezer.forget(pids)
        if kind in DATASTORES:
            self._datastore(kind).kill()
            self._count(kind, -signal.SIGKILL)
        elif kind == WEB_WORKER:  # its master starts another at once
            send(pids, signal.SIGKILL)
            self._count(kind, -signal.SIGKILL)
        else:
            next(child for child in self.of(kind) if child.alive and child.pid == pids[0]).kill()
        return True

    def kill_one(self) -> None:
        """kill -9 at a random moment: somebody who is alive."""
        self.kill(self.dice.choice(("executor", "executor", "executor", "relay", WEB_WORKER, "reconciler")))

    def revive(self, *, doom: float = 0.4) -> None:
        """Start again whoever has died, by chance with the next death already fixed at a named step."""
        for name in DATASTORES:
            if self._datastore(name).pid is None:
                self._datastore(name).start()
        for child in self.children:
            if child.process is None or child.alive:
                continue
            self._count(child.kind, child.process.returncode)
            steps = CRASH_STEPS.get(child.kind, ())
            doomed = bool(steps) and self.dice.random() < doom
            child.start(**({"TIP_CRASH_AT": self.dice.choice(steps)} if doomed else {}))

    def revive_well(self) -> None:
        """For the end: everybody runs, and nobody is doomed any more."""
        self.freezer.thaw()
        for child in self.children:
            if child.doomed:
                child.kill()
        self.revive(doom=0.0)
        wait_until_ready(self)

    def _datastore(self, kind: str) -> Datastore:
        return self.postgres if kind == "postgres" else self.valkey

    def _count(self, kind: str, code: int | None) -> None:
        name = kind if code == -signal.SIGKILL else f"{kind} ended with {code}"
        self.kills[name] = self.kills.get(name, 0) + 1

    def flush(self) -> bool:
        """False if the server did not take it."""
        with suppress(redis.RedisError), redis.Redis.from_url(self.valkey.url, socket_timeout=2) as client:
            return bool(client.flushall())
        return False

    def restart_postgres(self) -> None:
        """As a power cut: no farewell."""
        self.kill("postgres")
        self.revive()

    def stop(self) -> None:
        """At once: how processes end when they are asked to is tested elsewhere."""
        self.freezer.thaw()
        for child in self.children:
            child.kill()


InFront = Callable[[int], int]
"""Puts something in front of the broker's port and answers the port that the platform is to use."""


@contextmanager
def stack(
    *, accounts: int, executors: int, quick: bool, seed: int, in_front_of_broker: InFront = lambda port: port,
    **settings: str,
) -> Iterator[Stack]:  # fmt: skip
    """`settings` are environment variables of every process of the platform, over those of `quick`."""
    with ExitStack() as opened:
        directory = Path(f"/tmp/tip-fault-{secrets.token_hex(4)}")
        directory.mkdir(mode=0o755)
        postgres = opened.enter_context(EmbeddedPostgres(directory / "postgres", fast=quick))
        valkey = opened.enter_context(EmbeddedValkey(directory / "valkey", fast=quick))
        _vacuum_between_restarts(postgres)
        create_database(postgres.url, DATABASE)
        migrations.migrate(postgres.url_of(DATABASE), dict.fromkeys(ROLES, _PASSWORD))
        common = {
            "REDIS_URL": valkey.url,
            "SIGNING_KEY_ENCRYPTION_KEY": random_key(),
            "VAULT_KEY_ENCRYPTION_KEY": random_key(),
            "CURSOR_KEY": secrets.token_hex(16),
            "RATE_LIMIT_PER_MINUTE": "100000000",
            "LOG_FORMAT": "json",
            **(QUICK_TIMES if quick else TIMES),
            **settings,
        }
        made = _populated(directory, postgres, valkey, common, accounts, seed)
        made.children += _children(made, common, executors, in_front_of_broker(made.broker_port), quick, seed)
        opened.callback(made.stop)
        for child in made.children:
            child.start()
        wait_until_ready(made)
        yield made


def _vacuum_between_restarts(postgres: EmbeddedPostgres) -> None:
    """A killed Postgres forgets what there is to vacuum: with a kill each minute, once a minute would be never."""
    engine = create_engine(db.with_driver(postgres.url), poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text("ALTER SYSTEM SET autovacuum_naptime = '5s'"))
        connection.execute(text("SELECT pg_reload_conf()"))


def _url(postgres: EmbeddedPostgres, role: str) -> str:
    return f"postgresql://tip_{role}:{_PASSWORD}@127.0.0.1:{postgres.port}/{DATABASE}"


def _populated(
    directory: Path, postgres: EmbeddedPostgres, valkey: EmbeddedValkey, common: dict[str, str], accounts: int,
    seed: int,
) -> Stack:  # fmt: skip
    identity = IdentityFixtures({**common, "DATABASE_URL": postgres.url_of(DATABASE)}, token_lifetime_s=TOKEN_SECONDS)
    organization = identity.organization(entitlements=("controls_premium", "trading_live"))
    identity.close()
    engine = create_engine(db.with_driver(postgres.url_of(DATABASE)), poolclass=NullPool)
    with engine.begin() as connection:
        made = tuple(add_account(connection, organization.id, "paper") for _ in range(accounts))
    web, broker, stream, events = (free_port() for _ in range(4))
    built = Stack(directory, postgres, valkey, organization, made, web, broker, stream, events)
    built.dice.seed(seed)
    return built


def _children(
    made: Stack, common: dict[str, str], executors: int, broker_port: int, quick: bool, seed: int
) -> list[Child]:
    common = {**common, "PAPER_BROKER_URL": f"http://127.0.0.1:{broker_port}"}
    children: list[Child] = []

    def child(kind: str, *module: str, environment: dict[str, str]) -> None:
        log = made.directory / f"{kind}-{len(children)}.log"
        children.append(Child(kind, [sys.executable, "-m", *module], environment, log))

    def workers(service: str, *jobs: str) -> None:
        own = {**common, "DATABASE_URL": _url(made.postgres, service)}
        for job in jobs:
            kind = job if service == "intents" else f"{service}-{job}"
            child(kind, f"{service}.worker", job, environment=own)

    child("paper", "paper_broker", environment=_broker_environment(made, quick, seed))
    web = ("gunicorn", "-c", "python:chassis.gunicorn_conf", "tip_local.web:create_front()")
    child("web", *web, environment=common | _web_environment(made))
    child("gateway", "stream_gateway", environment=common | _gateway_environment(made))
    workers("intents", *["executor"] * executors, "relay", "relay", "reconciler", "consumer", "scheduler")
    child("signer", "intents.worker", "signer", environment=common | _signer_environment(made))
    workers("accounts", "relay", "consumer")
    workers("controls", "relay", "consumer")
    workers("identity", "relay", "scheduler")
    return children


def _broker_environment(made: Stack, quick: bool, seed: int) -> dict[str, str]:
    return {
        "PAPER_BROKER_PORT": str(made.broker_port),
        "PAPER_BROKER_OPERATOR_TOKEN": made.operator_token,
        "PAPER_BROKER_DATA": str(made.directory / "paper"),
        "PAPER_BROKER_CASH": "900000000",
        "PAPER_BROKER_PRICES": "fixed",
        "PAPER_BROKER_SEED": str(seed),
        "PAPER_BROKER_HANG_MILLIS": "1000" if quick else "4000",
    }


def _web_environment(made: Stack) -> dict[str, str]:
    urls = {
        f"{service.upper()}_DATABASE_URL": _url(made.postgres, migrations.web_name(service)) for service in WEB_SERVICES
    }
    return {
        **urls,
        "WEB_PORT": str(made.web_port),
        "WEB_WORKERS": "2",
        "EVENTS_URL": made.events_url,
        "INTERNAL_ORGANIZATIONS": str(made.organization.id),
    }


def _signer_environment(made: Stack) -> dict[str, str]:
    return {"DATABASE_URL": _url(made.postgres, "intents_signer"), "LOG_SIGNING_KEY": random_key()}


def _gateway_environment(made: Stack) -> dict[str, str]:
    return {
        "DATABASE_URL": _url(made.postgres, "stream_gateway"),
        "PORT": str(made.stream_port),
        "EVENTS_PORT": str(made.events_port),
        "HEARTBEAT_SECONDS": "2",
    }


def wait_until_ready(made: Stack) -> None:
    """What answers HTTP answers it; the workers need no waiting for, since all work waits for them."""
    deadline = time.monotonic() + READY_SECONDS
    for url in (made.base_url, made.broker_url, made.events_url):
        while True:
            with suppress(requests.RequestException):
                if requests.get(f"{url}/health/ready", timeout=2).ok:
                    break
            if time.monotonic() > deadline:
                raise TimeoutError(f"{url} is not ready; logs are in {made.directory}")
            time.sleep(0.1)
