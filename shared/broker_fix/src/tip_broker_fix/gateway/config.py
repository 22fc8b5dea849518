"""Every environment variable that the gateway reads."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from tip_broker_fix.gateway.session import Names

T = TypeVar("T")


class BadConfig(Exception):
    """A variable that cannot be used; its message is one line for the operator."""


@dataclass(frozen=True)
class Config:
    """See README.md for the table."""

    database_url: str = field(repr=False)
    names: Names = field(repr=False)
    broker_host: str
    broker_port: int
    account_key: str = field(repr=False)
    tls: bool = False
    tls_ca: str = ""
    host: str = "127.0.0.1"
    port: int = 8083
    lease_seconds: float = 5.0
    answer_seconds: float = 2.0
    currency: str = "USD"

    @property
    def session(self) -> str:
        return f"{self.names.sender}->{self.names.target}"

    @classmethod
    def from_env(cls, environment: Mapping[str, str] = os.environ) -> "Config":
        given = Environment(environment)
        names = Names(
            given.text("FIX_SENDER"),
            given.text("FIX_TARGET"),
            given.text("FIX_USERNAME", ""),
            given.text("FIX_PASSWORD", ""),
            given.read("FIX_HEARTBEAT_SECONDS", int, 30, lowest=1),
        )
        return cls(
            database_url=given.text("FIX_DATABASE_URL"),
            names=names,
            broker_host=given.text("FIX_HOST"),
            broker_port=given.read("FIX_PORT", int, None, lowest=1),
            account_key=given.text("FIX_ACCOUNT_KEY"),
            tls=given.text("FIX_TLS", "false").lower() == "true",
            tls_ca=given.text("FIX_TLS_CA", ""),
            host=given.text("FIX_GATEWAY_HOST", "127.0.0.1"),
            port=given.read("FIX_GATEWAY_PORT", int, 8083, lowest=0),
            lease_seconds=given.read("FIX_LEASE_SECONDS", float, 5.0, lowest=0.5),
            answer_seconds=given.read("FIX_ANSWER_SECONDS", float, 2.0, lowest=0.1),
            currency=given.text("FIX_CURRENCY", "USD"),
        )

    def __post_init__(self) -> None:
        if len(self.account_key) < 32:
            raise BadConfig("FIX_ACCOUNT_KEY: must have at least 32 characters")


@dataclass(frozen=True)
class Environment:
    values: Mapping[str, str]

    def text(self, variable: str, default: str | None = None) -> str:
        value = self.values.get(variable, "").strip() or default
        if value is None:
            raise BadConfig(f"{variable}: must be set")
        if not value.isprintable():
            raise BadConfig(f"{variable}: must be printable")
        return value

    def read(self, variable: str, kind: Callable[[str], T], default: T | None, lowest: float) -> T:
        try:
            value = kind(self.text(variable, None if default is None else str(default)))
        except ValueError:
            raise BadConfig(f"{variable}: must be a number") from None
        if not float(str(value)) >= lowest:
            raise BadConfig(f"{variable}: must be at least {lowest:g}")
        return value
