"""What a running platform is made of, and the environment each of its processes gets."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

from chassis.services import ROLES, role, web_name
from tip_local.errors import Fault
from tip_local.home import BROKER_OPERATOR, KEYS, SIGNING_KEY, VAULT_KEY, Home
from tip_local.postgres import EmbeddedPostgres
from tip_local.settings import Settings
from tip_local.valkey import EmbeddedValkey

DATABASE = "tip"
NOT_INHERITED = (
    *("DATABASE_URL", "REDIS_URL"),
    *(secret.upper() for secret in (*KEYS, BROKER_OPERATOR)),
    *(name for key in (SIGNING_KEY, VAULT_KEY) for name in (f"{key}_FILE", f"EARLIER_{key}S")),
)
"""Not handed on: a process gets an address of its own, and only those of the platform's own secrets that it needs."""


@dataclass(frozen=True)
class Stack:
    settings: Settings
    home: Home
    secrets: dict[str, str]
    admin_url: str
    redis_url: str
    front: int | None = None
    """The descriptor of the socket that listens on the API's port; only where processes are started."""

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.settings.port}"

    @property
    def public_url(self) -> str:
        """Where browsers come in, which may be a proxy of somebody else's."""
        return (os.environ.get("PUBLIC_URL") or self.base_url).rstrip("/")

    @property
    def stream_target(self) -> str:
        return f"127.0.0.1:{self.settings.stream_port}"

    @property
    def events_url(self) -> str:
        return f"http://127.0.0.1:{self.settings.events_port}"

    @property
    def paper_broker_url(self) -> str:
        return f"http://127.0.0.1:{self.settings.paper_broker_port}"

    @property
    def role_passwords(self) -> dict[str, str]:
        """By the name of the role."""
        return {name: self.secrets[name] for name in ROLES}

    def database_url(self, name: str) -> str:
        """The same database as the administrator's, entered as the role of this name."""
        address = urlsplit(self.admin_url)
        host = address.netloc.rpartition("@")[2]
        return urlunsplit(address._replace(netloc=f"{role(name)}:{quote(self.secrets[name], safe='')}@{host}"))

    def web_database_url(self, service: str) -> str:
        return self.database_url(web_name(service))

    def common_env(self) -> dict[str, str]:
        return {
            "REDIS_URL": self.redis_url,
            "CURSOR_KEY": self.secrets["cursor_key"],
            **self.metrics_env(),
        }

    def metrics_env(self) -> dict[str, str]:
        """One directory for all, so that /metrics of the front port covers every process."""
        return {"PROMETHEUS_MULTIPROC_DIR": str(self.home.metrics)}

    def service_env(self, service: str) -> dict[str, str]:
        return {**self.common_env(), "DATABASE_URL": self.database_url(service)}

    def sealing_keys(self, key: str) -> dict[str, str]:
        """SIGNING_KEY or VAULT_KEY, and the one before while it is being replaced."""
        earlier = self.secrets.get(f"earlier_{key.lower()}")
        return {key: self.secrets[key.lower()]} | ({f"EARLIER_{key}S": earlier} if earlier else {})

    @property
    def signing_env(self) -> dict[str, str]:
        """identity for commands that issue tokens and make credentials, which no role of its processes may do."""
        return {**self.common_env(), "DATABASE_URL": self.admin_url, **self.sealing_keys(SIGNING_KEY)}

    def addresses(self) -> dict[str, Any]:
        """The part of local.json that is known without any data."""
        return {
            "base_url": self.base_url,
            "stream_target": self.stream_target,
            "events_url": self.events_url,
            "paper_broker_url": self.paper_broker_url,
            "paper_broker_operator_token": self.secrets[BROKER_OPERATOR],
        }


def inherited_environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in NOT_INHERITED}
    return {"LOG_FORMAT": "text", **kept, "PYTHONUNBUFFERED": "1"}


def embedded_postgres(settings: Settings, home: Home, port: Callable[[str, int | None], int]) -> EmbeddedPostgres:
    return EmbeddedPostgres(home.path / "postgres", port("postgres", settings.postgres_port))


def embedded_valkey(settings: Settings, home: Home, port: Callable[[str, int | None], int]) -> EmbeddedValkey:
    return EmbeddedValkey(home.path / "valkey", port("valkey", settings.valkey_port))


def running_stack(settings: Settings) -> Stack:
    """The platform that runs in this home, for commands that work on it from outside."""
    home = Home(settings.home)
    if home.running_pid() is None:
        raise Fault(f"nothing is running in {home.path}; `make up` or `make start` starts it")
    postgres = embedded_postgres(settings, home, home.remembered_port)
    valkey = embedded_valkey(settings, home, home.remembered_port)
    return Stack(
        settings,
        home,
        home.secrets(),
        admin_url=settings.database_url or postgres.url_of(DATABASE),
        redis_url=settings.redis_url or valkey.url,
    )
