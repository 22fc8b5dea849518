"""The platform as separate processes that can be killed one by one, and are started again when they die."""

import base64
import os
import random
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

import redis
import requests
from sqlalchemy import NullPool, create_engine

from chassis import db, migrations
from tip_local.postgres import EmbeddedPostgres, create_database
from tip_local.processes import free_port
from tip_local.valkey import EmbeddedValkey
from tip_local.world import World, add_account

ROLES = ("identity", "accounts", "controls", "intents", "stream_gateway")
DATABASE = "fault"
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


@dataclass
class Child:
    """One process, and how to start it again."""

    kind: str
    command: list[str]
    environment: dict[str, str]
    log: Path
    process: subprocess.Popen[bytes] | None = None
    doomed: bool = False
    """Whether it will kill itself at a named step."""

    def start(self, **more: str) -> None:
        self.doomed = "TIP_CRASH_AT" in more
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command, env={**os.environ, **self.environment, **more}, stdout=log, stderr=log
            )

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def workers(self) -> list[int]:
        """Of gunicorn: the processes that do the work."""
        found = subprocess.run(["pgrep", "-P", str(self.pid)], capture_output=True, text=True, check=False)
        return [int(line) for line in found.stdout.split()]


@dataclass
class Stack:
    directory: Path
    postgres: EmbeddedPostgres
    valkey: EmbeddedValkey
    api_key: str
    accounts: tuple[UUID, ...]
    web_port: int
    broker_url: str
    children: list[Child] = field(default_factory=list)
    kills: dict[str, int] = field(default_factory=dict)
    dice: random.Random = field(default_factory=random.Random)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.web_port}"

    @property
    def admin_url(self) -> str:
        return self.postgres.url_of(DATABASE)

    def of(self, kind: str) -> list[Child]:
        return [child for child in self.children if child.kind == kind]

    def revive(self) -> None:
        """Start again whoever has died; now and then with the next death already fixed at a named step."""
        for child in self.children:
            if child.process is None or child.process.poll() is None:
                continue
            self._count(child, child.process.returncode)
            steps = CRASH_STEPS.get(child.kind, ())
            doomed = bool(steps) and self.dice.random() < 0.4
            child.start(**({"TIP_CRASH_AT": self.dice.choice(steps)} if doomed else {}))

    def revive_well(self) -> None:
        """For the end: nobody is doomed any more."""
        for child in self.children:
            if child.doomed and child.process is not None and child.process.poll() is None:
                child.process.kill()
                child.process.wait()
            if child.process is None or child.process.poll() is not None:
                child.start()

    def _count(self, child: Child, code: int | None) -> None:
        name = child.kind if code == -signal.SIGKILL else f"{child.kind} ended with {code}"
        self.kills[name] = self.kills.get(name, 0) + 1

    def kill_one(self) -> None:
        """kill -9 at a random moment: somebody who is alive."""
        kind = self.dice.choice(("executor", "executor", "executor", "relay", "web", "reconciler"))
        child = self.dice.choice(self.of(kind))
        if child.process is None or child.process.poll() is not None:
            return
        if kind == "web":  # a worker: its master starts another at once
            workers = child.workers()
            if workers:
                with suppress(ProcessLookupError):
                    os.kill(self.dice.choice(workers), signal.SIGKILL)
                self.kills["web worker"] = self.kills.get("web worker", 0) + 1
            return
        child.process.kill()
        child.process.wait()

    def flush(self) -> None:
        with redis.Redis.from_url(self.valkey.url) as client:
            client.flushall()

    def restart_postgres(self) -> None:
        """As a power cut: no farewell."""
        self.postgres.kill()
        self.postgres.start()

    def stop(self) -> None:
        for child in self.children:
            if child.process is not None and child.process.poll() is None:
                child.process.terminate()
        for child in self.children:
            if child.process is not None:
                try:
                    child.process.wait(10)
                except subprocess.TimeoutExpired:
                    child.process.kill()
                    child.process.wait()


