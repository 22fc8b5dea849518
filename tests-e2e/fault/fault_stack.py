"""The platform as separate processes that can be killed and paused one by one, and are started again."""

import random
import secrets
import signal
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import redis
import requests
from fault_brokers import Brokers
from fault_processes import Child, Freezer, children_of, send

from tip_local.datastore import Datastore
from tip_local.postgres import EmbeddedPostgres
from tip_local.valkey import EmbeddedValkey
from tip_testing.identity_fixtures import Organization

DATABASE = "fault"
READY_SECONDS = 300.0
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
    others: Brokers | None = None
    """The brokers beside the paper broker."""
    brokers: dict[str, str] = field(default_factory=dict)
    """Of the accounts that are there: the broker's name."""

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
        """A request that only the broker's operator may make, under /sim."""
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
            self._count(child.kind, child.process.returncode())
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
        """By kill -9: how processes end on SIGTERM is tested with the containers."""
        self.freezer.thaw()
        for child in self.children:
            child.kill()


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
