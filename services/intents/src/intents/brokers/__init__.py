"""Brokers, by name. What they have in common is `protocol`; `tip_testing.broker_conformance` proves a new one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Protocol

from intents.brokers import alpaca
from intents.brokers.protocol import (
    ENDED,
    OPEN,
    Balance,
    Broker,
    BrokerError,
    Change,
    Check,
    ClientIds,
    CredentialRefused,
    DuplicateClientOrderId,
    Execution,
    ListingTooLong,
    NewOrder,
    NotSent,
    NotWritten,
    Order,
    OrderStatus,
    OrderUpdate,
    OutcomeUnknown,
    Position,
    Quote,
    RateLimited,
    Refused,
    RejectionNotice,
    Unreachable,
)

__all__ = [
    "ENDED",
    "OPEN",
    "Addresses",
    "Balance",
    "Broker",
    "BrokerError",
    "Brokers",
    "Change",
    "Check",
    "ClientIds",
    "CredentialRefused",
    "DuplicateClientOrderId",
    "Execution",
    "ListingTooLong",
    "NewOrder",
    "NotSent",
    "NotWritten",
    "Order",
    "OrderStatus",
    "OrderUpdate",
    "OutcomeUnknown",
    "Position",
    "Quote",
    "RateLimited",
    "Refused",
    "RejectionNotice",
    "UnknownBroker",
    "Unreachable",
]


class UnknownBroker(Exception):
    """No adapter has this name."""


class Connector(Protocol):
    """A way to one broker, from which accounts there are reached with their secrets."""

    def account(self, secret: Mapping[str, str]) -> Broker: ...


@dataclass(frozen=True)
class Addresses:
    """Where the brokers are, and how long a call may take."""

    paper: str = "http://127.0.0.1:8081"
    alpaca_paper: str = "https://paper-api.alpaca.markets"
    alpaca_live: str = "https://api.alpaca.markets"
    alpaca_data: str = "https://data.alpaca.markets"
    connect_seconds: float = alpaca.CONNECT_SECONDS
    read_seconds: float = alpaca.READ_SECONDS


def _alpaca(address: str, data_address: str, addresses: Addresses) -> Connector:
    seconds = {"connect_seconds": addresses.connect_seconds, "read_seconds": addresses.read_seconds}
    return alpaca.Connection(address, data_address, **seconds)


CONNECTORS: dict[tuple[str, str], Callable[[Addresses], Connector]] = {
    ("paper", "paper"): lambda where: _alpaca(where.paper, where.paper, where),
    ("paper", "live"): lambda where: _alpaca(where.paper, where.paper, where),  # a rehearsal
    ("alpaca", "paper"): lambda where: _alpaca(where.alpaca_paper, where.alpaca_data, where),
    ("alpaca", "live"): lambda where: _alpaca(where.alpaca_live, where.alpaca_data, where),
}


@dataclass
class Brokers:
    """One connector for each broker and environment, made when first needed."""

    addresses: Addresses
    connectors: Mapping[tuple[str, str], Callable[[Addresses], Connector]] = field(default_factory=lambda: CONNECTORS)
    _open: dict[tuple[str, str], Connector] = field(default_factory=dict, init=False)
    _lock: Lock = field(default_factory=Lock, init=False)

    def account(self, broker: str, environment: str, secret: Mapping[str, str]) -> Broker:
        return self._connector((broker, environment)).account(secret)

    def _connector(self, name: tuple[str, str]) -> Connector:
        with self._lock:
            if name not in self._open:
                if name not in self.connectors:
                    raise UnknownBroker(name[0])
                self._open[name] = self.connectors[name](self.addresses)
            return self._open[name]