@contextmanager
def stack(*, accounts: int, executors: int, quick: bool, seed: int) -> Iterator[Stack]:
    with ExitStack() as opened:
        directory = Path(f"/tmp/tip-fault-{secrets.token_hex(4)}")
        directory.mkdir(mode=0o755)
        postgres = opened.enter_context(EmbeddedPostgres(directory / "postgres", fast=quick))
        valkey = opened.enter_context(EmbeddedValkey(directory / "valkey", fast=quick))
        create_database(postgres.url, DATABASE)
        migrations.migrate(postgres.url_of(DATABASE), dict.fromkeys(ROLES, _PASSWORD))
        made = _populated(directory, postgres, valkey, accounts, executors, quick, seed)
        opened.callback(made.stop)
        for child in made.children:
            child.start()
        _wait_until_ready(made)
        yield made


def _populated(
    directory: Path, postgres: EmbeddedPostgres, valkey: EmbeddedValkey, accounts: int, executors: int, quick: bool,
    seed: int,
) -> Stack:  # fmt: skip
    web_port, broker_port = free_port(), free_port()
    common = {
        "REDIS_URL": valkey.url,
        "KEY_ENCRYPTION_KEY": base64.b64encode(secrets.token_bytes(32)).decode(),
        "CURSOR_KEY": secrets.token_hex(16),
        "RATE_LIMIT_PER_MINUTE": "100000000",
        "LOG_FORMAT": "json",
        "PAPER_BROKER_URL": f"http://127.0.0.1:{broker_port}",
    }
    times = {"BROKER_READ_SECONDS": "3", "RECONCILE_SECONDS": "5"}
    if quick:
        times = {
            "BROKER_READ_SECONDS": "0.6",
            "BROKER_CONNECT_SECONDS": "0.2",
            "EXECUTOR_LEASE_SECONDS": "2.5",
            "ASK_AFTER_SECONDS": "1.5",
            "ASK_EVERY_SECONDS": "0.5",
            "RECONCILE_SECONDS": "1",
        }

    def url(role: str) -> str:
        return f"postgresql://tip_{role}:{_PASSWORD}@127.0.0.1:{postgres.port}/{DATABASE}"

    world = World({**common, "DATABASE_URL": url("identity")})
    organization = world.organization()
    world.close()
    engine = create_engine(db.with_driver(postgres.url_of(DATABASE)), poolclass=NullPool)
    with engine.begin() as connection:
        made = tuple(add_account(connection, organization.id, "paper") for _ in range(accounts))
    common |= times | {"DATABASE_URL": url("intents"), "WEB_PORT": str(web_port), "WEB_WORKERS": "2"}
    built = Stack(
        directory, postgres, valkey, organization.api_keys["paper"], made, web_port, common["PAPER_BROKER_URL"]
    )
    built.dice.seed(seed)
    broker = {
        "PAPER_BROKER_PORT": str(broker_port),
        "PAPER_BROKER_DATA": str(directory / "paper"),
        "PAPER_BROKER_CASH": "900000000",
        "PAPER_BROKER_PRICES": "fixed",
        "PAPER_BROKER_SEED": str(seed),
        "PAPER_BROKER_HANG_MILLIS": "1000" if quick else "4000",
    }

    def child(kind: str, *command: str, environment: dict[str, str], number: int = 0) -> None:
        log = directory / f"{kind}-{number}.log"
        built.children.append(Child(kind, [sys.executable, *command], environment, log))

    child("paper", "-m", "paper_broker", environment=broker)
    child(
        "web", "-m", "gunicorn", "-c", "python:chassis.gunicorn_conf", "intents.app:create_front()", environment=common
    )
    for number in range(executors):
        child("executor", "-m", "intents.worker", "executor", environment=common, number=number)
    for number in range(2):
        child("relay", "-m", "intents.worker", "relay", environment=common, number=number)
    child("reconciler", "-m", "intents.worker", "reconciler", environment=common)
    return built


def _wait_until_ready(made: Stack) -> None:
    deadline = time.monotonic() + 60
    for url in (made.base_url + "/health/live", made.broker_url + "/health/ready"):
        while True:
            with suppress(requests.RequestException):
                if requests.get(url, timeout=1).ok:
                    break
            if time.monotonic() > deadline:
                raise TimeoutError(url)
            time.sleep(0.1)
