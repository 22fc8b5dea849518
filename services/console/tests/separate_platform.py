"""A platform whose parts are stopped one by one, as in containers: behind an ingress, with a Postgres of its own."""

import json
import shutil
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import requests
from ingress import Ingress
from platform_start import environment, started

from console.store import Sessions
from tip_local.home import SIGNING_KEY
from tip_local.postgres import EmbeddedPostgres, create_database
from tip_local.settings import Settings
from tip_local.stack import DATABASE, Stack, running_stack
from tip_testing.ports import reserved_port
from tip_testing.processes import Running, start
from tip_testing.servers_plugin import new_directory
from tip_testing.waiting import eventually

GUNICORN = ("-m", "gunicorn", "-c", "python:chassis.gunicorn_conf")
TIMEOUT_S = 30


@dataclass
class Part:
    """A process of the platform that the tests stop and start."""

    arguments: tuple[str, ...]
    environment: dict[str, str]
    port: int
    process: Running | None = None

    def start(self) -> None:
        self.process = start(*self.arguments, environment=self.environment, ready=lambda _: listens(self.port))

    def stop(self) -> None:
        if self.process:
            self.process.end(signal.SIGTERM)
        self.process = None


@dataclass
class SeparatePlatform:
    base: str
    local: dict[str, Any]
    stack: Stack
    postgres: EmbeddedPostgres
    parts: dict[str, Part] = field(default_factory=dict)

    @property
    def login(self) -> dict[str, str]:
        return dict(self.local["login"])

    @property
    def account(self) -> str:
        return str(self.local["organizations"]["acme"]["accounts"]["paper"])

    def submit(self, symbol: str) -> str:
        """An order that stays open; its id."""
        payload = {"symbol": symbol, "order_side": "BUY", "spec": {"Limit": {"quantity": "7", "limit_price": "1"}}}
        headers = {"x-api-key": self.local["organizations"]["acme"]["api_keys"]["paper"]}
        address = f"{self.base}/v1/accounts/{self.account}/intents"
        body = {"command": {"type": "CREATE", "payload": payload}}
        answer = requests.post(address, json=body, headers=headers, timeout=TIMEOUT_S)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["intent_id"])

    def sessions(self) -> Sessions:
        return Sessions(self.stack.redis_url, self.stack.secrets["cursor_key"])

    @contextmanager
    def without(self, name: str) -> Iterator[None]:
        """While this part is stopped."""
        stop, begin = self._switch(name)
        stop()
        try:
            yield
        finally:
            begin()

    def _switch(self, name: str) -> tuple[Callable[[], None], Callable[[], None]]:
        part = self.postgres if name == "postgres" else self.parts[name]
        return part.stop, part.start


def listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


@contextmanager
def separate_platform() -> Iterator[SeparatePlatform]:
    home = new_directory("tip-apart-")
    with ExitStack() as opened:
        opened.callback(shutil.rmtree, home, ignore_errors=True)
        postgres = opened.enter_context(EmbeddedPostgres(home / "server", fast=True))
        create_database(postgres.url, DATABASE)
        ingress = opened.enter_context(Ingress())
        variables = environment(home, DATABASE_URL=postgres.url_of(DATABASE), PUBLIC_URL=ingress.base)
        opened.enter_context(started(variables))
        local = json.loads((home / "local.json").read_text())
        made = SeparatePlatform(ingress.base, local, running_stack(Settings.from_env(variables)), postgres)
        made.parts |= _parts(made)
        ingress.ports |= {name: part.port for name, part in made.parts.items()}
        ingress.ports["others"] = made.stack.settings.port
        for part in made.parts.values():
            opened.callback(part.stop)
            part.start()
        eventually(lambda: requests.get(f"{made.base}/console/signed-out", timeout=TIMEOUT_S).ok)
        yield made


def _parts(made: SeparatePlatform) -> dict[str, Part]:
    stack, (identity, console, grpc, events) = made.stack, (reserved_port() for _ in range(4))
    web = {"REDIS_URL": stack.redis_url, "CURSOR_KEY": stack.secrets["cursor_key"], "WEB_WORKERS": "1"}
    own = {"PUBLIC_URL": made.base, "LOGIN_RATE_LIMIT_PER_MINUTE": "10000", "TRUSTED_PROXIES": "1"}
    signing = {"DATABASE_URL": stack.web_database_url("identity"), **stack.sealing_keys(SIGNING_KEY)}
    reading = {"DATABASE_URL": stack.database_url("stream_gateway"), "PORT": str(grpc), "EVENTS_PORT": str(events)}
    quick = {"HEARTBEAT_SECONDS": "2", "UNVERIFIED_SECONDS": "5", "DRAIN_SECONDS": "1"}
    return {
        "identity": Part((*GUNICORN, "identity.app:create_app()"), web | own | signing | _at(identity), identity),
        "console": Part((*GUNICORN, "console.app:create_app()"), web | own | _at(console), console),
        "stream-gateway": Part(("-m", "stream_gateway"), web | reading | quick, events),
    }


def _at(port: int) -> dict[str, str]:
    return {"WEB_PORT": str(port)}
